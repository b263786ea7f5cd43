// Cells that tables share: a bar with a share, a name with its colour, a place in the source.

import {el, marked} from "pitviper/dom.js";
import {certainty} from "pitviper/compare.js";
import {formatDelta, shorten} from "pitviper/format.js";
import {placeColour} from "pitviper/palette.js";

export const ROW_HEIGHT = 24;

// Weight as a share, with a bar behind it, and as such.
export function weightCells(app, weight, of = app.total) {
  const share = el("span", {class: "cell share"}, weight > 0 ? app.shareText(weight, of) : "");
  const part = of > 0 ? Math.min(1, weight / of) : 0;
  share.style.setProperty("--part", `${part * 100}%`);
  return [share, el("span", {class: "cell weight"}, weight > 0 ? app.weightText(weight) : "")];
}

// A change, of shares or of weights: coloured by its direction, unless chance may have done it.
export function deltaCell(app, now, before, of = app.total) {
  const delta = now - before;
  const isNothing = Math.abs(delta) < of * 1e-6;
  const text = app.settings.normal ? app.shareText(delta, of) : app.weightText(delta);
  const isSure = certainty(now, before, app.perSample) > 0.6;
  const kind = isNothing || !isSure ? "" : delta > 0 ? " grew" : " shrank";
  return el("span", {class: `cell share delta${kind}`},
            isNothing ? "" : formatDelta(text, delta));
}

export function nameCell(app, fn) {
  const swatch = el("span", {class: "swatch", "aria-hidden": "true"});
  swatch.style.background = placeColour(app.names.placeOf(fn), app.dark);
  const name = shorten(app.names.nameOf(fn));
  return el("span", {class: "cell name", title: shorten(app.names.nameOf(fn), 1000)},
            swatch, el("span", {class: "name-text"}, ...marked(name, app.search)));
}

export function placeCell(app, fn) {
  return el("span", {class: "cell place", title: shorten(app.names.fullLocationOf(fn), 1000)},
            ...marked(shorten(app.names.locationOf(fn), 120), app.search));
}

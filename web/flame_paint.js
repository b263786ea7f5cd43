// Draws the frames of a flame graph on its canvas.
//
// Only text that fits is drawn: the name, and where there is room its file and line. Text widths are
// measured once per name.

import {changeColour} from "pitviper/palette.js";
import {shorten} from "pitviper/format.js";
import {MERGED, ROOT, threadOfMark} from "pitviper/timeorder.js";

export const ROW_HEIGHT = 21;
const PADDING = 5;
const FONT = '11.5px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
const widths = new Map(); // text -> pixels

function widthOf(context, text) {
  let width = widths.get(text);
  if (width === undefined) {
    if (widths.size > 20000) widths.clear();
    width = context.measureText(text).width;
    widths.set(text, width);
  }
  return width;
}

// The beginning of a text that fits into so many pixels; "" when not even a few letters do.
function fitText(context, text, room) {
  const width = widthOf(context, text);
  if (width <= room) return text;
  let length = Math.floor((text.length * room) / width) - 1;
  while (length > 1 && widthOf(context, `${text.slice(0, length)}…`) > room) length--;
  return length > 1 ? `${text.slice(0, length)}…` : "";
}

export class FramePainter {
  constructor(app, context, width, [from, to], isTimeOrder) {
    this.app = app;
    this.context = context;
    this.width = width;
    this.from = from;
    this.scale = width / (to - from);
    this.tree = isTimeOrder ? null : app.shownTree();
    this.search = app.search;
    this.dark = app.dark;
    const style = getComputedStyle(document.documentElement);
    this.colours = Object.fromEntries(["bg", "ink", "dim", "line", "accent", "root", "merged"]
      .map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
    context.font = FONT;
    context.textBaseline = "middle";
  }

  clear(height) {
    this.context.fillStyle = this.colours.bg;
    this.context.fillRect(0, 0, this.width, height);
  }

  #fill(fn, node) {
    if (fn === MERGED) return this.colours.merged;
    if (fn < 0) return this.colours.root;
    if (this.app.base && node >= 0) return changeColour(this.app.changeOf(this.tree, node), this.dark);
    return this.app.palette.functionColour(fn);
  }

  frame(layout, rect, y, {isAbove, isHovered}) {
    const {context} = this;
    const left = Math.max(0, (layout.x0[rect] - this.from) * this.scale);
    const right = Math.min(this.width, (layout.x1[rect] - this.from) * this.scale);
    if (right <= 0 || left >= this.width) return;
    const wide = right - left;
    const fn = layout.fn[rect];
    const isMatch = this.search && fn >= 0 && this.search.matches[fn];
    const isDim = isAbove || (this.search && !isMatch);
    context.globalAlpha = isDim ? (this.dark ? 0.3 : 0.36) : 1;
    context.fillStyle = this.#fill(fn, layout.node[rect]);
    const shown = wide > 2.5 ? wide - 1 : wide > 1 ? wide - 0.4 : Math.max(wide, 0.4);
    context.fillRect(left, y, shown, ROW_HEIGHT - 1);
    this.#waitingPart(layout.node[rect], left, y, shown);
    context.globalAlpha = 1;
    if (isMatch) {
      context.fillStyle = this.colours.accent;
      context.fillRect(left, y + ROW_HEIGHT - 4, shown, 3);
    }
    const isSelected = fn >= 0 && fn === this.app.settings.fn;
    if (isHovered || (isSelected && wide > 3)) {
      context.strokeStyle = this.colours.ink;
      context.globalAlpha = isHovered ? 0.9 : 0.45;
      context.lineWidth = 1;
      context.strokeRect(left + 0.5, y + 0.5, Math.max(shown - 1, 0.5), ROW_HEIGHT - 2);
      context.globalAlpha = 1;
    }
    if (wide > 22) this.#label(fn, left + PADDING, y + ROW_HEIGHT / 2, wide - 2 * PADDING, isDim);
  }

  // Samples that waited are a pale band along the top, as long as their share.
  #waitingPart(node, left, y, wide) {
    const waiting = this.tree?.waiting;
    if (!waiting || node < 0 || wide < 4 || waiting[node] === 0) return;
    this.context.fillStyle = this.dark ? "rgb(0 0 0 / 45%)" : "rgb(255 255 255 / 80%)";
    this.context.fillRect(left, y, (wide * waiting[node]) / this.tree.total[node], 3);
  }

  #label(fn, x, y, room, isDim) {
    const {context, app} = this;
    const name = this.#nameOf(fn);
    const text = fitText(context, name, room);
    if (!text) return;
    const onColour = "#17171b"; // frames are light in both themes
    context.fillStyle = isDim || fn < 0 ? this.colours.dim : onColour;
    context.fillText(text, x, y);
    if (fn < 0 || text !== name) return;
    const used = widthOf(context, name) + 10;
    const place = app.names.locationOf(fn);
    if (place && room - used > widthOf(context, place)) {
      context.globalAlpha = 0.62;
      context.fillText(place, x + used, y);
      context.globalAlpha = 1;
    }
  }

  #nameOf(fn) {
    const {app} = this;
    if (fn === ROOT) return `all: ${app.fullWeightText(app.shownTotal)}`;
    if (fn === MERGED) return "…";
    if (fn >= 0) return shorten(app.names.nameOf(fn));
    const thread = threadOfMark(fn);
    return `${app.profile.threadName(thread)} (${app.profile.threads.tid[thread]})`;
  }

  outline(layout, rect, y) {
    const {context} = this;
    const left = Math.max(1, (layout.x0[rect] - this.from) * this.scale);
    const right = Math.min(this.width - 1, (layout.x1[rect] - this.from) * this.scale);
    context.strokeStyle = this.colours.accent;
    context.lineWidth = 2;
    context.strokeRect(left, y + 1, Math.max(2, right - left - 1), ROW_HEIGHT - 3);
  }

  message(text, height) {
    const {context} = this;
    context.fillStyle = this.colours.dim;
    context.textAlign = "center";
    context.fillText(text, this.width / 2, height / 2);
    context.textAlign = "left";
  }
}

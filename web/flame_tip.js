// What is said about the frame under the pointer: a small panel beside it, and one line of text for
// those who use keys or hear the page.

import {el} from "pitviper/dom.js";
import {formatDelta, formatPercent, shorten} from "pitviper/format.js";
import {PLACES, placeColour} from "pitviper/palette.js";
import {MERGED, ROOT, threadOfMark} from "pitviper/timeorder.js";

export class FlameTip {
  constructor(app, panel, status) {
    this.app = app;
    this.panel = panel;
    this.status = status;
  }

  hide() { this.panel.hidden = true; }

  // Rows of [label, text] about a rectangle.
  #facts(layout, rect, isTimeOrder) {
    const {app} = this;
    const fn = layout.fn[rect];
    const node = layout.node[rect];
    const weight = layout.x1[rect] - layout.x0[rect];
    const both = (value, of) => `${app.shareText(value, of)}  ${app.weightText(value)}`;
    const facts = [];
    if (isTimeOrder) {
      facts.push(["this run", both(weight)]);
      if (fn >= 0) facts.push(["function", both(app.totals().total[fn])]);
      return facts;
    }
    const tree = app.shownTree();
    const self = node < 0 ? undefined : tree.self?.[node];
    facts.push(["total", both(weight, app.shownTotal)]);
    if (self !== undefined) facts.push(["self", both(self, app.shownTotal)]);
    if (fn >= 0 && !app.base) facts.push(["function", both(app.totals().total[fn])]);
    if (node >= 0 && tree.waiting) facts.push(["waiting", both(tree.waiting[node], weight)]);
    if (app.base && node >= 0) {
      const {now, before} = app.nowAndBefore(tree, node);
      facts.push(["before", both(before, app.baseTree().total[0] * app.scale)], ["now", both(now)]);
      const delta = now - before;
      const share = before > 0 ? formatDelta(formatPercent(delta / before), delta) : "new";
      facts.push(["change", `${formatDelta(app.weightText(delta), delta)}  ${share}`]);
    }
    return facts;
  }

  #title(fn) {
    const {app} = this;
    if (fn === ROOT) return "all samples";
    if (fn === MERGED) return "frames too narrow to draw: zoom in to see them";
    if (fn >= 0) return shorten(app.names.nameOf(fn), 500);
    return `thread ${app.profile.threadName(threadOfMark(fn))}`;
  }

  show(layout, rect, isTimeOrder, event) {
    const fn = layout.fn[rect];
    const {app, panel} = this;
    panel.replaceChildren(el("div", {class: "tip-name"}, this.#title(fn)));
    if (fn >= 0) {
      const place = app.names.placeOf(fn);
      const swatch = el("span", {class: "swatch"});
      swatch.style.background = placeColour(place, app.dark);
      panel.append(el("div", {class: "tip-where"}, shorten(app.names.fullLocationOf(fn), 300)),
                   el("div", {class: "tip-where"}, swatch, app.names.isPython(fn) ? PLACES[place]
                      : `${PLACES[place]} · ${shorten(app.names.moduleOf(fn), 100)}`));
    }
    const facts = el("dl", {class: "tip-facts"});
    for (const [label, text] of this.#facts(layout, rect, isTimeOrder)) {
      facts.append(el("dt", {}, label), el("dd", {}, text));
    }
    panel.append(facts);
    panel.hidden = false;
    if (event) this.#place(event.clientX, event.clientY);
  }

  #place(x, y) {
    const {panel} = this;
    const right = window.innerWidth - panel.offsetWidth - 8;
    const below = y + 18 + panel.offsetHeight < window.innerHeight;
    panel.style.left = `${Math.max(8, Math.min(x + 14, right))}px`;
    panel.style.top = `${below ? y + 18 : Math.max(8, y - panel.offsetHeight - 12)}px`;
  }

  // The same in one line.
  say(layout, rect, isTimeOrder) {
    const fn = layout.fn[rect];
    const facts = this.#facts(layout, rect, isTimeOrder).map(([label, text]) => `${label} ${text}`);
    const where = fn >= 0 ? ` ${this.app.names.locationOf(fn)}` : "";
    this.status.textContent = `${shorten(this.#title(fn), 120)}${where} · ${facts.join(" · ")}`;
  }
}

// The flame graph: a canvas, drawn by rows from the outermost function down (inverted: from the
// function that does the work to its callers).
//
// What is on the screen is a part of the x axis (`shown`). Zooming moves it; the way there is
// animated so that the eye can follow. A canvas has no elements, so the pointer and the keys find
// rectangles by place: `cursor` is a depth and an x, whatever the layout is then.

import {byId, fitCanvas, oncePerFrame} from "pitviper/dom.js";
import {extentOfNode, layoutTime, layoutTree, nodeOfPath, pathOfNode} from "pitviper/flame_layout.js";
import {FramePainter, ROW_HEIGHT} from "pitviper/flame_paint.js";
import {FlameTip} from "pitviper/flame_tip.js";
import {MERGED, ROOT} from "pitviper/timeorder.js";

const ZOOM_MS = 170;

export class FlameView {
  constructor(app) {
    this.app = app;
    this.scroller = byId("flame-scroller");
    this.canvas = byId("flame-canvas");
    this.space = byId("flame-space");
    this.tip = new FlameTip(app, byId("tip"), byId("flame-status"));
    this.shown = [0, 1];
    this.layout = null;
    this.hover = -1;
    this.cursor = null; // {depth, x}
    this.draw = oncePerFrame(() => this.#paint());
    this.#listen();
  }

  get isTimeOrder() { return this.app.settings.order === "time" && !this.app.base; }

  #listen() {
    const {canvas, scroller} = this;
    scroller.addEventListener("scroll", () => {
      this.#point(-1);
      this.draw();
    }, {passive: true});
    new ResizeObserver(() => {
      this.layout = null;
      this.draw();
    }).observe(scroller);
    canvas.addEventListener("pointermove", (event) => {
      if (event.pointerType === "mouse") this.#point(this.#rectAt(event), event);
    });
    canvas.addEventListener("pointerleave", () => this.#point(-1));
    canvas.addEventListener("click", (event) => {
      const rect = this.#rectAt(event);
      if (rect >= 0) this.#zoomTo(rect);
    });
    canvas.addEventListener("focus", () => {
      this.cursor ??= {depth: 0, x: (this.shown[0] + this.shown[1]) / 2};
      this.draw();
    });
    canvas.addEventListener("blur", () => this.draw());
  }

  // Where the state says that we are.
  #target() {
    const {settings} = this.app;
    if (this.isTimeOrder) {
      const order = this.app.timeOrder();
      const whole = [0, order.total || 1];
      if (!settings.part) return whole;
      const part = [Math.max(0, settings.part[0]), Math.min(whole[1], settings.part[1])];
      return part[0] < part[1] ? part : whole;
    }
    const tree = this.app.shownTree();
    const node = settings.zoom ? nodeOfPath(tree, settings.zoom) : 0;
    const extent = extentOfNode(tree, node);
    return extent[1] > extent[0] ? extent : [0, 1];
  }

  // Something changed. Zooming is animated, everything else is there at once.
  update(changed) {
    const zooms = changed && changed.size > 0
      && [...changed].every((name) => ["zoom", "part", "fn"].includes(name));
    const target = this.#target();
    if (zooms && !matchMedia("(prefers-reduced-motion: reduce)").matches) this.#animate(target);
    else this.#show(target);
    if (!zooms) this.#point(-1);
  }

  #show(target) {
    this.animation = null;
    this.shown = target;
    this.layout = null;
    this.draw();
  }

  #animate(target) {
    const from = this.shown;
    const start = performance.now();
    const animation = {};
    this.animation = animation;
    const step = (now) => {
      if (this.animation !== animation) return;
      const part = Math.min(1, Math.max(0, now - start) / ZOOM_MS);
      const eased = 1 - (1 - part) ** 3;
      this.shown = part === 1 ? target
        : [from[0] + (target[0] - from[0]) * eased, from[1] + (target[1] - from[1]) * eased];
      this.layout = null;
      this.#paint();
      if (part < 1) requestAnimationFrame(step);
      else this.animation = null;
    };
    requestAnimationFrame(step);
  }

  #makeLayout(width) {
    const [from, to] = this.shown;
    const pixels = width * (window.devicePixelRatio || 1);
    return this.isTimeOrder
      ? layoutTime(this.app.timeOrder(), from, to, width, this.app.settings.inverted)
      : layoutTree(this.app.shownTree(), from, to, pixels);
  }

  #paint() {
    const width = this.scroller.clientWidth;
    const height = this.scroller.clientHeight;
    if (width === 0 || height === 0) return; // another view is shown
    this.layout ??= this.#makeLayout(width);
    this.space.style.height = `${Math.max(height, (this.layout.rows.length + 1) * ROW_HEIGHT)}px`;
    const context = fitCanvas(this.canvas, width, height);
    const painter = new FramePainter(this.app, context, width, this.shown, this.isTimeOrder);
    const top = this.scroller.scrollTop;
    painter.clear(height);
    const first = Math.max(0, Math.floor(top / ROW_HEIGHT));
    const last = Math.min(this.layout.rows.length - 1, Math.ceil((top + height) / ROW_HEIGHT));
    const zoomed = this.app.settings.zoom?.length ?? 0;
    for (let depth = first; depth <= last; depth++) {
      for (const rect of this.layout.rows[depth]) {
        painter.frame(this.layout, rect, depth * ROW_HEIGHT - top, {
          isAbove: !this.isTimeOrder && depth < zoomed,
          isHovered: rect === this.hover,
        });
      }
    }
    const cursor = this.#cursorRect();
    if (cursor >= 0 && document.activeElement === this.canvas) {
      painter.outline(this.layout, cursor, this.layout.depth[cursor] * ROW_HEIGHT - top);
    }
    if (this.layout.count === 0) painter.message("No samples are left by this filter.", height);
  }

  #rectAt(event) {
    if (!this.layout) return -1;
    const box = this.canvas.getBoundingClientRect();
    const depth = Math.floor((event.clientY - box.top + this.scroller.scrollTop) / ROW_HEIGHT);
    const [from, to] = this.shown;
    return this.layout.at(depth, from + ((event.clientX - box.left) / box.width) * (to - from));
  }

  #point(rect, event) {
    if (rect !== this.hover) {
      this.hover = rect;
      this.canvas.style.cursor = rect >= 0 && this.layout.fn[rect] !== MERGED ? "pointer" : "default";
      this.draw();
    }
    if (rect >= 0) this.tip.show(this.layout, rect, this.isTimeOrder, event);
    else this.tip.hide();
  }

  #zoomTo(rect) {
    const {layout, app} = this;
    const fn = layout.fn[rect];
    if (fn === MERGED) return;
    const patch = fn >= 0 ? {fn, file: -1} : {};
    if (this.isTimeOrder) {
      const [from, to] = this.shown;
      patch.part = fn === ROOT ? null
        : app.timeOrder().exact(layout.x0[rect], layout.x1[rect], layout.depth[rect], {
          from, to, pixels: this.scroller.clientWidth, inverted: app.settings.inverted});
    } else {
      const path = pathOfNode(app.shownTree(), layout.node[rect]);
      patch.zoom = path.length ? path : null;
    }
    this.cursor = {depth: layout.depth[rect], x: (layout.x0[rect] + layout.x1[rect]) / 2};
    this.tip.say(layout, rect, this.isTimeOrder); // where there is no mouse, there is no tip
    app.state.set(patch);
  }

  #cursorRect() {
    if (!this.cursor || !this.layout) return -1;
    return this.layout.at(this.cursor.depth, this.cursor.x);
  }

  // One step with the keys: "up", "down", "left", "right".
  move(direction) {
    const {layout} = this;
    if (!layout || layout.count === 0) return;
    let rect = this.#cursorRect();
    if (rect < 0) rect = layout.rows[0][0];
    const depth = layout.depth[rect];
    const row = layout.rows[depth];
    const at = row.indexOf(rect);
    let next = rect;
    if (direction === "left") next = row[at - 1] ?? rect;
    if (direction === "right") next = row[at + 1] ?? rect;
    if (direction === "up" && depth > 0) next = layout.at(depth - 1, this.cursor?.x ?? 0);
    if (direction === "down") {
      const below = (layout.rows[depth + 1] ?? [])
        .filter((i) => layout.x0[i] >= layout.x0[rect] && layout.x1[i] <= layout.x1[rect]);
      const width = (i) => layout.x1[i] - layout.x0[i];
      next = below.reduce((best, i) => (best < 0 || width(i) > width(best) ? i : best), -1);
    }
    if (next < 0) next = rect;
    const from = Math.max(layout.x0[next], this.shown[0]);
    const to = Math.min(layout.x1[next], this.shown[1]);
    this.cursor = {depth: layout.depth[next], x: (from + to) / 2};
    const fn = layout.fn[next];
    if (fn >= 0) this.app.state.set({fn, file: -1}, {replace: true});
    const y = layout.depth[next] * ROW_HEIGHT;
    const {scroller} = this;
    if (y < scroller.scrollTop) scroller.scrollTop = y;
    if (y + 2 * ROW_HEIGHT > scroller.scrollTop + scroller.clientHeight) {
      scroller.scrollTop = y + 2 * ROW_HEIGHT - scroller.clientHeight;
    }
    this.tip.say(layout, next, this.isTimeOrder);
    this.draw();
  }

  // Zooms to what the keys point at.
  enter() {
    const rect = this.#cursorRect();
    if (rect >= 0) this.#zoomTo(rect);
  }

  focus() { this.canvas.focus({preventScroll: true}); }

  // For tests: what is drawn, in pixels of the page.
  frames() {
    this.layout ??= this.#makeLayout(this.scroller.clientWidth);
    const box = this.canvas.getBoundingClientRect();
    const [from, to] = this.shown;
    const scale = box.width / (to - from);
    return this.layout.fn.map((fn, i) => ({
      fn, name: fn >= 0 ? this.app.names.nameOf(fn) : "", depth: this.layout.depth[i],
      weight: this.layout.x1[i] - this.layout.x0[i],
      left: box.left + Math.max(0, (this.layout.x0[i] - from) * scale),
      right: box.left + Math.min(box.width, (this.layout.x1[i] - from) * scale),
      top: box.top + this.layout.depth[i] * ROW_HEIGHT - this.scroller.scrollTop,
    }));
  }
}

// The timeline: one row for everything with the axis of time, one per process, one per thread.
//
// Dragging over rows selects a range of time; names select threads. Both filter every other view.
// There may be a thousand threads: only rows in sight are made and drawn.

import {Activity, groupThreads, LAYERS, WAITING_LAYER} from "pitviper/activity.js";
import {byId, el, fitCanvas, oncePerFrame} from "pitviper/dom.js";
import {formatCount, formatTime, niceStep, shorten} from "pitviper/format.js";
import {placeColour} from "pitviper/palette.js";

const ROW = 24;
const OVERVIEW = 46;
const AXIS = 15;
const FEW_ROWS = 4;

export class Timeline {
  constructor(app) {
    this.app = app;
    this.activity = new Activity(app.profile);
    this.panel = byId("timeline");
    this.overview = byId("timeline-overview");
    this.scroller = byId("timeline-scroller");
    this.space = byId("timeline-space");
    this.canvas = byId("timeline-canvas");
    this.labels = byId("timeline-labels");
    this.more = byId("timeline-more");
    this.isTall = false;
    this.rows = [];
    this.drag = null;
    this.cursor = null;  // ns, of the keys
    this.pointer = null; // ns, of the mouse
    this.draw = oncePerFrame(() => this.#paint());
    this.#listen();
  }

  #listen() {
    this.scroller.addEventListener("scroll", this.draw, {passive: true});
    new ResizeObserver(this.draw).observe(this.panel);
    for (const canvas of [this.overview, this.canvas]) {
      canvas.addEventListener("pointerdown", (event) => this.#startDrag(canvas, event));
      canvas.addEventListener("pointermove", (event) => this.#moveDrag(canvas, event));
      canvas.addEventListener("pointerup", () => this.#endDrag());
      canvas.addEventListener("pointerleave", () => { this.pointer = null; this.draw(); });
      canvas.addEventListener("pointercancel", () => { this.drag = null; this.draw(); });
    }
    this.overview.addEventListener("keydown", (event) => this.#key(event));
    this.overview.addEventListener("focus", this.draw);
    this.overview.addEventListener("blur", this.draw);
    this.more.addEventListener("click", () => {
      this.isTall = !this.isTall;
      this.#size();
      this.draw();
    });
  }

  #timeAt(canvas, event) {
    const box = canvas.getBoundingClientRect();
    const part = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
    return part * this.app.profile.duration;
  }

  #startDrag(canvas, event) {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    const at = this.#timeAt(canvas, event);
    this.drag = {from: at, to: at};
  }

  #moveDrag(canvas, event) {
    this.pointer = event.pointerType === "mouse" ? this.#timeAt(canvas, event) : null;
    if (this.drag) this.drag.to = this.#timeAt(canvas, event);
    this.draw();
  }

  // A click without dragging takes the selection back.
  #endDrag() {
    if (!this.drag) return;
    const {from, to} = this.drag;
    this.drag = null;
    const pixels = (Math.abs(to - from) / this.app.profile.duration) * this.overview.clientWidth;
    this.#select(pixels < 3 ? null : [Math.min(from, to), Math.max(from, to)]);
    this.draw();
  }

  #select(range) {
    if (range) {
      range = [Math.floor(range[0]), Math.ceil(range[1])];
      // The last sample is at the very end, and ends are exclusive.
      if (range[1] >= this.app.profile.duration) range[1] = Math.ceil(this.app.profile.duration) + 1;
    }
    this.app.state.set({range, part: null});
  }

  // Left and right move the mark, with shift they select, escape takes it back.
  #key(event) {
    const {duration} = this.app.profile;
    const {range} = this.app.settings;
    const step = duration / (event.ctrlKey ? 10 : 100);
    const sign = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (event.key === "Escape" && range) this.#select(null);
    else if (sign) {
      const before = this.cursor ?? duration / 2;
      this.cursor = Math.min(duration, Math.max(0, before + sign * step));
      if (event.shiftKey) {
        this.anchor ??= before;
        if (this.anchor !== this.cursor) {
          this.#select([Math.min(this.anchor, this.cursor), Math.max(this.anchor, this.cursor)]);
        }
      } else this.anchor = null;
    } else return;
    event.preventDefault();
    event.stopPropagation();
    this.draw();
  }

  // Rows: processes as headings where there is more than one.
  #makeRows() {
    const {profile, settings} = this.app;
    const groups = groupThreads(profile, settings.event);
    this.rows = [];
    this.threadCount = 0;
    for (const group of groups) {
      // A process with one thread is one row.
      const isAlone = group.threads.length === 1;
      if (groups.length > 1 && !isAlone) this.rows.push({group});
      for (const {thread} of group.threads) this.rows.push({thread, isAlone: isAlone && groups.length > 1});
      this.threadCount += group.threads.length;
    }
    this.rowsKey = settings.event;
  }

  #size() {
    const most = this.isTall ? Math.max(FEW_ROWS, Math.floor((window.innerHeight * 0.45) / ROW))
                             : FEW_ROWS;
    const isOne = this.rows.length <= 1;
    this.scroller.hidden = isOne;
    this.scroller.style.height = `${Math.min(this.rows.length, most) * ROW}px`;
    this.more.hidden = this.rows.length <= FEW_ROWS;
    this.more.textContent = this.isTall ? "show fewer"
      : `show more of ${formatCount(this.threadCount)}`;
    this.more.setAttribute("aria-expanded", String(this.isTall));
    this.space.style.height = `${this.rows.length * ROW}px`;
  }

  update() {
    if (this.rowsKey !== this.app.settings.event) {
      this.#makeRows();
      this.#size();
    }
    this.draw();
  }

  focus() { this.overview.focus(); }

  // Slices are no narrower than three pixels, nor than a dozen samples of one thread: else a busy
  // thread would look like a comb.
  #slices(width) {
    const {event, profile} = this.app;
    const period = event && event.unit === "ns" && event.samples ? event.weight / event.samples : 0;
    const most = period > 0 ? profile.duration / (period * 12) : Infinity;
    return Math.max(20, Math.floor(Math.min(width / 3, most)));
  }

  #paint() {
    const width = this.overview.parentElement.clientWidth;
    if (width <= 0) return;
    const {app} = this;
    const {settings} = app;
    this.activity.prepare(app.model.shape(settings.fold, settings.lens), settings.event,
                          this.#slices(width));
    const style = getComputedStyle(document.documentElement);
    this.colour = (name) => style.getPropertyValue(`--${name}`).trim();
    this.#paintOverview(width);
    if (!this.scroller.hidden) this.#paintRows(this.canvas.parentElement.clientWidth);
  }

  #paintOverview(width) {
    const context = fitCanvas(this.overview, width, OVERVIEW);
    context.clearRect(0, 0, width, OVERVIEW);
    this.#paintAxis(context, width);
    const row = this.activity.row(-1);
    this.#paintActivity(context, row, width, AXIS, OVERVIEW - AXIS, Activity.highest(row));
    this.#paintRange(context, width, OVERVIEW);
    this.#paintPointer(context, width, OVERVIEW, true);
    if (this.cursor !== null && document.activeElement === this.overview) {
      context.fillStyle = this.colour("accent");
      context.fillRect((this.cursor / this.app.profile.duration) * width - 1, 0, 2, OVERVIEW);
    }
  }

  #paintAxis(context, width) {
    const {duration} = this.app.profile;
    const step = niceStep(duration, width / 90);
    context.font = "10px system-ui, sans-serif";
    context.textBaseline = "middle";
    // 1.50 s is 1.5 s, and 2.00 s is 2 s.
    const short = (text) => text.replace(/(\.\d*?)0+(?=\D)/, "$1").replace(/\.(?=\D)/, "");
    for (let at = 0; at < duration; at += step) {
      const x = (at / duration) * width;
      context.fillStyle = this.colour("line");
      context.fillRect(Math.round(x), 0, 1, OVERVIEW);
      context.fillStyle = this.colour("dim");
      if (x + 40 < width) context.fillText(short(formatTime(at)), x + 4, AXIS / 2);
    }
  }

  #paintActivity(context, row, width, top, height, highest) {
    if (highest === 0) return;
    const {slices} = this.activity;
    const wide = width / slices;
    const bottom = top + height;
    const used = new Float64Array(slices);
    for (let layer = 0; layer < LAYERS; layer++) {
      context.fillStyle = layer === WAITING_LAYER ? this.colour("waiting")
        : placeColour(layer, this.app.dark);
      for (let s = 0; s < slices; s++) {
        const weight = row[s * LAYERS + layer];
        if (weight === 0) continue;
        const tall = (Math.min(weight, highest - used[s]) / highest) * (height - 2);
        const base = bottom - (used[s] / highest) * (height - 2);
        used[s] += weight;
        if (tall > 0) context.fillRect(s * wide, base - tall, Math.max(wide - 0.25, 0.75), tall);
      }
    }
  }

  // A line through all rows, with its time; while dragging with the length of what is selected.
  #paintPointer(context, width, height, hasText) {
    if (this.pointer === null) return;
    const x = (this.pointer / this.app.profile.duration) * width;
    context.fillStyle = this.colour("dim");
    context.fillRect(Math.round(x), 0, 1, height);
    if (!hasText) return;
    const {drag} = this;
    const text = drag && drag.from !== drag.to ? formatTime(Math.abs(drag.to - drag.from))
      : formatTime(this.pointer);
    const wide = context.measureText(text).width + 8;
    const left = x + wide + 3 < width ? x + 2 : x - wide - 2;
    context.fillStyle = this.colour("ink");
    context.fillRect(left, 1, wide, AXIS - 2);
    context.fillStyle = this.colour("bg");
    context.fillText(text, left + 4, AXIS / 2);
  }

  #paintRange(context, width, height) {
    const {drag} = this;
    const {duration} = this.app.profile;
    const range = drag ? [Math.min(drag.from, drag.to), Math.max(drag.from, drag.to)]
      : this.app.settings.range;
    if (!range) return;
    const from = (range[0] / duration) * width;
    const to = Math.min(width, (range[1] / duration) * width);
    context.fillStyle = this.colour("veil");
    context.fillRect(0, 0, from, height);
    context.fillRect(to, 0, width - to, height);
    context.fillStyle = this.colour("accent");
    context.fillRect(from - 0.5, 0, 1.5, height);
    context.fillRect(to - 1, 0, 1.5, height);
  }

  // What a row of full height is: in ns a CPU that was busy all the time, or what the busiest threads
  // reach when that is less, so that a thousand threads that share a CPU can be seen. All rows have
  // the same scale.
  #fullHeight() {
    const {app, activity} = this;
    const key = `${activity.key} ${app.settings.event}`;
    if (this.fullKey !== key) {
      const threads = this.rows.filter((row) => row.thread !== undefined).slice(0, 20);
      const highest = Math.max(...threads.map(({thread}) => Activity.highest(activity.row(thread))));
      this.full = app.unit === "ns" ? Math.min(highest, app.profile.duration / activity.slices)
        : highest;
      this.fullKey = key;
    }
    return this.full;
  }

  #paintRows(width) {
    const {scroller, rows} = this;
    const height = scroller.clientHeight;
    const top = scroller.scrollTop;
    const context = fitCanvas(this.canvas, width, height);
    context.clearRect(0, 0, width, height);
    const first = Math.max(0, Math.floor(top / ROW));
    const end = Math.min(rows.length, Math.ceil((top + height) / ROW));
    const chosen = this.app.settings.threads && new Set(this.app.settings.threads);
    const labels = [];
    for (let i = first; i < end; i++) {
      const y = i * ROW - top;
      context.fillStyle = this.colour("line");
      context.fillRect(0, Math.round(y + ROW) - 1, width, 1);
      const {thread, group, isAlone} = rows[i];
      if (thread !== undefined) {
        context.globalAlpha = chosen && !chosen.has(thread) ? 0.25 : 1;
        const row = this.activity.row(thread);
        this.#paintActivity(context, row, width, y, ROW - 1, this.#fullHeight());
        context.globalAlpha = 1;
      }
      labels.push(group ? this.#processLabel(group, i) : this.#threadLabel(thread, i, chosen, isAlone));
    }
    this.#paintRange(context, width, height);
    this.#paintPointer(context, width, height, false);
    this.#replaceLabels(labels);
  }

  // The button that had the focus keeps it when labels are made anew.
  #replaceLabels(labels) {
    const focused = this.labels.contains(document.activeElement)
      ? document.activeElement.dataset.row : null;
    this.labels.replaceChildren(...labels);
    if (focused !== null) {
      this.labels.querySelector(`[data-row="${focused}"]`)?.focus({preventScroll: true});
    }
  }

  #label(index, attributes, ...children) {
    const button = el("button", {type: "button", "data-row": index, ...attributes}, ...children);
    button.style.top = `${index * ROW}px`;
    return button;
  }

  #threadLabel(thread, index, chosen, isAlone) {
    const {profile} = this.app;
    const name = profile.threadName(thread);
    const isOn = chosen !== null && chosen.has(thread);
    return this.#label(index, {
      class: `track thread${isAlone ? " process" : ""}${isOn ? " on" : ""}`, "aria-pressed": String(isOn),
      title: `${shorten(name)}, thread ${profile.threads.tid[thread]}\n`
             + "Click: only this one. With Ctrl or Shift: add or remove.",
      onclick: (event) => this.#choose([thread], event),
    }, el("span", {class: "track-name"}, shorten(name, 60)),
    el("span", {class: "track-id"}, String(profile.threads.tid[thread])));
  }

  #processLabel(group, index) {
    const {profile} = this.app;
    const name = profile.processName(group.process);
    return this.#label(index, {
      class: "track process",
      title: `${shorten(name)}, process ${profile.processes.pid[group.process]}\nClick: only its threads.`,
      onclick: (event) => this.#choose(group.threads.map(({thread}) => thread), event),
    }, el("span", {class: "track-name"}, shorten(name, 60)),
    el("span", {class: "track-id"}, String(profile.processes.pid[group.process])));
  }

  #choose(threads, event) {
    const chosen = this.app.settings.threads;
    const sorted = [...threads].sort((a, b) => a - b);
    let next = sorted;
    if (event.ctrlKey || event.metaKey || event.shiftKey) {
      const set = new Set(chosen ?? []);
      const isIn = sorted.every((thread) => set.has(thread));
      for (const thread of sorted) {
        if (isIn) set.delete(thread);
        else set.add(thread);
      }
      next = [...set].sort((a, b) => a - b);
    } else if (JSON.stringify(chosen) === JSON.stringify(sorted)) next = [];
    this.app.state.set({threads: next.length ? next : null, part: null});
  }
}

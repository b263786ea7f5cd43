// Keys for everything, and the page that lists them.
//
// Views take the arrow keys and Enter themselves while they have the focus; what is here works
// everywhere but in text fields.

import {byId, el} from "pitviper/dom.js";
import {VIEWS} from "pitviper/state.js";

const HELP = [
  ["Views", [
    ["1 2 3 4", "flame graph, call tree, functions, source"],
    ["s", "source of the selected function"],
    ["i", "inverted: from the function that works to its callers"],
    ["o", "order of the flame graph: heaviest first, or time"],
    ["m", "to the timeline"],
    ["v", "back to the view from anywhere"],
  ]],
  ["Moving", [
    ["← ↑ ↓ →", "move in the flame graph, the tree, tables, the source"],
    ["Enter", "flame graph: zoom in; tree: show in the flame graph; functions: source"],
    ["Esc", "zoom out; clear the search; close this"],
    ["Backspace", "back, as the browser does; Shift: forward"],
    ["*", "call tree: open all below"],
    ["j k h", "source: next and previous line with samples, the hottest"],
  ]],
  ["Filters", [
    ["f", "fold the interpreter's own frames"],
    ["p n a", "Python only, native only, all"],
    ["w", "all, running, or waiting samples"],
    ["e", "next event"],
    ["← → with Shift", "timeline: select a range"],
    ["x", "take all filters back"],
    ["/", "search; Enter keeps it and goes to the view"],
  ]],
  ["Page", [
    ["t", "light or dark"],
    ["d b", "comparison: shares or weights; widths of new or base"],
    ["?", "this help"],
  ]],
];

function next(values, value) {
  return values[(values.indexOf(value) + 1) % values.length];
}

export class Keys {
  constructor(app, views, timeline, theme) {
    this.app = app;
    this.views = views;
    this.timeline = timeline;
    this.theme = theme;
    this.help = byId("help");
    this.#makeHelp();
    document.addEventListener("keydown", (event) => this.#key(event));
    byId("help-button").addEventListener("click", () => this.toggleHelp());
    byId("theme-button").addEventListener("click", () => theme.toggle());
    byId("search").addEventListener("keydown", (event) => this.#searchKey(event));
  }

  get view() { return this.views[this.app.settings.view]; }

  toggleHelp() {
    if (this.help.open) this.help.close();
    else this.help.showModal();
  }

  #makeHelp() {
    const sections = HELP.map(([title, keys]) => el("section", {}, el("h3", {}, title),
      el("dl", {}, ...keys.flatMap(([key, text]) => [
        el("dt", {}, ...key.split(" ").map((k) => (k === "with" ? " with " : el("kbd", {}, k)))),
        el("dd", {}, text)]))));
    byId("help-keys").replaceChildren(...sections);
    byId("help-close").addEventListener("click", () => this.help.close());
    this.help.addEventListener("click", (event) => {
      if (event.target === this.help) this.help.close();
    });
  }

  #searchKey(event) {
    if (event.key === "Escape") this.app.state.set({search: ""}, {replace: true});
    if (event.key === "Escape" || event.key === "Enter") {
      const field = event.target;
      if (event.key === "Enter") this.app.state.set({search: field.value}, {replace: true});
      field.blur();
      field.value = this.app.settings.search;
      this.view.focus();
      event.preventDefault();
    }
    event.stopPropagation();
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest?.("input, select, textarea")) return;
    if (this.help.open) {
      if (event.key === "?") this.toggleHelp();
      return;
    }
    if (this.#command(event.key, event.shiftKey) || this.#flameKey(event)) event.preventDefault();
  }

  #command(key, shift) {
    const {app} = this;
    const {state, settings} = app;
    const patches = {
      i: () => ({inverted: !settings.inverted, zoom: null, part: null}),
      o: () => ({order: next(["heavy", "time"], settings.order)}),
      f: () => ({fold: !settings.fold}),
      p: () => ({lens: settings.lens === "python" ? "all" : "python"}),
      n: () => ({lens: settings.lens === "native" ? "all" : "native"}),
      a: () => ({lens: "all"}),
      w: () => (app.profile.hasWaiting
        ? {wait: next(["all", "running", "waiting"], settings.wait)} : {}),
      e: () => ({event: (settings.event + 1) % app.profile.events.length, zoom: null, part: null}),
      x: () => ({range: null, threads: null, zoom: null, part: null, search: "", lens: "all",
                 wait: "all"}),
      s: () => ({view: "source", file: -1}),
      d: () => ({normal: !settings.normal}),
      b: () => ({width: next(["new", "base"], settings.width)}),
    };
    if (key in patches) state.set(patches[key]());
    else if (/^[1-4]$/.test(key)) state.set({view: VIEWS[Number(key) - 1]});
    else if (key === "/") byId("search").select();
    else if (key === "?") this.toggleHelp();
    else if (key === "t") this.theme.toggle();
    else if (key === "m") this.timeline.focus();
    else if (key === "v") this.view.focus();
    else if (key === "Backspace") history.go(shift ? 1 : -1);
    else if (key === "Escape") this.#escape();
    else return false;
    if (key === "s" || /^[1-4]$/.test(key)) this.view.focus();
    return true;
  }

  #escape() {
    const {settings, state} = this.app;
    if (settings.zoom || settings.part) state.set({zoom: null, part: null});
    else if (settings.search) state.set({search: ""}, {replace: true});
  }

  #flameKey(event) {
    const {flame} = this.views;
    if (this.app.settings.view !== "flame" || event.target.closest("button, [role=tab]")) return false;
    const direction = {ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right"}[event.key];
    if (!direction && event.key !== "Enter") return false;
    flame.focus();
    if (direction) flame.move(direction);
    else flame.enter();
    return true;
  }
}

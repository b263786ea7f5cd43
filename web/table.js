// The function table, and beside it the callers and callees of the selected function.

import {byId, el} from "pitviper/dom.js";
import {neighbours} from "pitviper/functions.js";
import {deltaCell, nameCell, placeCell, ROW_HEIGHT, weightCells} from "pitviper/rows.js";
import {shorten} from "pitviper/format.js";
import {VirtualList} from "pitviper/virtual.js";

// What columns are sorted by; weights and changes begin with the largest.
const COLUMNS = {
  self: {title: "Self", wide: 2},
  total: {title: "Total", wide: 2},
  dself: {title: "Δ self", wide: 1, compared: true},
  dtotal: {title: "Δ total", wide: 1, compared: true},
  name: {title: "Function", isText: true},
  place: {title: "Where", isText: true},
};

export class TableView {
  constructor(app) {
    this.app = app;
    this.scroller = byId("table-rows");
    this.head = byId("table-head");
    this.side = byId("table-side");
    this.list = new VirtualList(this.scroller, ROW_HEIGHT, (i) => this.#row(i));
    this.fns = [];
    this.scroller.addEventListener("keydown", (event) => this.#key(event));
  }

  get sort() {
    const [column, direction] = this.app.settings.sort.split(" ");
    if (column in COLUMNS) return {column, isUp: direction === "up"};
    // Of changes the largest first, whichever way.
    return this.app.base ? {column: "dtotal", isUp: false, isAny: true} : {column: "self", isUp: false};
  }

  // A function's weight now and before; kind is "self" or "total".
  #both(kind, fn) {
    const totals = this.app.totals();
    const base = kind === "self" ? totals.baseSelf : totals.baseTotal;
    return [totals[kind][fn], base[fn] * this.scale];
  }

  #delta(kind, fn) {
    const [now, before] = this.#both(kind, fn);
    return now - before;
  }

  #valueOf(column) {
    const {app} = this;
    const totals = app.totals();
    switch (column) {
    case "total": return (fn) => totals.total[fn];
    case "dself": return app.base ? (fn) => this.#delta("self", fn) : (fn) => totals.self[fn];
    case "dtotal": return app.base ? (fn) => this.#delta("total", fn) : (fn) => totals.total[fn];
    case "name": return (fn) => app.names.nameOf(fn);
    case "place": return (fn) => app.names.locationOf(fn);
    default: return (fn) => totals.self[fn];
    }
  }

  // Functions with any weight, sorted; with a search only those that match.
  #choose() {
    const {app} = this;
    const totals = app.totals();
    const {search} = app;
    const fns = [];
    for (let fn = 0; fn < totals.total.length; fn++) {
      if (totals.total[fn] === 0 && !(totals.baseTotal?.[fn] > 0)) continue;
      if (!search || search.matches[fn]) fns.push(fn);
    }
    const {column, isUp, isAny} = this.sort;
    this.scale = app.base ? app.scale : 1;
    const plain = this.#valueOf(column);
    const valueOf = isAny ? (fn) => Math.abs(plain(fn)) : plain;
    const values = new Map(fns.map((fn) => [fn, valueOf(fn)]));
    const sign = isUp ? 1 : -1;
    const compare = COLUMNS[column].isText
      ? (a, b) => -sign * (values.get(a) < values.get(b) ? -1 : values.get(a) > values.get(b) ? 1 : 0)
      : (a, b) => sign * (values.get(a) - values.get(b)) || totals.total[b] - totals.total[a];
    return fns.sort(compare);
  }

  update(changed) {
    if (!changed || [...changed].some((name) => name !== "fn" && name !== "file")) {
      this.fns = this.#choose();
      this.#makeHead();
      this.list.show(this.fns.length);
      const at = this.fns.indexOf(this.app.settings.fn);
      if (at >= 0) this.list.reveal(at);
    } else this.list.refresh();
    this.#makeSide();
  }

  #makeHead() {
    const {column: sorted, isUp, isAny} = this.sort;
    const cells = [];
    for (const [column, {title, wide = 0, compared}] of Object.entries(COLUMNS)) {
      if (compared && !this.app.base) continue;
      const isSorted = column === sorted;
      const direction = isSorted && !isUp && !isAny ? "up" : "down";
      const arrow = !isSorted ? "" : isAny ? " ±" : isUp ? " ▴" : " ▾";
      cells.push(el("button", {
        type: "button", class: `cell sort ${column} wide-${wide}`, "aria-pressed": String(isSorted),
        title: "Sort by this column",
        onclick: () => this.app.state.set({sort: `${column} ${direction}`}),
      }, title + arrow));
    }
    this.head.className = "row head";
    this.head.replaceChildren(...cells);
  }

  #row(index) {
    const {app} = this;
    const fn = this.fns[index];
    const totals = app.totals();
    const cells = [...weightCells(app, totals.self[fn]), ...weightCells(app, totals.total[fn])];
    if (app.base) {
      cells.push(deltaCell(app, ...this.#both("self", fn)), deltaCell(app, ...this.#both("total", fn)));
    }
    const isSelected = fn === app.settings.fn;
    return el("div", {
      class: `row${isSelected ? " selected current" : ""}`, role: "option",
      id: isSelected ? "table-current" : null, "aria-selected": String(isSelected),
      onclick: () => app.state.set({fn, file: -1}, {replace: true}),
      ondblclick: () => app.state.set({fn, file: -1, view: "source"}),
    }, ...cells, nameCell(app, fn), placeCell(app, fn));
  }

  // Which tree has the function: only the base, when it is gone.
  #neighbours(fn) {
    const {app} = this;
    const own = app.profile.functionCount;
    if (fn < own) return neighbours(app.tree(), fn);
    const toJoint = (row) => ({...row, fn: row.fn < 0 ? -1 : app.joint.ofBase[row.fn]});
    const found = neighbours(app.baseTree(), app.joint.onlyInBase[fn - own]);
    return {...found, callers: found.callers.map(toJoint), callees: found.callees.map(toJoint)};
  }

  #makeSide() {
    const {app} = this;
    const {fn} = app.settings;
    if (fn < 0) {
      this.side.replaceChildren(el("p", {class: "hint"},
        "Select a function to see who calls it and what it calls."));
      return;
    }
    const {callers, callees, own} = this.#neighbours(fn);
    const totals = app.totals();
    const hasSource = app.names.isPython(fn);
    this.side.replaceChildren(
      el("div", {class: "side-title"},
        el("h2", {}, shorten(app.names.nameOf(fn), 400)),
        el("p", {class: "path"}, shorten(app.names.fullLocationOf(fn), 400)),
        el("p", {}, `self ${app.shareText(totals.self[fn])} ${app.weightText(totals.self[fn])} · `
                    + `total ${app.shareText(totals.total[fn])} ${app.weightText(totals.total[fn])}`),
        hasSource ? el("button", {type: "button", class: "small",
                                  onclick: () => app.state.set({view: "source", file: -1})},
                       "Source ", el("kbd", {}, "s")) : null),
      this.#side("Callers", callers, "(outermost)"),
      this.#side("Callees", own > 0 ? [...callees, {fn: -1, weight: own}] : callees, "itself"));
  }

  #side(title, rows, noneName) {
    const {app} = this;
    const sum = rows.reduce((total, row) => total + row.weight, 0);
    const list = el("div", {class: "side-rows"});
    for (const {fn, weight} of [...rows].sort((a, b) => b.weight - a.weight).slice(0, 200)) {
      const cells = weightCells(app, weight, sum);
      if (fn < 0) {
        list.append(el("div", {class: "row none"}, ...cells,
                       el("span", {class: "cell name"}, noneName)));
      } else {
        list.append(el("button", {type: "button", class: "row",
                                  onclick: () => app.state.set({fn, file: -1})},
                       ...cells, nameCell(app, fn)));
      }
    }
    if (rows.length === 0) list.append(el("p", {class: "hint"}, "none"));
    return el("section", {"aria-label": title}, el("h3", {}, title), list);
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || this.fns.length === 0) return;
    const at = this.fns.indexOf(this.app.settings.fn);
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / ROW_HEIGHT) - 1);
    const steps = {ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity,
                   End: Infinity};
    if (event.key === "Enter" && at >= 0) this.app.state.set({view: "source", file: -1});
    else if (event.key in steps) {
      const next = Math.min(this.fns.length - 1, Math.max(0, at + steps[event.key]));
      this.app.state.set({fn: this.fns[next], file: -1}, {replace: true});
      this.list.reveal(next);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  focus() { this.scroller.focus({preventScroll: true}); }
}

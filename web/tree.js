// The call tree, and the inverted one: rows that open.
//
// Which rows are open is known by their path, so it survives a filter. At first the heaviest path is
// open: what most people would click.

import {byId, el} from "pitviper/dom.js";
import {nodeOfPath, pathOfNode} from "pitviper/flame_layout.js";
import {deltaCell, nameCell, placeCell, ROW_HEIGHT, weightCells} from "pitviper/rows.js";
import {VirtualList} from "pitviper/virtual.js";

const HEAVY = 0.35;   // of the parent: such a child is opened at first
const MOST_OPENED = 400;

export class TreeView {
  constructor(app) {
    this.app = app;
    this.scroller = byId("tree-rows");
    this.head = byId("tree-head");
    this.list = new VirtualList(this.scroller, ROW_HEIGHT, (i) => this.#row(i));
    this.open = {false: null, true: null}; // per direction: Set of paths
    this.rows = [];                        // {node, depth, key}
    this.current = 0;
    this.scroller.addEventListener("keydown", (event) => this.#key(event));
  }

  get tree() { return this.app.shownTree(); }
  get openPaths() { return this.open[this.app.settings.inverted]; }

  #openHeaviest() {
    const {tree} = this;
    const paths = new Set();
    const visit = (node, key) => {
      if (paths.size >= MOST_OPENED) return;
      const [child] = tree.children(node);
      if (child === undefined || tree.total[child] < tree.total[node] * HEAVY) return;
      const childKey = `${key}.${tree.func[child]}`;
      paths.add(childKey);
      visit(child, childKey);
    };
    visit(0, "");
    this.open[this.app.settings.inverted] = paths;
  }

  #makeRows() {
    const {tree} = this;
    const root = this.#rootNode();
    this.rows = [];
    const pending = [...tree.children(root)].reverse()
      .map((node) => ({node, depth: 0, key: `${this.rootKey}.${tree.func[node]}`}));
    while (pending.length) {
      const row = pending.pop();
      this.rows.push(row);
      if (!this.openPaths.has(row.key)) continue;
      const children = tree.children(row.node);
      for (let i = children.length - 1; i >= 0; i--) {
        pending.push({node: children[i], depth: row.depth + 1,
                      key: `${row.key}.${tree.func[children[i]]}`});
      }
    }
  }

  // A zoom in the flame graph shows the same part here.
  #rootNode() {
    const {zoom} = this.app.settings;
    const node = zoom ? this.tree.parent[nodeOfPath(this.tree, zoom)] : 0;
    this.rootKey = pathOfNode(this.tree, node).map((fn) => `.${fn}`).join("");
    return node;
  }

  update() {
    if (!this.openPaths) this.#openHeaviest();
    const key = this.rows[this.current]?.key;
    this.#makeRows();
    const again = this.rows.findIndex((row) => row.key === key);
    this.current = Math.max(0, again);
    if (again < 0) {
      const selected = this.rows.findIndex((row) => this.tree.func[row.node] === this.app.settings.fn);
      if (selected >= 0) this.current = selected;
    }
    this.#makeHead();
    this.list.show(this.rows.length);
  }

  #makeHead() {
    const {app} = this;
    const columns = app.settings.inverted ? ["Weight"] : ["Total", "Self"];
    const cells = columns.flatMap((text) =>
      [el("span", {class: "cell share"}, text), el("span", {class: "cell weight"})]);
    if (app.base) cells.push(el("span", {class: "cell share delta"}, "Change"));
    this.head.className = "row head";
    this.head.replaceChildren(
      ...cells,
      el("span", {class: "cell name"}, app.settings.inverted ? "Function, and its callers below"
                                                            : "Function, and its callees below"),
      el("span", {class: "cell place"}, "Where"));
  }

  #row(index) {
    const {app, tree} = this;
    const {node, depth, key} = this.rows[index];
    const fn = tree.func[node];
    const hasChildren = tree.children(node).length > 0;
    const isOpen = this.openPaths.has(key);
    const of = app.shownTotal;
    const cells = weightCells(app, tree.total[node], of);
    if (!app.settings.inverted) cells.push(...weightCells(app, tree.self[node], of));
    if (app.base) {
      const {now, before} = app.nowAndBefore(tree, node);
      cells.push(deltaCell(app, now, before));
    }
    const name = nameCell(app, fn);
    const toggle = el("span", {class: `toggle${hasChildren ? "" : " none"}`, "aria-hidden": "true"},
                      hasChildren ? (isOpen ? "▾" : "▸") : "");
    name.prepend(toggle);
    name.style.paddingLeft = `${6 + Math.min(depth, 60) * 13}px`;
    const isCurrent = index === this.current;
    const classes = `row${isCurrent ? " current" : ""}${fn === app.settings.fn ? " selected" : ""}`;
    return el("div", {
      class: classes, role: "treeitem", id: isCurrent ? "tree-current" : null,
      "aria-level": depth + 1, "aria-expanded": hasChildren ? String(isOpen) : null,
      "aria-selected": String(isCurrent),
      onclick: (event) => this.#click(index, event.target === toggle),
      ondblclick: () => this.#toggle(index),
    }, ...cells, name, placeCell(app, fn));
  }

  #click(index, onToggle) {
    if (onToggle) this.#toggle(index);
    this.#moveTo(index);
  }

  #toggle(index) {
    const {key} = this.rows[index];
    if (this.openPaths.has(key)) this.openPaths.delete(key);
    else this.openPaths.add(key);
    this.#makeRows();
    this.list.show(this.rows.length);
  }

  // Opens everything below a row that is heavy enough to matter.
  #openAll(index) {
    const {tree} = this;
    const least = this.app.shownTotal * 0.005;
    const pending = [this.rows[index]];
    let left = MOST_OPENED;
    while (pending.length && left-- > 0) {
      const {node, key} = pending.pop();
      this.openPaths.add(key);
      for (const child of tree.children(node)) {
        if (tree.total[child] >= least) pending.push({node: child, key: `${key}.${tree.func[child]}`});
      }
    }
    this.#makeRows();
    this.list.show(this.rows.length);
  }

  #moveTo(index) {
    if (this.rows.length === 0) return;
    this.current = Math.min(this.rows.length - 1, Math.max(0, index));
    const fn = this.tree.func[this.rows[this.current].node];
    this.list.reveal(this.current);
    this.app.state.set({fn, file: -1}, {replace: true});
  }

  #parentOf(index) {
    let above = index - 1;
    while (above >= 0 && this.rows[above].depth >= this.rows[index].depth) above--;
    return above < 0 ? index : above;
  }

  #key(event) {
    const row = this.rows[this.current];
    if (!row || event.ctrlKey || event.metaKey || event.altKey) return;
    const isOpen = this.openPaths.has(row.key);
    const hasChildren = this.tree.children(row.node).length > 0;
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / ROW_HEIGHT) - 1);
    switch (event.key) {
    case "ArrowDown": this.#moveTo(this.current + 1); break;
    case "ArrowUp": this.#moveTo(this.current - 1); break;
    case "PageDown": this.#moveTo(this.current + page); break;
    case "PageUp": this.#moveTo(this.current - page); break;
    case "Home": this.#moveTo(0); break;
    case "End": this.#moveTo(this.rows.length - 1); break;
    case "ArrowRight":
      if (hasChildren && !isOpen) this.#toggle(this.current);
      else if (hasChildren) this.#moveTo(this.current + 1);
      break;
    case "ArrowLeft":
      if (isOpen) this.#toggle(this.current);
      else this.#moveTo(this.#parentOf(this.current));
      break;
    case "*": this.#openAll(this.current); break;
    case "Enter":
      this.app.state.set({view: "flame", order: "heavy", zoom: pathOfNode(this.tree, row.node)});
      break;
    default: return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  focus() { this.scroller.focus({preventScroll: true}); }
}

// The source of a file with the share of each line beside it; the hottest line is marked.
//
// The file is that of the selected function, or one chosen from the list. Where the text is not in
// the page (--no-source, or it could not be read), lines that have samples are shown by number.

import {byId, el} from "pitviper/dom.js";
import {shorten} from "pitviper/format.js";
import {hottestLine, sourceFiles, weighLines} from "pitviper/lines.js";
import {ROW_HEIGHT, weightCells} from "pitviper/rows.js";
import {pythonSpans} from "pitviper/syntax.js";
import {VirtualList} from "pitviper/virtual.js";

export class SourceView {
  constructor(app) {
    this.app = app;
    this.scroller = byId("source-rows");
    this.title = byId("source-title");
    this.select = byId("source-file");
    this.list = new VirtualList(this.scroller, ROW_HEIGHT - 3, (i) => this.#row(i));
    this.texts = [];
    this.numbers = [];
    this.current = 0;
    this.select.addEventListener("change", () => {
      app.state.set({file: Number(this.select.value), fn: -1});
    });
    this.scroller.addEventListener("keydown", (event) => this.#key(event));
  }

  // The file to show: the chosen one, the selected function's, or the heaviest.
  #file(files) {
    const {settings, profile} = this.app;
    if (settings.file > 0) return settings.file;
    if (settings.fn >= 0 && settings.fn < profile.functionCount) {
      const file = profile.functions.file[settings.fn];
      if (file && (profile.isPython(settings.fn) || profile.sourceOfFile.has(file))) return file;
    }
    return files[0]?.file ?? 0;
  }

  update(changed) {
    const {app} = this;
    const {profile, settings} = app;
    const files = sourceFiles(profile, app.rows());
    const file = this.#file(files);
    this.#showFiles(files, file);
    if (!file) {
      this.title.textContent = "No function of this selection has a source file.";
      this.numbers = [];
      this.list.show(0);
      return;
    }
    const isOfFile = settings.fn >= 0 && settings.fn < profile.functionCount
      && profile.functions.file[settings.fn] === file;
    this.lines = weighLines(profile, app.rows(), file, isOfFile ? settings.fn : -1);
    this.self = settings.lens === "python" ? this.lines.work : this.lines.self;
    this.hot = hottestLine(this.lines);
    this.#readText(file);
    const start = isOfFile ? profile.functions.line[settings.fn] : 0;
    this.definition = start;
    this.#showTitle(file, isOfFile);
    const isNew = !changed || ["view", "fn", "file"].some((name) => changed.has(name));
    if (isNew) this.current = Math.max(0, this.numbers.indexOf(this.hot));
    this.list.show(this.numbers.length);
    if (isNew && this.numbers.length) this.list.reveal(this.current, {middle: true});
  }

  #readText(file) {
    const {profile} = this.app;
    const text = profile.sourceOfFile.get(file);
    this.hasText = text !== undefined;
    if (this.hasText) {
      if (this.readFile !== file) {
        this.texts = profile.text(text).split(/\r\n|\n|\r/);
        this.spans = pythonSpans(this.texts);
      }
      this.numbers = this.texts.map((_, i) => i + 1);
    } else {
      this.texts = [];
      this.numbers = [...this.lines.total.keys()].sort((a, b) => a - b);
    }
    this.readFile = file;
  }

  #showTitle(file, isOfFunction) {
    const {app} = this;
    const parts = [];
    if (isOfFunction) parts.push(el("strong", {}, shorten(app.profile.nameOf(app.settings.fn), 200)));
    this.select.title = shorten(app.profile.text(file), 1000);
    if (this.hot) {
      parts.push(el("button", {type: "button", class: "small", id: "source-hot",
                               onclick: () => this.#goTo(this.hot)}, `hottest: line ${this.hot}`));
    }
    if (!this.hasText) parts.push(el("span", {class: "hint"}, "The text of this file is not in the page."));
    this.title.replaceChildren(...parts);
  }

  #showFiles(files, file) {
    const {app} = this;
    const options = files.slice(0, 300);
    if (file && !options.some((row) => row.file === file)) options.push({file, weight: 0});
    this.select.replaceChildren(...options.map((row) =>
      el("option", {value: row.file, selected: row.file === file},
         `${app.shareText(row.weight)}  ${shorten(app.profile.text(row.file), 120)}`)));
    this.select.hidden = options.length === 0;
  }

  #goTo(line) {
    this.current = Math.max(0, this.numbers.indexOf(line));
    this.list.reveal(this.current, {middle: true});
    this.focus();
  }

  #code(index) {
    const text = this.texts[index] ?? "";
    const code = el("span", {class: "cell code"});
    let at = 0;
    for (const [start, end, kind] of this.spans[index] ?? []) {
      if (start > at) code.append(text.slice(at, start));
      code.append(el("span", {class: `py-${kind}`}, text.slice(start, end)));
      at = end;
    }
    code.append(shorten(text.slice(at), 2000));
    return code;
  }

  #row(index) {
    const {app} = this;
    const line = this.numbers[index];
    const classes = ["row", "line"];
    if (line === this.hot) classes.push("hot");
    if (line === this.definition) classes.push("definition");
    if (index === this.current) classes.push("current");
    return el("div", {
      class: classes.join(" "), role: "option", "data-line": line,
      id: index === this.current ? "source-current" : null,
      "aria-selected": String(index === this.current),
      "aria-label": line === this.hot ? `line ${line}, the hottest` : null,
      onclick: () => { this.current = index; this.list.refresh(); },
    },
    ...weightCells(app, this.self.get(line) ?? 0),
    ...weightCells(app, this.lines.total.get(line) ?? 0),
    el("span", {class: "cell number"}, String(line)),
    this.hasText ? this.#code(index) : el("span", {class: "cell code"}));
  }

  // The next line with samples of its own, in either direction.
  #nextHot(direction) {
    for (let i = this.current + direction; i >= 0 && i < this.numbers.length; i += direction) {
      if (this.lines.total.has(this.numbers[i])) return i;
    }
    return this.current;
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || this.numbers.length === 0) return;
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / (ROW_HEIGHT - 3)) - 1);
    const steps = {ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity,
                   End: Infinity};
    if (event.key === "j" || event.key === "k") this.current = this.#nextHot(event.key === "j" ? 1 : -1);
    else if (event.key === "h") this.current = Math.max(0, this.numbers.indexOf(this.hot));
    else if (event.key in steps) {
      this.current = Math.min(this.numbers.length - 1, Math.max(0, this.current + steps[event.key]));
    } else return;
    this.list.reveal(this.current, {middle: event.key.length === 1});
    event.preventDefault();
    event.stopPropagation();
  }

  focus() { this.scroller.focus({preventScroll: true}); }
}

// What is selected, in one place: views read it, controls change it, the address shows it.
//
//     #view=functions&fold=0&range=120-480&zoom=4.17.9&search=json
//
// Only what differs from the default is in the address, so that a link is as short as it can be. A
// link opens the same page with the same things selected. Changes that people would call a step make
// an entry in the browser's history; typing in the search field does not.

const text = {read: (s) => s, write: (v) => v};
const flag = {read: (s) => s === "1", write: (v) => (v ? "1" : "0")};
const number = {read: (s) => (/^-?\d+$/.test(s) ? Number(s) : undefined), write: String};
const choice = (...values) => ({read: (s) => (values.includes(s) ? s : undefined), write: String});
const list = (separator) => ({
  read: (s) => (s.split(separator).every((part) => /^\d+$/.test(part))
    ? s.split(separator).map(Number) : undefined),
  write: (v) => v.join(separator),
});
const span = {
  read: (s) => {
    const match = /^(\d+)-(\d+)$/.exec(s);
    return match && Number(match[1]) < Number(match[2])
      ? [Number(match[1]), Number(match[2])] : undefined;
  },
  write: (v) => `${Math.round(v[0])}-${Math.round(v[1])}`,
};

export const VIEWS = ["flame", "tree", "functions", "source"];

const FIELDS = {
  view: [choice(...VIEWS), "flame"],
  inverted: [flag, false],
  order: [choice("heavy", "time"), "heavy"],
  fold: [flag, true],
  lens: [choice("all", "python", "native"), "all"],
  event: [number, 0],
  wait: [choice("all", "running", "waiting"), "all"],
  range: [span, null],        // ns from the start
  threads: [list(","), null], // indexes
  zoom: [list("."), null],    // functions from the root on
  part: [span, null],         // in time order: from-to, in weight
  fn: [number, -1],           // the selected function
  file: [number, -1],         // of the source view: a string's index; -1: the function's
  sort: [text, ""],           // of the function table: column and direction
  search: [text, ""],
  normal: [flag, true],       // comparisons: shares, not weights
  width: [choice("new", "base"), "new"],
  theme: [choice("auto", "light", "dark"), "auto"],
};

const REPLACE_MS = 150;

const isSame = (a, b) => JSON.stringify(a) === JSON.stringify(b);

export class State {
  constructor(defaults = {}) {
    this.defaults = {};
    for (const [name, [, value]] of Object.entries(FIELDS)) this.defaults[name] = value;
    Object.assign(this.defaults, defaults);
    this.values = {...this.defaults};
    this.listeners = [];
    this.late = null;      // timer of a change that is not in the address yet
    this.lateHash = "";
    this.written = -Infinity;
    this.check = (values) => values; // main.js puts bounds of the profile here
  }

  // Follows the address from now on.
  start() {
    this.values = this.#parse(location.hash);
    window.addEventListener("popstate", () => this.#follow());
    window.addEventListener("hashchange", () => this.#follow());
  }

  subscribe(listener) { this.listeners.push(listener); }

  // set({view: "tree"}); with {replace: true} the step before is forgotten.
  set(patch, {replace = false} = {}) {
    const next = this.check({...this.values, ...patch});
    const changed = Object.keys(next).filter((name) => !isSame(next[name], this.values[name]));
    if (changed.length === 0) return;
    this.values = next;
    this.#writeAddress(replace);
    this.#tell(new Set(changed));
  }

  toHash(values = this.values) {
    const parts = [];
    for (const [name, [kind]] of Object.entries(FIELDS)) {
      if (isSame(values[name], this.defaults[name]) || values[name] === null) continue;
      parts.push(`${name}=${encodeURIComponent(kind.write(values[name]))}`);
    }
    return `#${parts.join("&")}`;
  }

  #parse(hash) {
    const values = {...this.defaults};
    for (const part of hash.replace(/^#/, "").split("&")) {
      const at = part.indexOf("=");
      const field = FIELDS[part.slice(0, at)];
      if (at < 0 || !field) continue;
      try {
        const value = field[0].read(decodeURIComponent(part.slice(at + 1)));
        if (value !== undefined) values[part.slice(0, at)] = value;
      } catch {
        // not a link of ours: the default stands
      }
    }
    return this.check(values);
  }

  #follow() {
    clearTimeout(this.late);
    this.late = null;
    const next = this.#parse(location.hash);
    const changed = Object.keys(next).filter((name) => !isSame(next[name], this.values[name]));
    this.values = next;
    if (changed.length) this.#tell(new Set(changed));
  }

  // Browsers limit how often an address changes, and a key that is held down changes it thirty times
  // a second. So what only replaces is written now and then, and before the next step.
  #writeAddress(replace) {
    if (replace && performance.now() - this.written < REPLACE_MS) {
      this.late ??= setTimeout(() => this.#replaceAddress(), REPLACE_MS);
      this.lateHash = this.toHash();
      return;
    }
    if (!replace && this.late) this.#replaceAddress();
    this.lateHash = this.toHash();
    if (replace) this.#replaceAddress();
    else this.#change(() => history.pushState(null, "", this.lateHash));
  }

  #replaceAddress() {
    clearTimeout(this.late);
    this.late = null;
    this.written = performance.now();
    this.#change(() => history.replaceState(null, "", this.lateHash));
  }

  #change(write) {
    try {
      write();
    } catch {
      // the page works without
    }
  }

  #tell(changed) { for (const listener of this.listeners) listener(changed); }
}

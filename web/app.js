// What views ask: trees, totals, names and colours for what is selected now.
//
// Answers are kept until something they depend on changes, so a view may ask as often as it likes.

import {baseScale, changeOf, ComparedTree, JointFunctions, JointProfile} from "pitviper/compare.js";
import {formatPercent, formatWeight, shorten} from "pitviper/format.js";
import {functionTotals, weightOfMatches} from "pitviper/functions.js";
import {InvertedTree} from "pitviper/inverted.js";
import {weighRows} from "pitviper/lines.js";
import {Model} from "pitviper/model.js";
import {Palette} from "pitviper/palette.js";
import {Search} from "pitviper/search.js";
import {TimeOrder} from "pitviper/timeorder.js";

export class App {
  constructor(state, profile, base) {
    this.state = state;
    this.profile = profile;
    this.model = new Model(profile);
    this.base = base ? {profile: base, model: new Model(base)} : null;
    this.joint = base ? new JointFunctions(profile, base) : null;
    this.names = base ? new JointProfile(profile, base, this.joint) : profile;
    this.dark = false;
    this.memory = {};
  }

  get settings() { return this.state.values; }
  get event() { return this.profile.events[this.settings.event]; }
  get unit() { return this.event?.unit ?? "samples"; }

  // The last answer per question; `key` is all it depends on.
  #once(question, key, make) {
    const last = this.memory[question];
    if (last && last.key === key) return last.value;
    const value = make();
    this.memory[question] = {key, value};
    return value;
  }

  #treeKey() {
    const {event, range, threads, wait, fold, lens, width} = this.settings;
    return JSON.stringify([event, range, threads, wait, fold, lens, this.base ? width : ""]);
  }

  // The tree of the profile itself, from the outermost function on.
  tree() { return this.model.tree(this.settings); }

  // That of the base: all of its time and threads, of the event of the same name.
  baseTree() {
    const {fold, lens, wait} = this.settings;
    const {events} = this.base.profile;
    const same = events.findIndex((event) => event.name === this.event?.name);
    return this.base.model.tree({event: Math.max(0, same), range: null, threads: null, wait,
                                 fold, lens});
  }

  // The tree that is on the screen: compared, inverted, or both.
  shownTree(inverted = this.settings.inverted) {
    return this.#once(`tree ${inverted}`, this.#treeKey(), () => {
      if (inverted) return new InvertedTree(this.shownTree(false), this.names.functionCount);
      if (!this.base) return this.tree();
      return new ComparedTree(this.tree(), this.baseTree(), this.joint, this.settings.width);
    });
  }

  timeOrder() {
    return this.#once("time order", this.#treeKey(), () =>
      new TimeOrder(this.profile, this.tree(), this.model.filter(this.settings)));
  }

  // {self, total} per function; in comparisons also {baseSelf, baseTotal}, all by joint numbers.
  totals() {
    return this.#once("totals", this.#treeKey(), () => {
      const totals = functionTotals(this.tree(), this.profile.functionCount);
      if (!this.base) return totals;
      const before = functionTotals(this.baseTree(), this.base.profile.functionCount);
      const joint = {};
      for (const name of ["self", "total", "baseSelf", "baseTotal"]) {
        joint[name] = new Float64Array(this.joint.count);
      }
      joint.self.set(totals.self);
      joint.total.set(totals.total);
      this.joint.ofBase.forEach((fn, of) => {
        joint.baseSelf[fn] += before.self[of];
        joint.baseTotal[fn] += before.total[of];
      });
      return joint;
    });
  }

  // Weights per stack of frames, for lines.
  rows() {
    const {event, range, threads, wait} = this.settings;
    return this.#once("rows", JSON.stringify([event, range, threads, wait]), () =>
      weighRows(this.profile, this.model.weights(this.settings)));
  }

  get total() { return this.tree().total[0]; }
  get samples() { return this.model.weights(this.settings).samples; }

  // What widths and percentages on the screen are parts of.
  get shownTotal() { return this.shownTree(false).total[0]; }

  get search() {
    const {search} = this.settings;
    return search ? this.#once("search", search, () => new Search(this.names, search)) : null;
  }

  matchedWeight() {
    const {search} = this;
    return search ? weightOfMatches(this.tree(), search.matches) : 0;
  }

  get palette() {
    return this.#once("palette", this.dark, () => new Palette(this.names, this.dark));
  }

  get scale() {
    return baseScale(this.total, this.baseTree().total[0], this.settings.normal);
  }

  // For a node of a compared tree: its weight now, and before (scaled). Which of the two arrays is
  // which depends on what gives the widths.
  nowAndBefore(tree, node) {
    const other = tree.otherTotal[node];
    return this.settings.width === "new"
      ? {now: tree.total[node], before: other * this.scale}
      : {now: other, before: tree.total[node] * this.scale};
  }

  changeOf(tree, node) {
    const {now, before} = this.nowAndBefore(tree, node);
    return changeOf(now, before, this.perSample);
  }

  // What one sample weighs, of the profile where it is more.
  get perSample() {
    const {base} = this;
    const baseSamples = base.profile.quality.samples || 1;
    return Math.max(this.total / (this.samples || 1),
                    (this.baseTree().total[0] * this.scale) / baseSamples);
  }

  weightText(weight) { return formatWeight(weight, this.unit); }
  // With what was counted, where that is not time.
  fullWeightText(weight) {
    return this.unit === "events" ? `${this.weightText(weight)} ${shorten(this.event.name, 40)}`
      : this.weightText(weight);
  }
  shareText(weight, of = this.total) { return formatPercent(of > 0 ? weight / of : 0); }
}

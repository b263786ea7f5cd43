// Two profiles side by side: what grew, what shrank.
//
// Functions of two recordings have different numbers. They are the same function when name, file
// and library are (of a library the name without its path; of Python files the path). Trees are laid
// over each other path by path. The result looks like a WeighedTree of the new profile whose nodes
// also know what they weighed before, so all views can show it.

import {ChildFinder, sumUp} from "pitviper/model.js";

const keyOf = (profile, fn) =>
  `${profile.functions.kind[fn]}\0${profile.nameOf(fn)}\0${profile.fileOf(fn)}\0${
    profile.isPython(fn) ? "" : profile.moduleOf(fn)}`;

// Functions of both under common numbers: those of the new profile keep theirs, those that are only
// in the base come behind.
export class JointFunctions {
  constructor(profile, base) {
    this.ofBase = new Int32Array(base.functionCount);
    this.onlyInBase = [];
    const known = new Map();
    for (let fn = 0; fn < profile.functionCount; fn++) {
      const key = keyOf(profile, fn);
      if (!known.has(key)) known.set(key, fn);
    }
    for (let fn = 0; fn < base.functionCount; fn++) {
      const key = keyOf(base, fn);
      let joint = known.get(key);
      if (joint === undefined) {
        joint = profile.functionCount + this.onlyInBase.length;
        this.onlyInBase.push(fn);
        known.set(key, joint);
      }
      this.ofBase[fn] = joint;
    }
    this.count = profile.functionCount + this.onlyInBase.length;
  }
}

// A profile's names with those of the base behind them: what views ask for names of joint numbers.
export class JointProfile {
  constructor(profile, base, joint) {
    this.profile = profile;
    this.base = base;
    this.joint = joint;
    this.functionCount = joint.count;
    for (const name of ["nameOf", "fileOf", "moduleOf", "modulePathOf", "placeOf", "isPython",
                        "locationOf", "fullLocationOf"]) {
      this[name] = (fn) => (fn < profile.functionCount
        ? profile[name](fn) : base[name](joint.onlyInBase[fn - profile.functionCount]));
    }
  }
}

function addTree(joined, tree, jointOf, into) {
  const at = new Int32Array(tree.shape.count);
  for (let n = 1; n < at.length; n++) {
    if (tree.total[n] === 0) {
      at[n] = -1;
      continue;
    }
    const parent = at[tree.parent[n]];
    const fn = jointOf ? jointOf[tree.func[n]] : tree.func[n];
    const slot = joined.finder.slotOf(parent, fn, joined.parents, joined.fns);
    if (joined.finder.slots[slot] === 0) {
      joined.parents[joined.count] = parent;
      joined.fns[joined.count] = fn;
      joined.finder.slots[slot] = joined.count++;
    }
    at[n] = joined.finder.slots[slot];
    into[at[n]] += tree.self[n];
  }
  into[0] += tree.self[0];
}

export class ComparedTree {
  // `width`: "new" or "base", which of the two gives nodes their weight on the screen.
  constructor(tree, baseTree, joint, width) {
    const most = tree.shape.count + baseTree.shape.count;
    const joined = {finder: new ChildFinder(most), count: 1, parents: new Int32Array(most),
                    fns: new Int32Array(most).fill(-1)};
    const selfNew = new Float64Array(most);
    const selfBase = new Float64Array(most);
    addTree(joined, tree, null, selfNew);
    addTree(joined, baseTree, joint.ofBase, selfBase);
    const {count} = joined;
    this.parent = joined.parents.subarray(0, count);
    this.func = joined.fns.subarray(0, count);
    this.self = (width === "new" ? selfNew : selfBase).subarray(0, count);
    this.otherSelf = (width === "new" ? selfBase : selfNew).subarray(0, count);
    this.total = sumUp(this.self, this.parent);
    this.otherTotal = sumUp(this.otherSelf, this.parent); // the profile that gives no widths
    this.waiting = null;
    this.first = new Int32Array(count); // children as linked lists
    this.next = new Int32Array(count);
    for (let n = count - 1; n > 0; n--) {
      this.next[n] = this.first[this.parent[n]];
      this.first[this.parent[n]] = n;
    }
    this.sorted = new Map();
  }

  children(node) {
    let list = this.sorted.get(node);
    if (list === undefined) {
      list = [];
      for (let c = this.first[node]; c !== 0; c = this.next[c]) if (this.total[c] > 0) list.push(c);
      list.sort((a, b) => this.total[b] - this.total[a] || a - b);
      this.sorted.set(node, list);
    }
    return list;
  }

  childOf(node, fn) {
    for (const child of this.children(node)) if (this.func[child] === fn) return child;
    return -1;
  }
}

// How base weights are scaled before they are compared: with `normal`, both totals count as equal.
export function baseScale(newTotal, baseTotal, normal) {
  return normal && baseTotal > 0 ? newTotal / baseTotal : 1;
}

// How far a change is from what chance does, 0 ... 1. Samples are counted events: of n of them, about
// the square root is noise. Three times that is no chance any more. `each` is what one sample weighs.
export function certainty(now, before, each) {
  const noise = Math.sqrt(Math.max(now, before) * each);
  return noise > 0 ? Math.min(1, Math.abs(now - before) / (3 * noise)) : 0;
}

// -1 ... 1: how much of the larger one is new or gone; what may be chance fades.
export function changeOf(now, before, each) {
  const larger = Math.max(now, before);
  return larger > 0 ? ((now - before) / larger) * certainty(now, before, each) : 0;
}

// Trees of functions, and what they weigh.
//
// A profile's stacks are trees of frames: the same function appears once for each line and address.
// People think in functions, so stacks are first projected on a FunctionTree, whose nodes are paths
// of functions. Which frames take part depends on two switches: fold (the interpreter's own frames
// are gone) and lens (only Python's, or only native ones). There are six such trees; each is made
// when first wanted, and kept.
//
//     sample --> stack --(shape.nodeOf)--> node --> parent node --> ... --> 0, the root
//
// What a filter changes (time range, threads, event, waiting or not) is only what nodes weigh:
// WeighedTree. One pass over samples adds up stacks, one over stacks adds up nodes, one from the
// last node to the first adds children to parents. All in typed arrays: a million samples take some
// tens of milliseconds.

import {KIND} from "pitviper/data.js";

// Finds children by (parent, function) while a tree is made: open addressing, no objects.
export class ChildFinder {
  constructor(most) {
    let size = 16;
    while (size < most * 2) size *= 2;
    this.mask = size - 1;
    this.slots = new Int32Array(size); // node, 0 is free: the root is nobody's child
  }

  // The slot of the child, or the free one where it belongs.
  slotOf(parent, fn, parents, fns) {
    let slot = (Math.imul(parent, 0x9e3779b1) ^ Math.imul(fn + 1, 0x85ebca6b)) >>> 0;
    slot = (slot ^ (slot >>> 15)) & this.mask;
    for (;;) {
      const node = this.slots[slot];
      if (node === 0 || (parents[node] === parent && fns[node] === fn)) return slot;
      slot = (slot + 1) & this.mask;
    }
  }
}

// Children of each node, one after the other: those of n are list[start[n] .. start[n + 1]).
function childLists(parent, count) {
  const start = new Int32Array(count + 2);
  for (let n = 1; n < count; n++) start[parent[n] + 2]++;
  for (let n = 2; n < count + 2; n++) start[n] += start[n - 1];
  const list = new Int32Array(Math.max(count - 1, 0));
  for (let n = 1; n < count; n++) list[start[parent[n] + 1]++] = n;
  return {start, list};
}

class FunctionTree {
  // `rows` is a tree of frames {parent, frame}; `rowOf` maps stacks to its rows (null: they are the
  // same); `keep` tells per function whether it takes part (null: all).
  constructor(profile, rows, rowOf, keep) {
    const most = rows.parent.length;
    const parents = new Int32Array(Math.max(most, 1));
    const fns = new Int32Array(Math.max(most, 1)).fill(-1);
    const nodeOfRow = new Int32Array(most);
    const finder = new ChildFinder(most);
    const functionOf = profile.frames.function;
    let count = 1;
    for (let row = 1; row < most; row++) {
      const above = nodeOfRow[rows.parent[row]];
      const fn = functionOf[rows.frame[row]];
      if (keep && !keep[fn]) {
        nodeOfRow[row] = above;
        continue;
      }
      const slot = finder.slotOf(above, fn, parents, fns);
      let node = finder.slots[slot];
      if (node === 0) {
        node = count++;
        finder.slots[slot] = node;
        parents[node] = above;
        fns[node] = fn;
      }
      nodeOfRow[row] = node;
    }
    this.count = count;
    this.parent = parents.subarray(0, count);
    this.func = fns.subarray(0, count);
    this.nodeOf = rowOf ? rowOf.map((row) => nodeOfRow[row]) : nodeOfRow;
    const {start, list} = childLists(this.parent, count);
    this.childStart = start;
    this.childList = list;
    this.isOutermost = this.#findOutermost(profile.functionCount);
  }

  // Per node: no caller is the same function. Only such nodes count for a function's total, else
  // recursion would be counted once per level.
  #findOutermost(functionCount) {
    const outermost = new Uint8Array(this.count);
    const open = new Int32Array(functionCount);
    const path = [];
    const next = this.childStart.slice(0, this.count);
    let node = 0;
    for (;;) {
      if (next[node] < this.childStart[node + 1]) {
        const child = this.childList[next[node]++];
        outermost[child] = open[this.func[child]]++ === 0 ? 1 : 0;
        path.push(node);
        node = child;
      } else {
        if (path.length === 0) return outermost;
        open[this.func[node]]--;
        node = path.pop();
      }
    }
  }
}

function lensOf(profile, lens) {
  if (lens === "all") return null;
  const keep = new Uint8Array(profile.functionCount);
  for (let fn = 0; fn < keep.length; fn++) {
    keep[fn] = (profile.functions.kind[fn] === KIND.PYTHON) === (lens === "python") ? 1 : 0;
  }
  return keep;
}

// The first index whose time is not before `time`.
export function firstSampleAt(times, time) {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (times[middle] < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

// What samples must be like to count.
//     event    index
//     range    null, or [from, to) in ns from the start
//     threads  null, or a list of indexes
//     wait     "all", "running", "waiting"
class Filter {
  constructor(profile, {event, range, threads, wait}) {
    this.event = event;
    this.first = range ? firstSampleAt(profile.samples.time, range[0]) : 0;
    this.end = range ? firstSampleAt(profile.samples.time, range[1]) : profile.sampleCount;
    this.threadMask = new Uint8Array(profile.threads.tid.length);
    if (threads) for (const thread of threads) this.threadMask[thread] = 1;
    else this.threadMask.fill(1);
    this.waitMask = wait === "all" ? [1, 1] : wait === "running" ? [1, 0] : [0, 1];
    this.key = JSON.stringify([event, range, threads, wait]);
  }
}

// Weight per stack of the samples that a filter lets through: in all, and of waiting ones.
function weighStacks(profile, filter) {
  const {stack, thread, weight, event, waiting} = profile.samples;
  const {threadMask, waitMask} = filter;
  const stacks = profile.stacks.parent.length;
  const all = new Float64Array(stacks);
  const waits = profile.hasWaiting ? new Float64Array(stacks) : null;
  let samples = 0;
  for (let i = filter.first; i < filter.end; i++) {
    if (event[i] !== filter.event || !threadMask[thread[i]] || !waitMask[waiting[i]]) continue;
    all[stack[i]] += weight[i];
    samples++;
    if (waits && waiting[i]) waits[stack[i]] += weight[i];
  }
  return {all, waits, samples};
}

// Adds children to their parents. Parents have smaller numbers.
export function sumUp(self, parent) {
  const total = self.slice();
  for (let n = total.length - 1; n > 0; n--) total[parent[n]] += total[n];
  return total;
}

export class WeighedTree {
  constructor(shape, weights) {
    this.shape = shape;
    this.parent = shape.parent;
    this.func = shape.func;
    this.self = new Float64Array(shape.count);
    for (let s = 0; s < weights.all.length; s++) {
      if (weights.all[s] !== 0) this.self[shape.nodeOf[s]] += weights.all[s];
    }
    this.total = sumUp(this.self, shape.parent);
    this.waiting = null;
    if (weights.waits) {
      const waits = new Float64Array(shape.count);
      for (let s = 0; s < weights.waits.length; s++) waits[shape.nodeOf[s]] += weights.waits[s];
      this.waiting = sumUp(waits, shape.parent);
    }
    this.sorted = new Map();
  }

  // Children that weigh anything, heaviest first. Sorted when first asked for: only a few of 200,000
  // nodes are ever on the screen.
  children(node) {
    let list = this.sorted.get(node);
    if (list === undefined) {
      const {childStart, childList} = this.shape;
      const {total} = this;
      list = childList.subarray(childStart[node], childStart[node + 1])
        .filter((child) => total[child] > 0)
        .sort((a, b) => total[b] - total[a] || a - b);
      this.sorted.set(node, list);
    }
    return list;
  }

  childOf(node, fn) {
    for (const child of this.children(node)) if (this.func[child] === fn) return child;
    return -1;
  }
}

// Everything that is derived from one profile, each thing made once per setting.
export class Model {
  constructor(profile) {
    this.profile = profile;
    this.shapes = new Map();
    this.recent = {};
  }

  shape(fold, lens) {
    const key = `${fold} ${lens}`;
    if (!this.shapes.has(key)) {
      const {profile} = this;
      const rows = fold ? profile.folded : profile.stacks;
      this.shapes.set(key, new FunctionTree(profile, rows, fold ? profile.folded.of : null,
                                            lensOf(profile, lens)));
    }
    return this.shapes.get(key);
  }

  // The last answer is kept, per kind of question.
  #remember(kind, key, make) {
    const last = this.recent[kind];
    if (last && last.key === key) return last.value;
    const value = make();
    this.recent[kind] = {key, value};
    return value;
  }

  filter(settings) {
    const {event, range, threads, wait} = settings;
    const key = JSON.stringify([event, range, threads, wait]);
    return this.#remember("filter", key, () => new Filter(this.profile, settings));
  }

  weights(settings) {
    const filter = this.filter(settings);
    return this.#remember("weights", filter.key, () => weighStacks(this.profile, filter));
  }

  tree(settings) {
    const weights = this.weights(settings);
    const key = `${this.filter(settings).key} ${settings.fold} ${settings.lens}`;
    return this.#remember("tree", key, () =>
      new WeighedTree(this.shape(settings.fold, settings.lens), weights));
  }
}

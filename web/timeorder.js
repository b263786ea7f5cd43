// The flame graph in the order of time: stacks as they came, thread after thread.
//
// x is weight, as in the other order, so widths mean the same. A million samples do not fit on a
// screen: where samples are narrower than a pixel, the one in the middle of each pixel stands for
// its neighbours. Where they are wider, each is there.

import {firstSampleAt} from "pitviper/model.js";

// Functions of rectangles that stand for none.
export const ROOT = -1;
export const MERGED = -2;
export const threadMark = (thread) => -3 - thread;
export const threadOfMark = (mark) => -3 - mark;

export class TimeOrder {
  constructor(profile, tree, filter) {
    this.tree = tree;
    this.profile = profile;
    const {stack, thread, weight, event, waiting} = profile.samples;
    const counts = new Uint32Array(filter.threadMask.length + 1);
    const takes = (i) => event[i] === filter.event && filter.threadMask[thread[i]]
      && filter.waitMask[waiting[i]];
    for (let i = filter.first; i < filter.end; i++) if (takes(i)) counts[thread[i] + 1]++;
    this.threadCount = 0;
    for (let t = 1; t < counts.length; t++) {
      if (counts[t]) this.threadCount++;
      counts[t] += counts[t - 1];
    }
    const count = counts[counts.length - 1];
    this.threads = new Uint32Array(count);
    this.nodes = new Uint32Array(count);
    const weights = new Float64Array(count);
    for (let i = filter.first; i < filter.end; i++) {
      if (!takes(i)) continue;
      const at = counts[thread[i]]++;
      this.threads[at] = thread[i];
      this.nodes[at] = tree.shape.nodeOf[stack[i]];
      weights[at] = weight[i];
    }
    this.ends = weights; // becomes where each sample ends
    for (let i = 1; i < count; i++) this.ends[i] += this.ends[i - 1];
    this.total = count ? this.ends[count - 1] : 0;
  }

  // Samples between two places on the x axis: at most `most` of them, as {sample, from, to}.
  #segments(from, to, most, each) {
    let first = firstSampleAt(this.ends, from);
    if (this.ends[first] === from) first++; // it ends where we begin
    const last = Math.min(this.ends.length - 1, firstSampleAt(this.ends, to));
    if (last - first < most) {
      for (let i = first; i <= last; i++) each(i, i ? this.ends[i - 1] : 0, this.ends[i]);
      return;
    }
    const step = (to - from) / most;
    for (let c = 0; c < most; c++) {
      const middle = from + (c + 0.5) * step;
      const i = Math.min(last, firstSampleAt(this.ends, middle));
      each(i, from + c * step, from + (c + 1) * step);
    }
  }

  #path(i, inverted) {
    const path = [];
    for (let n = this.nodes[i]; n !== 0; n = this.tree.parent[n]) path.push(this.tree.func[n]);
    return inverted ? path : path.reverse();
  }

  // Where a rectangle of layout() really begins and ends. Where a pixel stands for many samples, the
  // border is somewhere between the middle of the first pixel and that of the one before.
  exact(x0, x1, depth, {from, to, pixels, inverted}) {
    const half = (to - from) / Math.max(1, Math.round(pixels)) / 2;
    const frames = depth - (this.threadCount > 1 ? 2 : 1); // index in the path; -1: a thread's row
    const edge = (x, step) => {
      let i = Math.min(this.ends.length - 1, firstSampleAt(this.ends, x));
      const path = this.#path(i, inverted);
      const isSame = (other) => {
        if (this.threads[other] !== this.threads[i]) return false;
        const theirs = this.#path(other, inverted);
        for (let d = 0; d <= frames; d++) if (theirs[d] !== path[d]) return false;
        return true;
      };
      while (this.ends[i + step] !== undefined && isSame(i + step)) i += step;
      return i;
    };
    const first = edge(Math.min(x1, x0 + half), -1);
    const last = edge(Math.max(x0, x1 - half), 1);
    return [first > 0 ? this.ends[first - 1] : 0, this.ends[last]];
  }

  // Rectangles of what is between `from` and `to`; `add(x0, x1, depth, fn)` gets each.
  layout(from, to, pixels, inverted, add) {
    const top = this.threadCount > 1 ? 2 : 1; // rows above the stacks
    const open = []; // {fn, from} per depth, of runs that are not closed
    let thread = -1;
    let threadFrom = from;
    let end = from;
    const close = (depth) => {
      while (open.length > depth) {
        const run = open.pop();
        add(run.from, end, top + open.length, run.fn);
      }
    };
    add(0, this.total, 0, ROOT);
    this.#segments(from, to, Math.max(1, Math.round(pixels)), (i, x0, x1) => {
      const path = this.#path(i, inverted);
      if (this.threads[i] !== thread) {
        close(0);
        if (thread >= 0 && top === 2) add(threadFrom, end, 1, threadMark(thread));
        thread = this.threads[i];
        threadFrom = x0;
      }
      let same = 0;
      while (same < open.length && same < path.length && open[same].fn === path[same]) same++;
      close(same);
      for (let d = same; d < path.length; d++) open.push({fn: path[d], from: x0});
      end = x1;
    });
    close(0);
    if (thread >= 0 && top === 2) add(threadFrom, end, 1, threadMark(thread));
  }
}

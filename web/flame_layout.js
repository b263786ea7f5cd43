// Where the rectangles of a flame graph are.
//
// x counts in weight: the root reaches from 0 to its total. What is narrower than 0.3 pixels is not
// drawn by itself: such siblings, the lightest ones, share one grey rectangle at the right end. So
// the number of rectangles depends on the screen, not on the profile.

import {MERGED, ROOT} from "pitviper/timeorder.js";

const NARROWEST = 0.3;

class Layout {
  constructor() {
    this.count = 0;
    this.x0 = [];
    this.x1 = [];
    this.depth = [];
    this.fn = [];   // function, or one of the marks of timeorder.js
    this.node = []; // of the tree; -1: none
    this.rows = []; // per depth: rectangles, from left to right
  }

  add(x0, x1, depth, fn, node = -1) {
    const i = this.count++;
    this.x0.push(x0);
    this.x1.push(x1);
    this.depth.push(depth);
    this.fn.push(fn);
    this.node.push(node);
    while (this.rows.length <= depth) this.rows.push([]);
    this.rows[depth].push(i);
  }

  // The rectangle at a depth that has x in it; -1: none.
  at(depth, x) {
    const row = this.rows[depth];
    if (!row) return -1;
    let low = 0;
    let high = row.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.x1[row[middle]] <= x) low = middle + 1;
      else high = middle;
    }
    return low < row.length && this.x0[row[low]] <= x ? row[low] : -1;
  }
}

// Of a tree (WeighedTree, InvertedTree, ComparedTree): what is between `from` and `to`.
export function layoutTree(tree, from, to, pixels) {
  const layout = new Layout();
  const narrowest = (NARROWEST * (to - from)) / Math.max(1, pixels);
  if (tree.total[0] === 0) return layout;
  layout.add(0, tree.total[0], 0, ROOT, 0);
  // Depth first with a stack of our own: Python's recursion is deeper than JavaScript's.
  const pending = [{node: 0, x: 0, depth: 1}];
  while (pending.length) {
    const {node, x, depth} = pending.pop();
    const children = tree.children(node);
    const inside = [];
    let left = x;
    let i = 0;
    for (; i < children.length; i++) {
      const width = tree.total[children[i]];
      if (width < narrowest || left >= to) break;
      if (left + width > from) {
        layout.add(left, left + width, depth, tree.func[children[i]], children[i]);
        inside.push({node: children[i], x: left, depth: depth + 1});
      }
      left += width;
    }
    let rest = 0;
    for (; i < children.length; i++) rest += tree.total[children[i]];
    if (rest >= narrowest && left < to && left + rest > from) {
      layout.add(left, left + rest, depth, MERGED);
    }
    while (inside.length) pending.push(inside.pop());
  }
  return layout;
}

// Of samples in the order of time. Runs of one depth close from left to right, so rows are in order.
export function layoutTime(order, from, to, pixels, inverted) {
  const layout = new Layout();
  if (order.total === 0) return layout;
  order.layout(from, to, pixels, inverted, (x0, x1, depth, fn) => layout.add(x0, x1, depth, fn));
  return layout;
}

// The node that a path of functions leads to. Functions that are not on the way any more (a switch
// changed) are left out.
export function nodeOfPath(tree, path) {
  let node = 0;
  for (const fn of path) {
    const child = tree.childOf(node, fn);
    if (child >= 0) node = child;
  }
  return node;
}

export function pathOfNode(tree, node) {
  const path = [];
  for (let n = node; n !== 0; n = tree.parent[n]) path.push(tree.func[n]);
  return path.reverse();
}

// From where to where a node reaches.
export function extentOfNode(tree, node) {
  let x = 0;
  for (let n = node; n !== 0; n = tree.parent[n]) {
    for (const sibling of tree.children(tree.parent[n])) {
      if (sibling === n) break;
      x += tree.total[sibling];
    }
  }
  return [x, x + tree.total[node]];
}

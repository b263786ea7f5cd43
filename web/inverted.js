// The tree from the other end: functions that do the work first, then who called them.
//
// Written out, this tree can have a node for each frame of each stack, ten million of them. It is
// grown where somebody looks instead. A node keeps a list of entries, one per node of the ordinary
// tree that has weight of its own:
//
//     entry = (where we are on the way up to the root, weight of the place we came from)
//
// The children of an inverted node are its entries, one step up, grouped by function. In comparisons
// (compare.js) an entry has a second weight: that of the other profile.

export class InvertedTree {
  constructor(tree, functionCount) {
    this.tree = tree;
    this.func = [-1];
    this.parent = [0];
    this.total = [tree.total[0]];
    this.waiting = null;
    this.groupOf = new Int32Array(functionCount).fill(-1); // scratch for #group
    const cursors = [];
    for (let n = 1; n < tree.self.length; n++) if (tree.self[n] > 0) cursors.push(n);
    const others = tree.otherSelf ?? new Float64Array(tree.self.length);
    // Weight without any frame belongs to no function.
    this.entries = [{cursors: Int32Array.from(cursors),
                     weights: Float64Array.from(cursors, (n) => tree.self[n]),
                     others: Float64Array.from(cursors, (n) => others[n])}];
    if (tree.otherSelf) this.otherTotal = [tree.otherTotal[0]];
    this.kids = new Map();
  }

  // In this tree a node's own weight is what has no further caller.
  selfOf(node) {
    if (node === 0) return this.tree.self[0];
    let rest = this.total[node];
    for (const child of this.children(node)) rest -= this.total[child];
    return Math.max(0, rest);
  }

  children(node) {
    let list = this.kids.get(node);
    if (list === undefined) {
      list = this.#group(node);
      this.kids.set(node, list);
    }
    return list;
  }

  childOf(node, fn) {
    for (const child of this.children(node)) if (this.func[child] === fn) return child;
    return -1;
  }

  #group(node) {
    const {tree, groupOf} = this;
    const {cursors, weights, others} = this.entries[node];
    const fns = [];
    const sizes = [];
    for (let i = 0; i < cursors.length; i++) {
      if (cursors[i] === 0) continue;
      const fn = tree.func[cursors[i]];
      if (groupOf[fn] < 0) {
        groupOf[fn] = fns.length;
        fns.push(fn);
        sizes.push(0);
      }
      sizes[groupOf[fn]]++;
    }
    const groups = sizes.map((size) => ({
      cursors: new Int32Array(size), weights: new Float64Array(size),
      others: new Float64Array(size), used: 0, total: 0, other: 0}));
    for (let i = 0; i < cursors.length; i++) {
      if (cursors[i] === 0) continue;
      const group = groups[groupOf[tree.func[cursors[i]]]];
      group.cursors[group.used] = tree.parent[cursors[i]];
      group.others[group.used] = others[i];
      group.weights[group.used++] = weights[i];
      group.total += weights[i];
      group.other += others[i];
    }
    for (const fn of fns) groupOf[fn] = -1;
    const order = fns.map((_, g) => g).sort((a, b) => groups[b].total - groups[a].total || a - b);
    return Int32Array.from(order, (g) => {
      const child = this.func.length;
      this.func.push(fns[g]);
      this.parent.push(node);
      this.total.push(groups[g].total);
      this.otherTotal?.push(groups[g].other);
      this.entries.push(groups[g]);
      return child;
    });
  }
}

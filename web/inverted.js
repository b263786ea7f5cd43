// The tree from the other end: functions that do the work first, then who called them.
//
// Written out, this tree can have a node for each frame of each stack, ten million of them. It is
// grown where somebody looks instead. There is one list of entries, one for each node of the ordinary
// tree that has weight of its own:
//
//     entry = (cursor: where we are on the way up to the root, weight of the place we came from)
//
// A node of this tree is a piece of the list. To find its children, the piece is sorted by function
// and its cursors go one step up; each child is then a piece of the piece. In comparisons (compare.js)
// entries have a second weight: that of the other profile.

export class InvertedTree {
  constructor(tree, functionCount) {
    this.tree = tree;
    this.func = [-1];
    this.parent = [0];
    this.total = [tree.total[0]];
    this.waiting = null;
    const others = tree.otherSelf;
    this.otherTotal = others ? [tree.otherTotal[0]] : undefined;
    // Weight without any frame belongs to no function: node 0 is left out.
    const leaves = [];
    for (let n = 1; n < tree.self.length; n++) if (tree.self[n] > 0) leaves.push(n);
    this.cursor = Int32Array.from(leaves);
    this.weight = Float64Array.from(leaves, (n) => tree.self[n]);
    this.other = others ? Float64Array.from(leaves, (n) => others[n]) : null;
    this.from = [0];
    this.to = [leaves.length];
    this.kids = new Map();
    this.groupOf = new Int32Array(functionCount).fill(-1);
    this.scratch = {cursor: new Int32Array(leaves.length), weight: new Float64Array(leaves.length),
                    other: others ? new Float64Array(leaves.length) : null};
  }

  children(node) {
    let list = this.kids.get(node);
    if (list === undefined) {
      list = this.#makeChildren(this.#group(this.from[node], this.to[node]), node);
      this.kids.set(node, list);
    }
    return list;
  }

  childOf(node, fn) {
    for (const child of this.children(node)) if (this.func[child] === fn) return child;
    return -1;
  }

  // Sorts a piece of the list by function; entries that have reached the root come first and belong
  // to no group.
  #group(from, to) {
    const {tree, cursor, weight, other, groupOf} = this;
    const groups = [];
    let ended = 0;
    for (let i = from; i < to; i++) {
      if (cursor[i] === 0) {
        ended++;
        continue;
      }
      const fn = tree.func[cursor[i]];
      if (groupOf[fn] < 0) {
        groupOf[fn] = groups.length;
        groups.push({fn, size: 0, total: 0, other: 0, from: 0, at: 0});
      }
      const group = groups[groupOf[fn]];
      group.size++;
      group.total += weight[i];
      if (other) group.other += other[i];
    }
    let at = from + ended;
    for (const group of groups) {
      group.from = group.at = at;
      at += group.size;
    }
    this.#move(from, to, groups);
    for (const {fn} of groups) groupOf[fn] = -1;
    return groups;
  }

  #move(from, to, groups) {
    const {tree, cursor, weight, other, groupOf, scratch} = this;
    let ended = from;
    for (let i = from; i < to; i++) {
      const here = cursor[i];
      const at = here === 0 ? ended++ : groups[groupOf[tree.func[here]]].at++;
      scratch.cursor[at] = here === 0 ? 0 : tree.parent[here];
      scratch.weight[at] = weight[i];
      if (other) scratch.other[at] = other[i];
    }
    cursor.set(scratch.cursor.subarray(from, to), from);
    weight.set(scratch.weight.subarray(from, to), from);
    if (other) other.set(scratch.other.subarray(from, to), from);
  }

  #makeChildren(groups, node) {
    groups.sort((a, b) => b.total - a.total || a.fn - b.fn);
    return Int32Array.from(groups, (group) => {
      const child = this.func.length;
      this.func.push(group.fn);
      this.parent.push(node);
      this.total.push(group.total);
      this.otherTotal?.push(group.other);
      this.from.push(group.from);
      this.to.push(group.from + group.size);
      return child;
    });
  }
}

// Numbers per function: what it does itself, what it takes with all that it calls, who calls it and
// whom it calls; what a search matches.
//
// All of them are sums over nodes of a WeighedTree. Recursion is counted once: only the outermost
// node of a function on a path counts for its total, its callers and its callees. So the callers of
// a function add up to its total, and so do its callees with its own time.

export function functionTotals(tree, functionCount) {
  const {shape} = tree;
  const self = new Float64Array(functionCount);
  const total = new Float64Array(functionCount);
  for (let n = 1; n < shape.count; n++) {
    if (tree.total[n] === 0) continue;
    const fn = shape.func[n];
    self[fn] += tree.self[n];
    if (shape.isOutermost[n]) total[fn] += tree.total[n];
  }
  return {self, total};
}

function sortedRows(sums) {
  return [...sums].map(([fn, weight]) => ({fn, weight}))
    .filter((row) => row.weight > 0).sort((a, b) => b.weight - a.weight || a.fn - b.fn);
}

// fn -1 among callers: it was the outermost function.
export function neighbours(tree, fn) {
  const {shape} = tree;
  const callers = new Map();
  const callees = new Map();
  let own = 0;
  for (let n = 1; n < shape.count; n++) {
    if (shape.func[n] !== fn || !shape.isOutermost[n] || tree.total[n] === 0) continue;
    const caller = shape.func[shape.parent[n]];
    callers.set(caller, (callers.get(caller) ?? 0) + tree.total[n]);
    own += tree.self[n];
    for (let c = shape.childStart[n]; c < shape.childStart[n + 1]; c++) {
      const child = shape.childList[c];
      const callee = shape.func[child];
      callees.set(callee, (callees.get(callee) ?? 0) + tree.total[child]);
    }
  }
  return {callers: sortedRows(callers), callees: sortedRows(callees), own};
}

// What all paths weigh that have a function of the set in them; each sample counts once.
export function weightOfMatches(tree, matches) {
  const {shape} = tree;
  const covered = new Uint8Array(shape.count);
  let weight = 0;
  for (let n = 1; n < shape.count; n++) {
    const above = covered[shape.parent[n]];
    const here = matches[shape.func[n]];
    covered[n] = above | here;
    if (here && !above) weight += tree.total[n];
  }
  return weight;
}

// Own weight per colour class, for the legend.
export function weightOfPlaces(tree, profile) {
  const places = new Float64Array(8);
  for (let n = 1; n < tree.self.length; n++) {
    if (tree.self[n] !== 0) places[profile.placeOf(tree.func[n]) & 7] += tree.self[n];
  }
  return places;
}

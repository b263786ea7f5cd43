// Weight per source line of one file.
//
// Lines are properties of frames, so this goes back from functions to stacks of frames: always the
// folded ones, where the interpreter's work for a line counts for the line. A line that is on a
// stack more than once (recursion) counts once for its total.

import {sumUp} from "pitviper/model.js";
import {KIND} from "pitviper/data.js";

// Folded stacks with their own weight. With lens "python", what native functions do counts for the
// Python line that called them.
function weighRows(profile, weights, lens) {
  const {folded, frames, functions} = profile;
  const self = new Float64Array(folded.parent.length);
  for (let s = 0; s < weights.all.length; s++) self[folded.of[s]] += weights.all[s];
  const total = sumUp(self, folded.parent);
  if (lens === "python") {
    for (let row = self.length - 1; row > 0; row--) {
      if (functions.kind[frames.function[folded.frame[row]]] === KIND.PYTHON) continue;
      self[folded.parent[row]] += self[row];
      self[row] = 0;
    }
  }
  return {self, total};
}

// {self, total}: Maps from line to weight for the file (a string's index); {own}: the lines of the
// function `fn`. Without lines in the frames, functions count at their first line.
export function weighLines(profile, weights, lens, file, fn) {
  const {folded, frames, functions} = profile;
  const rows = weighRows(profile, weights, lens);
  const lineOfFrame = new Int32Array(frames.function.length);
  for (let f = 0; f < lineOfFrame.length; f++) {
    const itsFunction = frames.function[f];
    const itsFile = frames.file[f] || functions.file[itsFunction];
    if (itsFile === file) lineOfFrame[f] = frames.line[f] || functions.line[itsFunction];
  }
  const self = new Map();
  const total = new Map();
  const own = new Set();
  const add = (map, line, weight) => map.set(line, (map.get(line) ?? 0) + weight);
  for (let row = 1; row < rows.total.length; row++) {
    const line = lineOfFrame[folded.frame[row]];
    if (line === 0 || rows.total[row] === 0) continue;
    if (rows.self[row] > 0) add(self, line, rows.self[row]);
    let above = folded.parent[row];
    while (above !== 0 && lineOfFrame[folded.frame[above]] !== line) above = folded.parent[above];
    if (above === 0) add(total, line, rows.total[row]);
    if (frames.function[folded.frame[row]] === fn) own.add(line);
  }
  return {self, total, own};
}

// Where to look first: of the function's lines the one with the most weight; without a function, the
// line of the file that does most itself.
export function hottestLine(lines) {
  const candidates = lines.own.size ? lines.own : lines.total.keys();
  const weigh = lines.own.size ? lines.total : lines.self;
  let best = 0;
  let most = -1;
  for (const line of candidates) {
    const weight = weigh.get(line) ?? 0;
    if (weight > most || (weight === most && line < best)) {
      most = weight;
      best = line;
    }
  }
  return best;
}

// Files with lines to show, heaviest first: {file, weight}. Own weight of their functions.
export function sourceFiles(profile, totals) {
  const sums = new Map();
  for (let fn = 0; fn < profile.functionCount; fn++) {
    const file = profile.functions.file[fn];
    if (!file || totals.total[fn] === 0) continue;
    if (!profile.isPython(fn) && !profile.sourceOfFile.has(file)) continue;
    const sum = sums.get(file) ?? {file, weight: 0, most: 0};
    sum.weight += totals.self[fn];
    sum.most = Math.max(sum.most, totals.total[fn]);
    sums.set(file, sum);
  }
  return [...sums.values()].sort((a, b) => b.weight - a.weight || b.most - a.most);
}

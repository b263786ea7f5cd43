// Weight per source line of one file.
//
// Lines are properties of frames, so this goes back from functions to stacks of frames: always the
// folded ones, where the interpreter's work for a line counts for the line. A line that is on a
// stack more than once (recursion) counts once for its total.

import {sumUp} from "pitviper/model.js";
import {KIND} from "pitviper/data.js";

// Folded stacks with their weight: {self, total, work}. `work` is own weight where native functions
// count for the Python line that called them.
export function weighRows(profile, weights) {
  const {folded, frames, functions} = profile;
  const self = new Float64Array(folded.parent.length);
  for (let s = 0; s < weights.all.length; s++) self[folded.of[s]] += weights.all[s];
  const work = self.slice();
  for (let row = work.length - 1; row > 0; row--) {
    if (functions.kind[frames.function[folded.frame[row]]] === KIND.PYTHON) continue;
    work[folded.parent[row]] += work[row];
    work[row] = 0;
  }
  return {self, total: sumUp(self, folded.parent), work};
}

function add(map, key, weight) {
  map.set(key, (map.get(key) ?? 0) + weight);
}

// {self, total, work}: Maps from line to weight for the file (a string's index); {own}: the lines of
// the function `fn`. Without lines in the frames, functions count at their first line.
export function weighLines(profile, rows, file, fn) {
  const {folded, frames, functions} = profile;
  const lineOfFrame = new Int32Array(frames.function.length);
  for (let f = 0; f < lineOfFrame.length; f++) {
    const itsFunction = frames.function[f];
    const itsFile = frames.file[f] || functions.file[itsFunction];
    if (itsFile === file) lineOfFrame[f] = frames.line[f] || functions.line[itsFunction];
  }
  const self = new Map();
  const total = new Map();
  const work = new Map();
  const own = new Set();
  for (let row = 1; row < rows.total.length; row++) {
    const line = lineOfFrame[folded.frame[row]];
    if (line === 0 || rows.total[row] === 0) continue;
    if (rows.self[row] > 0) add(self, line, rows.self[row]);
    if (rows.work[row] > 0) add(work, line, rows.work[row]);
    let above = folded.parent[row];
    while (above !== 0 && lineOfFrame[folded.frame[above]] !== line) above = folded.parent[above];
    if (above === 0) add(total, line, rows.total[row]);
    if (frames.function[folded.frame[row]] === fn) own.add(line);
  }
  return {self, total, work, own};
}

// Where to look first: of the function's lines the one with the most weight; without a function, the
// line of the file that does most, with the native functions that it calls.
export function hottestLine(lines) {
  const candidates = lines.own.size ? lines.own : lines.total.keys();
  const weigh = lines.own.size ? lines.total : lines.work;
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

// Files with lines to show, those that do most first: [{file, weight}].
export function sourceFiles(profile, rows) {
  const {folded, frames, functions} = profile;
  const sums = new Map();
  for (let row = 1; row < rows.total.length; row++) {
    if (rows.total[row] === 0) continue;
    const frame = folded.frame[row];
    const fn = frames.function[frame];
    const file = frames.file[frame] || functions.file[fn];
    if (file && (profile.isPython(fn) || profile.sourceOfFile.has(file))) add(sums, file, rows.work[row]);
  }
  return [...sums].map(([file, weight]) => ({file, weight})).sort((a, b) => b.weight - a.weight);
}

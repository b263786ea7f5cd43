// How busy threads were over time: weight per slice of time and kind of code.
//
// A row of the timeline is made from the samples of one thread when it comes into sight; a list of
// samples by thread, made once, finds them. A row has nine numbers for each slice: one per colour
// class of the function at work, and one for samples that waited.

export const LAYERS = 9;
export const WAITING_LAYER = 8;

// Samples by thread: those of t are list[start[t] .. start[t + 1]), in the order of time.
function samplesByThread(profile) {
  const {thread} = profile.samples;
  const threads = profile.threads.tid.length;
  const start = new Uint32Array(threads + 2);
  for (let i = 0; i < thread.length; i++) start[thread[i] + 2]++;
  for (let t = 2; t < start.length; t++) start[t] += start[t - 1];
  const list = new Uint32Array(thread.length);
  for (let i = 0; i < thread.length; i++) list[start[thread[i] + 1]++] = i;
  return {start, list};
}

// Colour class per stack, of its innermost function in the given tree.
function placesOfStacks(profile, shape) {
  const places = new Uint8Array(shape.nodeOf.length);
  for (let s = 0; s < places.length; s++) {
    const fn = shape.func[shape.nodeOf[s]];
    places[s] = fn < 0 ? 7 : profile.placeOf(fn) & 7;
  }
  return places;
}

export class Activity {
  constructor(profile) {
    this.profile = profile;
    this.byThread = samplesByThread(profile);
    this.rows = new Map();
    this.key = "";
  }

  // What rows depend on; rows made for other settings go.
  prepare(shape, event, slices) {
    const key = `${event} ${slices}`;
    if (key === this.key && shape === this.shape) return;
    if (shape !== this.shape) this.places = placesOfStacks(this.profile, shape);
    this.key = key;
    this.shape = shape;
    this.event = event;
    this.slices = slices;
    this.rows.clear();
  }

  #addSample(row, i) {
    const {samples, duration} = this.profile;
    if (samples.event[i] !== this.event) return;
    const slice = Math.min(this.slices - 1, Math.floor((samples.time[i] / duration) * this.slices));
    const layer = samples.waiting[i] ? WAITING_LAYER : this.places[samples.stack[i]];
    row[slice * LAYERS + layer] += samples.weight[i];
  }

  // thread -1: all of them together.
  row(thread) {
    let row = this.rows.get(thread);
    if (row === undefined) {
      row = new Float64Array(this.slices * LAYERS);
      const {start, list} = this.byThread;
      const first = thread < 0 ? 0 : start[thread];
      const end = thread < 0 ? list.length : start[thread + 1];
      for (let i = first; i < end; i++) this.#addSample(row, thread < 0 ? i : list[i]);
      this.rows.set(thread, row);
    }
    return row;
  }

  // The fullest slice of a row.
  static highest(row) {
    let highest = 0;
    for (let at = 0; at < row.length; at += LAYERS) {
      let sum = 0;
      for (let layer = 0; layer < LAYERS; layer++) sum += row[at + layer];
      if (sum > highest) highest = sum;
    }
    return highest;
  }
}

// Threads as the timeline shows them: processes by weight, in each its threads by weight.
//     [{process, weight, threads: [{thread, weight}]}]
export function groupThreads(profile, event) {
  const weights = new Float64Array(profile.threads.tid.length);
  const {thread, weight, event: events} = profile.samples;
  for (let i = 0; i < thread.length; i++) if (events[i] === event) weights[thread[i]] += weight[i];
  const groups = new Map();
  weights.forEach((sum, t) => {
    if (sum === 0) return;
    const process = profile.threads.process[t];
    if (!groups.has(process)) groups.set(process, {process, weight: 0, threads: []});
    const group = groups.get(process);
    group.weight += sum;
    group.threads.push({thread: t, weight: sum});
  });
  for (const group of groups.values()) group.threads.sort((a, b) => b.weight - a.weight);
  return [...groups.values()].sort((a, b) => b.weight - a.weight);
}

// From the text in the page to a profile in memory.
//
//     base64 --> gzip --> "PVV1", length, JSON header, columns --> typed arrays
//
// A profile is tables, as on the C side (src/profile/profile.h); a number is an index into a table.
// There is no object per sample, stack or function: a million samples are seven arrays. Texts stay
// UTF-8 until somebody looks at them.

import {readColumn} from "pitviper/columns.js";

export const KIND = {UNRESOLVED: 0, NATIVE: 1, KERNEL: 2, PYTHON: 3};

// Columns whose values may be larger than 32 bits.
const WIDE = new Set(["samples.time", "samples.weight"]);
const NARROW = new Set(["samples.event", "samples.end", "samples.waiting", "functions.kind",
                        "functions.place", "frames.inlined", "modules.kind"]);

const COLUMNS = `strings.length strings.bytes modules.name modules.path modules.kind functions.name
  functions.module functions.file functions.line functions.kind functions.place frames.function
  frames.line frames.file frames.inlined stacks.parent stacks.frame folded.parent folded.frame
  folded.of processes.pid processes.name processes.parent threads.tid threads.process threads.name
  samples.time samples.stack samples.thread samples.weight samples.event samples.end
  samples.waiting sources.file sources.text`.split(/\s+/);

function bytesOfBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text.trim());
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

async function gunzip(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function typeOf(name) {
  if (WIDE.has(name)) return Float64Array;
  return NARROW.has(name) ? Uint8Array : Uint32Array;
}

// The strings of a profile; each is decoded when first asked for.
class Strings {
  constructor(lengths, bytes) {
    this.count = lengths.length;
    this.bytes = bytes;
    this.starts = new Uint32Array(lengths.length + 1);
    for (let i = 0; i < lengths.length; i++) this.starts[i + 1] = this.starts[i] + lengths[i];
    this.texts = new Array(lengths.length);
    this.decoder = new TextDecoder();
  }

  get(index) {
    let text = this.texts[index];
    if (text === undefined) {
      text = this.decoder.decode(this.bytes.subarray(this.starts[index], this.starts[index + 1]));
      this.texts[index] = text;
    }
    return text;
  }
}

// Indexes that point outside of their table would show up as wrong answers much later.
function checkIndexes(tables) {
  const check = (values, limit, name) => {
    for (let i = 0; i < values.length; i++) {
      if (values[i] >= limit) throw new Error(`${name} points outside of its table`);
    }
  };
  const checkTree = (tree, frames, name) => {
    check(tree.frame, Math.max(frames, 1), `${name}.frame`);
    for (let i = 1; i < tree.parent.length; i++) {
      if (tree.parent[i] >= i) throw new Error(`${name}.parent points forward`);
    }
  };
  const {functions, frames, stacks, folded, threads, samples, strings} = tables;
  check(functions.name, strings.count, "functions.name");
  check(functions.file, strings.count, "functions.file");
  check(frames.function, functions.name.length, "frames.function");
  checkTree(stacks, frames.function.length, "stacks");
  checkTree(folded, frames.function.length, "folded");
  check(folded.of, folded.parent.length, "folded.of");
  check(samples.stack, stacks.parent.length, "samples.stack");
  check(samples.thread, threads.tid.length, "samples.thread");
}

// Tables from the bytes of a profile after gunzip.
function readProfile(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < 8 || view.getUint32(0) !== 0x50565631) {
    throw new Error("this is not a profile of pitviper's viewer");
  }
  const headerLength = view.getUint32(4, true);
  if (8 + headerLength > bytes.length) throw new Error("the profile ends inside of its header");
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + headerLength)));
  if (header.version !== 1) throw new Error(`the profile is of version ${header.version}, not 1`);

  const tables = {};
  for (const name of COLUMNS) {
    const [table, field] = name.split(".");
    tables[table] ??= {};
    tables[table][field] = new (typeOf(name))(0);
  }
  let start = 8 + headerLength;
  for (const column of header.columns) {
    const [table, field] = column.name.split(".");
    if (COLUMNS.includes(column.name)) {
      tables[table][field] = readColumn(bytes, column, start,
                                        column.name === "strings.bytes" ? Uint8Array
                                                                        : typeOf(column.name));
    }
    start += column.bytes;
  }
  tables.strings = new Strings(tables.strings.length, tables.strings.bytes);
  checkIndexes(tables);
  return new Profile(header, tables);
}

// What the rest of the viewer works with: the tables, and names for people.
class Profile {
  constructor(header, tables) {
    Object.assign(this, tables);
    this.header = header;
    this.events = header.events;
    this.quality = header.quality;
    this.duration = Math.max(1, header.clock.end_ns - header.clock.start_ns);
    this.functionCount = this.functions.name.length;
    this.sampleCount = this.samples.time.length;
    this.hasWaiting = this.samples.waiting.includes(1);
    this.sourceOfFile = new Map();
    for (let i = 0; i < this.sources.file.length; i++) {
      this.sourceOfFile.set(this.sources.file[i], this.sources.text[i]);
    }
  }

  text(string) { return this.strings.get(string); }
  nameOf(fn) { return this.text(this.functions.name[fn]) || "[unknown]"; }
  fileOf(fn) { return this.text(this.functions.file[fn]); }
  moduleOf(fn) { return this.text(this.modules.name[this.functions.module[fn]] ?? 0); }
  modulePathOf(fn) { return this.text(this.modules.path[this.functions.module[fn]] ?? 0); }
  placeOf(fn) { return this.functions.place[fn]; }
  isPython(fn) { return this.functions.kind[fn] === KIND.PYTHON; }

  // "app.py:12", or the library where there is no line: what stands beside a name.
  locationOf(fn) {
    const file = this.fileOf(fn);
    if (!file) return this.moduleOf(fn);
    const line = this.functions.line[fn];
    const base = file.slice(file.lastIndexOf("/") + 1);
    return line ? `${base}:${line}` : base;
  }

  // The same with the whole path.
  fullLocationOf(fn) {
    const file = this.fileOf(fn);
    if (!file) return this.modulePathOf(fn) || this.moduleOf(fn);
    const line = this.functions.line[fn];
    return line ? `${file}:${line}` : file;
  }

  threadName(thread) {
    return this.text(this.threads.name[thread]) || `thread ${this.threads.tid[thread]}`;
  }

  processName(process) {
    return this.text(this.processes.name[process]) || `process ${this.processes.pid[process]}`;
  }
}

// The profile in the element with this id; null when the page has none. The element's text goes: it
// is as large as everything else together.
export async function loadProfile(id) {
  const element = document.getElementById(id);
  if (!element) return null;
  const bytes = bytesOfBase64(element.textContent.trim());
  element.remove();
  return readProfile(await gunzip(bytes));
}

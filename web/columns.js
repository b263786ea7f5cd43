// Columns of numbers: how a profile is stored, and how it becomes typed arrays.
//
// A column is a run of bytes in one of four encodings:
//
//     bytes    each byte is a value
//     varint   unsigned LEB128
//     delta    zigzag LEB128 of the difference to the value before; the first is a difference to 0
//     runs     pairs of LEB128: a value, and how often it comes
//
// Values are below 2^53, so a double holds each of them exactly; sums of seven-bit groups are done
// in doubles where 32 bits may not be enough. The loops are written out, one per encoding, because a
// profile has millions of values and is decoded while somebody waits.

// Reads one LEB128 behind the common case of a single byte, which the loops do themselves.
function longVarint(bytes, cursor, first) {
  let value = first & 127;
  let factor = 128;
  let byte;
  do {
    byte = bytes[cursor.at++];
    value += (byte & 127) * factor;
    factor *= 128;
  } while (byte >= 128);
  return value;
}

function readVarints(bytes, cursor, out) {
  for (let i = 0; i < out.length; i++) {
    const byte = bytes[cursor.at++];
    out[i] = byte < 128 ? byte : longVarint(bytes, cursor, byte);
  }
}

// The same for zigzag: the lowest bit is the sign. Taken apart first, as the number as a whole may
// have one bit more than a double holds.
function longZigzag(bytes, cursor, first) {
  let size = (first & 127) >>> 1;
  let factor = 64;
  let byte;
  do {
    byte = bytes[cursor.at++];
    size += (byte & 127) * factor;
    factor *= 128;
  } while (byte >= 128);
  return first & 1 ? -size - 1 : size;
}

function readDeltas(bytes, cursor, out) {
  let last = 0;
  for (let i = 0; i < out.length; i++) {
    const byte = bytes[cursor.at++];
    last += byte < 128 ? (byte >>> 1) ^ -(byte & 1) : longZigzag(bytes, cursor, byte);
    out[i] = last;
  }
}

function readRuns(bytes, cursor, end, out) {
  let i = 0;
  while (i < out.length && cursor.at < end) {
    let byte = bytes[cursor.at++];
    const value = byte < 128 ? byte : longVarint(bytes, cursor, byte);
    byte = bytes[cursor.at++];
    const count = byte < 128 ? byte : longVarint(bytes, cursor, byte);
    out.fill(value, i, i + count);
    i += count;
  }
  if (i !== out.length) throw new Error("a column has another number of values than it says");
}

// The values of a column: `column` is its row in the header, `start` where its bytes begin, `Type`
// the array to make (Uint32Array, Float64Array, ...).
export function readColumn(bytes, column, start, Type) {
  const end = start + column.bytes;
  if (!(end <= bytes.length)) throw new Error(`the profile ends inside of ${column.name}`);
  // Every encoding but `runs` has a byte at least for each value.
  if (column.encoding !== "runs" && column.count > column.bytes) {
    throw new Error(`${column.name} is too short for what it says to hold`);
  }
  const out = new Type(column.count);
  const cursor = {at: start};
  switch (column.encoding) {
  case "bytes": out.set(bytes.subarray(start, start + column.count)); cursor.at = end; break;
  case "varint": readVarints(bytes, cursor, out); break;
  case "delta": readDeltas(bytes, cursor, out); break;
  case "runs": readRuns(bytes, cursor, end, out); break;
  default: throw new Error(`${column.name} has an unknown encoding`);
  }
  if (cursor.at !== end) throw new Error(`${column.name} does not end where it says`);
  return out;
}

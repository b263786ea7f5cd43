// Colours for Python source: comments, strings, numbers, keywords, names that are defined.
//
// Good enough for reading, not a parser. A file is gone through once, for strings that reach over
// lines; the answer is, per line, a list of [start, end, class].

const KEYWORDS = new Set(`False None True and as assert async await break class continue def del elif
  else except finally for from global if import in is lambda nonlocal not or pass raise return try
  while with yield match case`.split(/\s+/));

const TOKEN = /(#.*)|((?:[rRbBuUfFtT]{0,2})(?:"""|'''|"|'))|(\b\d[\w.]*)|([A-Za-z_]\w*)|(@[\w.]+)/g;

// Where a string ends that begins at `from`: behind the quote, or -1 when not on this line.
function endOfString(line, from, quote) {
  for (let i = from; i < line.length; i++) {
    if (line[i] === "\\") i++;
    else if (line.startsWith(quote, i)) return i + quote.length;
  }
  return -1;
}

function scanLine(line, openQuote) {
  const spans = [];
  let at = 0;
  let open = openQuote;
  let afterDef = false;
  if (open) {
    const end = endOfString(line, 0, open);
    spans.push([0, end < 0 ? line.length : end, "str"]);
    if (end < 0) return {spans, open};
    at = end;
    open = null;
  }
  for (;;) {
    TOKEN.lastIndex = at;
    const match = TOKEN.exec(line);
    if (!match) return {spans, open: null};
    const start = match.index;
    at = start + match[0].length;
    if (match[1]) spans.push([start, line.length, "com"]);
    else if (match[2]) {
      const quote = match[2].replace(/^[A-Za-z]*/, "");
      const end = endOfString(line, at, quote);
      spans.push([start, end < 0 ? line.length : end, "str"]);
      if (end < 0) return {spans, open: quote.length === 3 ? quote : null};
      at = end;
    } else if (match[3]) spans.push([start, at, "num"]);
    else if (match[5]) spans.push([start, at, "dec"]);
    else if (KEYWORDS.has(match[4])) spans.push([start, at, "key"]);
    else if (afterDef) spans.push([start, at, "def"]);
    afterDef = match[4] === "def" || match[4] === "class";
    if (match[1]) return {spans, open: null};
  }
}

// A line of several KB is data, not something to read.
const LONGEST = 2000;

export function pythonSpans(lines) {
  let open = null;
  return lines.map((line) => {
    if (line.length > LONGEST) return [];
    const scanned = scanLine(line, open);
    open = scanned.open;
    return scanned.spans;
  });
}

// Search over names, files and libraries of functions.
//
// Plain text matches anywhere, whatever the case; between slashes it is a regular expression:
// /^json\./. The answer is a flag per function; views highlight these, and functions.js says what
// they weigh together.

import {shorten} from "pitviper/format.js";

// Where a text matches: [[start, end], ...].
function spansOf(text, pattern) {
  const spans = [];
  for (const match of text.matchAll(pattern)) {
    if (match[0].length > 0) spans.push([match.index, match.index + match[0].length]);
    if (spans.length === 50) break;
  }
  return spans;
}

function patternOf(query) {
  const expression = /^\/(.+)\/$/.exec(query);
  if (!expression) return new RegExp(query.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "giu");
  try {
    return new RegExp(expression[1], "giu");
  } catch {
    return null; // not finished yet
  }
}

export class Search {
  constructor(profile, query) {
    this.query = query;
    this.pattern = patternOf(query);
    this.matches = new Uint8Array(profile.functionCount);
    this.count = 0;
    if (!this.pattern) return;
    const test = new RegExp(this.pattern.source, "iu");
    for (let fn = 0; fn < this.matches.length; fn++) {
      if (test.test(profile.nameOf(fn)) || test.test(profile.fullLocationOf(fn))
          || test.test(profile.moduleOf(fn))) {
        this.matches[fn] = 1;
        this.count++;
      }
    }
  }

  spans(text) { return this.pattern ? spansOf(shorten(text, 2000), this.pattern) : []; }
}

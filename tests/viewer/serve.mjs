// Runs checks in one browser, for tests/e2e/browser.py. Each line of standard input is a request,
// each line of standard output its answer:
//
//     {"check": "zoom", "path": "/tmp/page.html", ...}
//     {"result": ...} or {"error": "what is wrong"}
//
// A check is a function of one of the modules below: check(open, request). `open(options)` opens the
// page of the request. Whatever a check is about, pages must not complain (browser.mjs).

import assert from "node:assert/strict";
import {createInterface} from "node:readline";
import {openBrowser, openPage} from "./browser.mjs";
import * as filters from "./filters.mjs";
import * as looks from "./looks.mjs";
import * as views from "./views.mjs";

const checks = {...filters, ...looks, ...views};

async function run(context, request) {
  const pages = [];
  const open = async (options = {}) => {
    pages.push(await openPage(context, options.path ?? request.path, options));
    return pages.at(-1);
  };
  try {
    assert.ok(checks[request.check], `there is no check ${request.check}`);
    const result = await checks[request.check](open, request);
    assert.deepEqual(pages.flatMap((page) => page.complaints), []);
    return {result: result ?? null};
  } catch (error) {
    return {error: error.stack};
  } finally {
    for (const page of pages) await page.close();
  }
}

const {context, close} = await openBrowser();
for await (const line of createInterface({input: process.stdin})) {
  process.stdout.write(`${JSON.stringify(await run(context, JSON.parse(line)))}\n`);
}
await close();

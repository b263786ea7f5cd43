// Checks of the views: that what people do there works, and that the numbers are those of the data.
// Pages are of tests/targets/phases.py.

import assert from "node:assert/strict";
import {ask, click, clickFrame, frame, functionOf, names, near, press, settle, state, text, totals}
  from "./page.mjs";

// The page shows the flame graph of everything, and says how good the recording is.
export async function load(open) {
  const page = await open();
  const [root] = await ask(page, "frames");
  const {weight, samples} = await totals(page);
  assert.equal(root.weight, weight);
  assert.ok((await names(page)).has("parse"));
  assert.match((await text(page, "#quality")).replaceAll(",", ""), new RegExp(`^${samples} samples`));
  assert.match(await text(page, "#quality"), /complete stacks.*lost/s);
  assert.match(await page.title(), /pitviper/);
  assert.match(await text(page, "#command"), /phases\.py/);
  return {weight, samples};
}

// All functions with their numbers, by their index, for what a link selects.
export async function numbers(open, {hash}) {
  const page = await open({hash});
  return {functions: await ask(page, "functions"), ...(await totals(page))};
}

export async function zoom(open) {
  const page = await open();
  const before = await frame(page, "split_fields");
  await clickFrame(page, "split_fields");
  const after = await frame(page, "split_fields");
  const {zoom: path, fn} = await state(page);
  assert.equal(path.at(-1), fn);
  assert.ok(after.right - after.left > before.right - before.left, "no wider than before");
  near(after.right - after.left, (await page.viewportSize()).width, 0.02, "width");
  assert.equal(after.weight, before.weight);
  assert.ok(!(await names(page)).has("draw"), "what is outside of the zoom is still there");
  // Callers stay in sight, and lead out again.
  await clickFrame(page, "main");
  assert.ok((await names(page)).has("draw"));
  await press(page, "Escape");
  assert.equal((await state(page)).zoom, null);
  await page.goBack();
  await page.goBack();
  await settle(page);
  assert.deepEqual((await state(page)).zoom, path);
  await page.goForward();
  await settle(page);
  assert.ok((await names(page)).has("draw"));
}

export async function hover(open) {
  const page = await open();
  const {left, right, top, weight} = await frame(page, "parse");
  await page.mouse.move((left + right) / 2, top + 8);
  await settle(page);
  const tip = await text(page, "#tip");
  assert.match(tip, /^parse\n/);
  assert.match(tip, /phases\.py:\d+/);
  assert.match(tip, new RegExp(`${((100 * weight) / (await totals(page)).weight).toFixed(1)}.%`));
}

// From the function that works to its callers: own times are the first row.
export async function inverted(open) {
  const page = await open();
  await press(page, "i");
  const frames = await ask(page, "frames");
  const sum = (depth) => frames.filter((f) => f.depth === depth).reduce((s, f) => s + f.weight, 0);
  const {weight} = await totals(page);
  near(sum(1), weight, 1e-9, "first row");
  const first = frames.find((f) => f.depth === 1 && f.name === "split_fields");
  near(first.weight, (await functionOf(page, "split_fields")).self, 1e-9, "own weight");
  const below = frames.find((f) => f.depth === 2 && f.left === first.left);
  assert.ok(["parse", "helper"].includes(below.name), `split_fields is called by ${below.name}`);
}

// Parsing came before drawing; with heaviest first the order is another one.
export async function timeOrder(open) {
  const page = await open();
  await click(page, "#order-time");
  const first = async (name) => Math.min(...(await ask(page, "frames"))
    .filter((f) => f.name === name).map((f) => f.left));
  assert.ok(await first("parse") < await first("draw"));
  near((await ask(page, "frames"))[0].weight, (await totals(page)).weight, 1e-9, "root");
  await clickFrame(page, "draw");
  assert.ok((await state(page)).part);
  assert.ok(!(await names(page)).has("parse"));
  await press(page, "Escape");
  assert.ok((await names(page)).has("parse"));
}

export async function tree(open) {
  const page = await open();
  await press(page, "2", "Home");
  const row = page.locator("#tree-rows .row.current");
  const seen = [];
  for (let i = 0; i < 12 && !seen.includes("parse"); i++) {
    seen.push(await row.locator(".name-text").innerText());
    await press(page, "ArrowDown");
  }
  assert.ok(seen.includes("main"), `rows: ${seen}`);
  const height = () => page.locator("#tree-rows .virtual-space").evaluate((e) => e.clientHeight);
  const before = await height();
  await press(page, "Home", "*");
  assert.ok(await height() > before, "nothing opened");
  await press(page, "Home", "ArrowLeft");
  assert.equal(await page.locator("#tree-rows .row").first().getAttribute("aria-expanded"), "false");
  await press(page, "ArrowRight", "Enter");
  assert.equal((await state(page)).view, "flame");
  assert.equal((await state(page)).zoom.length, 1);
}

export async function invertedTree(open) {
  const page = await open({hash: "#view=tree&inverted=1&lens=python"});
  const weights = [];
  for (const row of await page.locator("#tree-rows .row[aria-level='1']").all()) {
    weights.push([await row.locator(".name-text").innerText(),
                  await row.locator(".share").first().innerText()]);
  }
  const {weight} = await totals(page);
  for (const [name, share] of weights.slice(0, 2)) {
    const {self} = await functionOf(page, name);
    near(parseFloat(share), (100 * self) / weight, 0.01, name);
  }
}

export async function functions(open) {
  const page = await open({hash: "#lens=python"});
  await press(page, "3");
  const rows = page.locator("#table-rows .row");
  const top = await rows.first().locator(".name-text").innerText();
  const all = await ask(page, "functions");
  assert.equal(top, all.reduce((a, b) => (b.self > a.self ? b : a)).name);
  await click(page, ".sort.total");
  const most = all.reduce((a, b) => (b.total > a.total ? b : a));
  near(parseFloat(await rows.first().locator(".share").nth(1).innerText()),
       (100 * most.total) / (await totals(page)).weight, 0.01, "largest total");
  // split_fields is called by parse and by helper; what they take of it is all of it.
  await page.locator("#table-rows .row", {hasText: "split_fields"}).first().click();
  await settle(page);
  const callers = page.locator("#table-side section").first();
  assert.match(await callers.innerText(), /parse/);
  await callers.locator("button", {hasText: "parse"}).click();
  await settle(page);
  const callees = page.locator("#table-side section").nth(1);
  assert.match(await callees.innerText(), /split_fields/);
  assert.match(await text(page, "#table-side h2"), /^parse$/);
}

// Source of the selected function, with the hottest line marked and in sight.
export async function source(open, {line, name}) {
  const page = await open();
  await clickFrame(page, name);
  await press(page, "s");
  assert.equal((await state(page)).view, "source");
  const hot = page.locator("#source-rows .row.hot");
  assert.equal(await hot.count(), 1);
  assert.equal(Number(await hot.getAttribute("data-line")), line);
  assert.equal(await ask(page, "hotLine"), line);
  assert.match(await hot.locator(".code").innerText(), new RegExp(`the hot line of`));
  const [box, view] = [await hot.boundingBox(), await page.locator("#source-rows").boundingBox()];
  assert.ok(box.y >= view.y && box.y + box.height <= view.y + view.height, "not in sight");
  const share = parseFloat(await hot.locator(".share").nth(1).innerText());
  return {share, weight: (await totals(page)).weight};
}

// Without the text of files there are still the numbers of lines.
export async function sourceWithoutText(open, {line}) {
  const page = await open({hash: "#view=source"});
  assert.match(await text(page, "#source-title"), /not in the page/);
  assert.equal(await page.locator(`#source-rows .row[data-line="${line}"]`).count(), 1);
}

export async function compare(open) {
  const page = await open();
  const draw = await functionOf(page, "draw");
  const parse = await functionOf(page, "parse");
  assert.ok(draw.total > draw.baseTotal && parse.total < parse.baseTotal);
  assert.ok((await totals(page)).base > 0);
  const colours = await page.evaluate(() => {
    const canvas = document.getElementById("flame-canvas");
    const context = canvas.getContext("2d");
    const box = canvas.getBoundingClientRect();
    const ratio = canvas.width / box.width;
    return Object.fromEntries(window.pitviper.frames.filter((f) => ["draw", "parse"].includes(f.name))
      .map((f) => [f.name, [...context.getImageData((f.right - box.left - 4) * ratio,
                                                    (f.top - box.top + 4) * ratio, 1, 1).data]]));
  });
  assert.ok(colours.draw[0] > colours.draw[2] + 20, `what grew is not red: ${colours.draw}`);
  assert.ok(colours.parse[2] > colours.parse[0] + 20, `what shrank is not blue: ${colours.parse}`);
  await press(page, "3");
  const cells = (name) => page.locator("#table-rows .row", {hasText: name}).first().locator(".delta");
  assert.match(await cells("draw").last().innerText(), /^\+/);
  assert.match(await cells("parse").last().innerText(), /^−/);
  // Not normalised: the weights themselves are compared.
  const normal = await cells("draw").last().innerText();
  await press(page, "d");
  assert.notEqual(await cells("draw").last().innerText(), normal);
  await press(page, "1", "b");
  assert.equal((await state(page)).width, "base");
  near((await frame(page, "parse")).weight, parse.baseTotal, 1e-9, "width of the base");
}

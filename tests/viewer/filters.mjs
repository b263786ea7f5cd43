// Checks of what filters and selects: time, threads, folding, search, links. Pages are of
// tests/targets/phases.py.

import assert from "node:assert/strict";
import {ask, click, clickFrame, functionOf, names, near, press, selectTime, settle, state, text,
        totals} from "./page.mjs";

// The first tenth has only parsing in it; a filter is for all views.
export async function range(open) {
  const page = await open();
  const all = await totals(page);
  await selectTime(page, 0.12, 0.22);
  const some = await totals(page);
  assert.ok(some.samples > 0 && some.samples < all.samples * 0.3, `${some.samples} of ${all.samples}`);
  assert.equal((await functionOf(page, "draw")).total, 0);
  assert.ok((await functionOf(page, "parse")).total > some.weight * 0.5);
  const [from, to] = (await state(page)).range;
  await press(page, "3");
  assert.equal(await page.locator("#table-rows .row", {hasText: /^.*draw/}).count(), 0);
  await click(page, "#chips .chip");
  assert.deepEqual(await totals(page), all);
  return {from, to, ...some};
}

// Parts of the time add up to all of it.
export async function rangesAddUp(open, {duration}) {
  const page = await open();
  const all = await totals(page);
  let samples = 0;
  let weight = 0;
  for (let part = 0; part < 4; part++) {
    const from = Math.floor((duration / 4) * part);
    const to = part === 3 ? duration + 1 : Math.floor((duration / 4) * (part + 1));
    await page.evaluate((hash) => { location.hash = hash; }, `#range=${from}-${to}`);
    await page.waitForFunction((r) => window.pitviper.state.range?.[1] === r, to);
    const some = await totals(page);
    samples += some.samples;
    weight += some.weight;
  }
  assert.equal(samples, all.samples);
  assert.equal(weight, all.weight);
}

export async function threads(open) {
  const page = await open();
  const all = await totals(page);
  const labels = page.locator("#timeline-labels .thread");
  const count = await labels.count();
  assert.ok(count >= 2, `${count} threads`);
  await labels.first().click();
  await settle(page);
  const one = await totals(page);
  assert.ok(one.samples < all.samples && one.samples > 0);
  assert.equal((await state(page)).threads.length, 1);
  await labels.nth(1).click({modifiers: ["Control"]});
  await settle(page);
  const two = await totals(page);
  assert.ok(two.samples > one.samples);
  assert.equal((await state(page)).threads.length, 2);
  await press(page, "x");
  assert.deepEqual(await totals(page), all);
}

// With folding, the interpreter's own frames are gone; nothing else is.
export async function fold(open) {
  const page = await open({hash: "#inverted=1"});
  const all = await totals(page);
  // A sample may come before the first Python function: its evaluator is all there is to see.
  const evaluator = async () => (await ask(page, "frames")).reduce(
    (sum, f) => sum + (f.name === "_PyEval_EvalFrameDefault" ? f.weight : 0), 0) / all.weight;
  assert.ok(await evaluator() < 0.01, "the evaluator is folded");
  await press(page, "f");
  assert.ok(await evaluator() > 0.1, "the evaluator is there without folding");
  assert.deepEqual(await totals(page), all);
  const fields = (await functionOf(page, "split_fields")).total;
  await click(page, "#fold");
  assert.ok(await evaluator() < 0.01, "the evaluator is folded again");
  assert.equal((await functionOf(page, "split_fields")).total, fields);
}

export async function lens(open) {
  const page = await open();
  const all = await totals(page);
  const total = (await functionOf(page, "draw")).total;
  assert.ok((await names(page)).has("zlib_compress"));
  await press(page, "p");
  assert.ok(!(await names(page)).has("zlib_compress"));
  near((await functionOf(page, "draw")).self, total, 0.02, "draw does what it calls");
  assert.equal((await functionOf(page, "draw")).total, total);
  await press(page, "n");
  assert.ok((await names(page)).has("zlib_compress") && !(await names(page)).has("draw"));
  assert.deepEqual(await totals(page), all);
  await click(page, "#lens-all");
  assert.ok((await names(page)).has("draw"));
}

export async function search(open) {
  const page = await open();
  await press(page, "/");
  await page.keyboard.type("split_f");
  await page.waitForFunction(() => window.pitviper.state.search === "split_f");
  await settle(page);
  const {matched, weight} = await totals(page);
  assert.equal(matched, (await functionOf(page, "split_fields")).total);
  const share = ((100 * matched) / weight).toFixed(1);
  assert.match(await text(page, "#matches"), new RegExp(`1 functions match: ${share}.%`));
  // In tables the part that matches is marked, and only such rows are there.
  await press(page, "Enter", "3");
  assert.equal(await page.locator("#table-rows mark").first().innerText(), "split_f");
  assert.equal(await page.locator("#table-rows .row").count(), 1);
  await press(page, "/", "Escape");
  assert.equal((await state(page)).search, "");
  await press(page, "/");
  await page.keyboard.type("/^(parse|draw)$/");
  await page.waitForFunction(() => window.pitviper.totals.matched > 0);
  near((await totals(page)).matched, (await functionOf(page, "parse")).total
       + (await functionOf(page, "draw")).total, 1e-9, "regular expression");
  await page.keyboard.type("(");
  await settle(page);
}

// A link opens the page as it was, with everything that was selected.
export async function deepLink(open) {
  const page = await open();
  await selectTime(page, 0.05, 0.95);
  await press(page, "i", "p");
  await clickFrame(page, "split_fields");
  await press(page, "/");
  await page.keyboard.type("parse");
  await page.waitForFunction(() => window.pitviper.state.search === "parse");
  await press(page, "Enter", "t");
  await page.waitForFunction(() => /theme=/.test(location.hash));
  const before = {state: await state(page), totals: await totals(page), frames: await ask(page, "frames")};
  await page.reload();
  await page.waitForSelector("html[data-ready]");
  assert.deepEqual(await state(page), before.state);
  assert.deepEqual(await totals(page), before.totals);
  assert.deepEqual(await ask(page, "frames"), before.frames);
  assert.ok(before.state.range && before.state.zoom && before.state.inverted);
  const again = await open({hash: new URL(page.url()).hash});
  assert.deepEqual(await state(again), before.state);
}

// A link of another profile, or of nobody, selects nothing that is not there.
export async function strangeLinks(open) {
  const all = await totals(await open());
  for (const hash of ["#fn=99999999&zoom=1.2.99999999&threads=77777", "#range=9-3&event=12&view=x",
                      "#%E0%A4%A", "#zoom=...&threads=,,&search=%F0%9F%90%8D&file=123456789",
                      "#__proto__=1&constructor=2", "#part=1-2&order=time", "#wait=waiting"]) {
    const page = await open({hash});
    assert.deepEqual({...(await totals(page)), matched: 0}, all, hash);
    await page.close();
  }
}

// A filter that leaves nothing: every view says so, and nothing breaks.
export async function nothing(open) {
  for (const view of ["flame", "flame&order=time", "flame&inverted=1", "tree", "tree&inverted=1",
                      "functions", "source"]) {
    const page = await open({hash: `#range=1-2&view=${view}`});
    assert.equal((await totals(page)).samples, 0);
    await press(page, "f", "p", "n", "i");
    assert.match(await text(page, "#chips"), /0 samples/);
    await press(page, "x");
    assert.ok((await totals(page)).samples > 0);
    await page.close();
  }
}

// Everything can be done with keys alone.
export async function keyboard(open) {
  const page = await open();
  await press(page, "ArrowDown", "ArrowDown");
  assert.ok((await state(page)).fn >= 0);
  assert.match(await text(page, "#flame-status"), /total/);
  await press(page, "Enter");
  assert.ok((await state(page)).zoom.length >= 1);
  await press(page, "Backspace");
  assert.equal((await state(page)).zoom, null);
  await press(page, "m", "ArrowLeft", "Shift+ArrowRight", "Shift+ArrowRight", "Shift+ArrowRight");
  assert.ok((await state(page)).range, "no range was selected");
  await press(page, "Escape");
  assert.equal((await state(page)).range, null);
  await press(page, "v", "o");
  assert.equal((await state(page)).order, "time");
  for (const [key, view] of [["2", "tree"], ["3", "functions"], ["4", "source"], ["1", "flame"]]) {
    await press(page, key);
    assert.equal((await state(page)).view, view);
    assert.ok(await page.locator(`#view-${view}`).isVisible());
  }
  await press(page, "?");
  assert.ok(await page.locator("#help").isVisible());
  await press(page, "Escape");
  assert.ok(!(await page.locator("#help").isVisible()));
  // Each control can be reached with Tab, and shows that it has the focus.
  const reached = new Set();
  for (let i = 0; i < 60; i++) {
    await page.keyboard.press("Tab");
    reached.add(await page.evaluate(() => document.activeElement.id));
  }
  for (const id of ["theme-button", "help-button", "timeline-overview", "tab-flame", "fold", "inverted",
                    "lens-python", "order-time", "search", "flame-canvas"]) {
    assert.ok(reached.has(id), `${id} cannot be reached with Tab`);
  }
}

// A recording of wall-clock time: waiting samples are told apart.
export async function waiting(open) {
  const page = await open();
  const all = await totals(page);
  assert.match(await text(page, "#legend"), /Waiting/);
  await click(page, "#wait-running");
  const running = await totals(page);
  await click(page, "#wait-waiting");
  const asleep = await totals(page);
  assert.equal(running.samples + asleep.samples, all.samples);
  assert.equal(running.weight + asleep.weight, all.weight);
  assert.ok(running.samples > 0 && asleep.samples > 0);
  return {waiting: asleep.samples, samples: all.samples};
}

// Processes are selected with all of their threads.
export async function processes(open, {count}) {
  const page = await open();
  const all = await totals(page);
  const labels = page.locator("#timeline-labels .process");
  assert.equal(await labels.count(), count);
  let samples = 0;
  for (let i = 0; i < count; i++) {
    await labels.nth(i).click();
    await settle(page);
    samples += (await totals(page)).samples;
  }
  assert.equal(samples, all.samples);
}

// Each event has samples, weights and a unit of its own.
export async function events(open, {expected}) {
  const page = await open();
  const options = await page.locator("#event option").allInnerTexts();
  assert.deepEqual(options.map((o) => o.replace(/ \(.*/, "")), expected.map((e) => e.name));
  for (const [index, event] of expected.entries()) {
    await page.selectOption("#event", String(index));
    await settle(page);
    const {samples, weight, unit} = await totals(page);
    assert.deepEqual({name: event.name, samples, weight, unit}, event);
  }
  await press(page, "x");
}

// Numbers as large as the format allows, in each encoding.
export async function columns(open) {
  const page = await open();
  const wrong = await page.evaluate(async () => {
    const {readColumn} = await import("pitviper/columns.js");
    const varint = (value) => {
      const bytes = [];
      let rest = BigInt(value);
      do {
        bytes.push(Number(rest & 127n) | (rest > 127n ? 128 : 0));
        rest >>= 7n;
      } while (rest > 0n);
      return bytes;
    };
    const zigzag = (value) => varint(value < 0n ? -2n * value - 1n : 2n * value);
    const values = [0, 1, 127, 128, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 40 + 12345,
                    2 ** 53 - 1, 3, 2 ** 52, 0, 16383, 16384];
    const deltas = values.flatMap((value, i) => zigzag(BigInt(value) - BigInt(i ? values[i - 1] : 0)));
    const encoded = {
      varint: values.flatMap((value) => varint(value)), delta: deltas,
      runs: values.flatMap((value) => [...varint(value), 1])};
    const bad = [];
    const read = (encoding, bytes, count, Type = Float64Array) =>
      [...readColumn(Uint8Array.from([9, ...bytes, 9]),
                     {name: "x", count, bytes: bytes.length, encoding}, 1, Type)];
    for (const [encoding, bytes] of Object.entries(encoded)) {
      if (read(encoding, bytes, values.length).join() !== values.join()) bad.push(encoding);
    }
    if (read("bytes", [1, 2, 255], 3, Uint8Array).join() !== "1,2,255") bad.push("bytes");
    if (read("runs", [7, 3, 8, 2], 5).join() !== "7,7,7,8,8") bad.push("runs of more than one");
    // What is damaged is refused: too short, too long, a number without end, an unknown encoding.
    const damaged = [["varint", [1, 2], 3], ["varint", [1, 2], 1], ["delta", [128], 1],
                     ["runs", [7, 2], 5], ["runs", [7, 9], 5], ["zip", [1], 1], ["bytes", [1], 2]];
    for (const [encoding, bytes, count] of damaged) {
      try {
        read(encoding, bytes, count);
        bad.push(`${encoding} ${bytes} for ${count} was taken`);
      } catch {
        // as it should be
      }
    }
    return bad;
  });
  assert.deepEqual(wrong, []);
}

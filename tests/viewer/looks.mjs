// Checks of how the page looks and what it stands: themes, phones, hostile names, large profiles.

import assert from "node:assert/strict";
import {ask, click, press, settle, state, totals} from "./page.mjs";

// Of the flame graph the colour that most of it has: its ground. Frames can be anywhere.
const brightness = async (page) => settle(page).then(() => page.evaluate(() => {
  const [r, g, b] = getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number);
  const canvas = document.getElementById("flame-canvas");
  const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const pixels = new Map();
  for (let i = 0; i < data.length; i += 4) {
    const colour = data[i] << 16 | data[i + 1] << 8 | data[i + 2];
    pixels.set(colour, (pixels.get(colour) ?? 0) + 1);
  }
  const [ground] = [...pixels].reduce((a, b) => (b[1] > a[1] ? b : a));
  return {page: (r + g + b) / 3, canvas: ((ground >> 16) + (ground >> 8 & 255) + (ground & 255)) / 3};
}));

// As the system says, until somebody chooses; the choice stays.
export async function themes(open) {
  const light = await open({colorScheme: "light"});
  await light.evaluate(() => localStorage.clear()); // what another check chose
  await light.reload();
  await light.waitForSelector("html[data-ready]");
  assert.ok((await brightness(light)).page > 200 && (await brightness(light)).canvas > 200);
  const dark = await open({colorScheme: "dark"});
  assert.ok((await brightness(dark)).page < 60 && (await brightness(dark)).canvas < 60);
  await click(dark, "#theme-button");
  assert.ok((await brightness(dark)).page > 200 && (await brightness(dark)).canvas > 200);
  await dark.reload();
  await dark.waitForSelector("html[data-ready]");
  await settle(dark);
  assert.ok((await brightness(dark)).page > 200);
}

// On a phone nothing is wider than the screen, and everything can still be reached.
export async function phone(open) {
  const page = await open({viewport: {width: 360, height: 740}});
  for (const view of ["flame", "tree", "functions", "source"]) {
    await click(page, `#tab-${view}`);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= 360, `${view} is ${wide} pixels wide`);
    for (const id of ["search", "fold", "lens-python", "help-button", "theme-button"]) {
      const box = await page.locator(`#${id}`).boundingBox();
      assert.ok(box && box.x >= 0 && box.x + box.width <= 360, `${id} is outside`);
    }
    const box = await page.locator(`#view-${view}`).boundingBox();
    assert.ok(box.height > 200, `${view} has only ${box.height} pixels of height`);
  }
}

// Names in a profile may be anything. They are shown as they are and do nothing.
export async function nastyNames(open, {names}) {
  const page = await open();
  await page.evaluate(() => { window.alert = () => console.error("a name was executed"); });
  const shown = new Set((await ask(page, "functions")).map((f) => f.name));
  // The recorder cuts off what is longer than a name can be.
  const isShown = (name) => shown.has(name)
    || (name.length > 1000 && [...shown].some((s) => s.startsWith(name.slice(0, 900))));
  for (const name of names) assert.ok(isShown(name), `${name.slice(0, 50)} is not there`);
  for (const key of "2*341ioofp?") await press(page, key);
  await press(page, "Escape");
  await press(page, "3");
  for (const name of names) {
    await page.fill("#search", name.slice(0, 200));
    await page.waitForFunction((n) => window.pitviper.state.search === n, name.slice(0, 200));
    await settle(page);
    const text = await page.locator("#table-rows .name-text").allInnerTexts();
    // innerText folds white space as a browser shows it
    const fold = (s) => s.slice(0, 40).replace(/\s+/g, " ").trim();
    assert.ok(text.some((t) => fold(t) === fold(name)), `${name.slice(0, 50)}: ${text.slice(0, 3)}`);
    await page.locator("#table-rows .row").first().click();
    await settle(page);
  }
  await press(page, "Escape");
  // Every frame is pointed at once.
  await page.fill("#search", "");
  await click(page, "#tab-flame");
  for (const f of (await ask(page, "frames")).slice(0, 40)) {
    await page.mouse.move((f.left + f.right) / 2, f.top + 8);
  }
  await settle(page);
  const scripts = await page.evaluate(() => ({
    foreign: [...document.querySelectorAll("svg[onload], img, iframe, script:not([type])")].length,
    wide: document.documentElement.scrollWidth - document.documentElement.clientWidth}));
  assert.deepEqual(scripts, {foreign: 0, wide: 0});
}

// A large profile: opens, filters, scrolls. Returns how long things took; nobody fails by it.
export async function large(open) {
  const page = await open();
  const timings = {...(await ask(page, "timings")), loaded: await page.evaluate(() => performance.now())};
  const timed = async (name, action) => {
    const start = Date.now();
    await action();
    timings[name] = Date.now() - start;
  };
  const all = await totals(page);
  await timed("unfold", () => press(page, "f"));
  await timed("inverted", () => press(page, "i"));
  await timed("time order", () => press(page, "o"));
  await press(page, "o", "i", "f");
  await timed("tree", () => press(page, "2"));
  await timed("functions", () => press(page, "3"));
  await timed("source", () => press(page, "4"));
  await press(page, "1");
  await timed("range", () => press(page, "m", "ArrowLeft", "Shift+ArrowRight"));
  const some = await totals(page);
  assert.ok(some.samples < all.samples && some.samples > 0);
  await press(page, "Escape");
  await timed("search", async () => {
    await page.fill("#search", "function_1");
    await page.waitForFunction(() => window.pitviper.totals.matched > 0);
  });
  await page.fill("#search", "");
  // Of a thousand threads only those in sight have elements; the last can be reached.
  await click(page, "#timeline-more");
  assert.ok(await page.locator("#timeline-labels button").count() < 60);
  await page.locator("#timeline-scroller").evaluate((e) => { e.scrollTop = e.scrollHeight; });
  await settle(page);
  await page.locator("#timeline-labels .thread").last().click();
  await settle(page);
  assert.equal((await state(page)).threads.length, 1);
  return {timings, ...all};
}

// A page whose data is damaged says so.
export async function damaged(open, {expected}) {
  const page = await open();
  assert.match(await page.locator("#loading").innerText(), new RegExp(expected));
  page.complaints.length = 0; // that it says so on the console, too, is right
}

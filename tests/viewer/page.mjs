// What checks do with a page, in the words of somebody who uses it.

import assert from "node:assert/strict";

// Two frames of the screen: what was asked for is drawn then.
export const settle = (page) => page.evaluate(() => new Promise((done) => {
  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)));
}));

export const ask = (page, name) => page.evaluate((n) => window.pitviper[n], name);
export const state = (page) => ask(page, "state");
export const totals = (page) => ask(page, "totals");

export async function press(page, ...keys) {
  for (const key of keys) await page.keyboard.press(key);
  await settle(page);
}

export async function click(page, selector, options) {
  await page.click(selector, options);
  await settle(page);
}

// The widest frame of that name in the flame graph.
export async function frame(page, name) {
  const found = (await ask(page, "frames")).filter((f) => f.name === name);
  assert.ok(found.length, `no frame ${name} in the flame graph`);
  return found.reduce((a, b) => (b.weight > a.weight ? b : a));
}

export async function clickFrame(page, name) {
  const {left, right, top} = await frame(page, name);
  await page.mouse.click((left + right) / 2, top + 8);
  await settle(page);
}

export async function names(page) {
  return new Set((await ask(page, "frames")).map((f) => f.name));
}

// Selects a part of the timeline with the mouse, from and to between 0 and 1.
export async function selectTime(page, from, to) {
  const box = await page.locator("#timeline-overview").boundingBox();
  const y = box.y + box.height / 2;
  await page.mouse.move(box.x + from * box.width, y);
  await page.mouse.down();
  await page.mouse.move(box.x + ((from + to) / 2) * box.width, y);
  await page.mouse.move(box.x + to * box.width, y);
  await page.mouse.up();
  await settle(page);
}

export const text = (page, selector) => page.locator(selector).innerText();

// Function's numbers, by name.
export async function functionOf(page, name) {
  const found = (await ask(page, "functions")).find((f) => f.name === name);
  assert.ok(found, `no function ${name}`);
  return found;
}

export function near(value, expected, tolerance, what) {
  assert.ok(Math.abs(value - expected) <= tolerance * Math.abs(expected),
            `${what}: ${value}, not about ${expected}`);
}

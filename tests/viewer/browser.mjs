// A browser for the tests: Debian's chromium, headless, with a profile folder of its own, and with
// everything noted that must not happen: errors on the console, dialogs, requests to anywhere.

import {mkdtempSync, rmSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {pathToFileURL} from "node:url";
import {chromium} from "playwright-core";

const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
               "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const LOCAL = /^(file|data|blob|about):/;

export async function openBrowser() {
  const folder = mkdtempSync(join(tmpdir(), "pitviper-browser-"));
  const context = await chromium.launchPersistentContext(folder, {
    executablePath: process.env.PITVIPER_CHROMIUM || "/usr/bin/chromium",
    headless: true, args: FLAGS, viewport: {width: 1280, height: 800},
  });
  const close = async () => {
    await context.close();
    rmSync(folder, {recursive: true, force: true, maxRetries: 5});
  };
  return {context, close};
}

// Opens a page of ours and waits until it shows something. `page.complaints` has what went wrong.
export async function openPage(context, path, {hash = "", viewport, colorScheme = "light"} = {}) {
  const page = await context.newPage();
  page.complaints = [];
  page.on("console", (message) => {
    // Reading pixels is what checks do, not the page.
    if (/willReadFrequently/.test(message.text())) return;
    if (["error", "warning"].includes(message.type())) page.complaints.push(message.text());
  });
  page.on("pageerror", (error) => page.complaints.push(`exception: ${error.message}`));
  page.on("dialog", (dialog) => {
    page.complaints.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("request", (request) => {
    if (!LOCAL.test(request.url())) page.complaints.push(`request: ${request.url()}`);
  });
  await page.emulateMedia({colorScheme, reducedMotion: "reduce"});
  if (viewport) await page.setViewportSize(viewport);
  await page.goto(pathToFileURL(path).href + hash);
  await page.waitForSelector("html[data-ready]", {timeout: 60000});
  return page;
}

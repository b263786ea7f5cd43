// Makes the pictures of the viewer in docs/images, light and dark, from real recordings of
// examples/word_index.py:
//
//     node tests/viewer/screenshots.mjs build/pitviper /usr/bin/python3.13 docs/images
//
// What the pictures show of paths is /tmp/demo, which must not exist yet. pngquant makes them a third
// as large: pngquant --ext .png --force docs/images/viewer-*.png

import {execFileSync} from "node:child_process";
import {copyFileSync, mkdirSync, rmSync} from "node:fs";
import {basename, delimiter, dirname, join, resolve} from "node:path";
import {fileURLToPath} from "node:url";
import {openBrowser, openPage} from "./browser.mjs";
import {ask, clickFrame, frame, press, selectTime, settle} from "./page.mjs";

const [program, python, folder] = process.argv.slice(2);
const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const scratch = "/tmp/demo";
const SIZE = {width: 1200, height: 720};

// A command as somebody types it in that folder.
function run(...words) {
  const path = [dirname(resolve(program)), dirname(resolve(python)), process.env.PATH].join(delimiter);
  execFileSync("pitviper", words, {cwd: scratch, env: {...process.env, PATH: path},
                                   stdio: ["ignore", "ignore", "inherit"]});
}

function record(name, ...options) {
  run("record", "-q", "-F", "1999", "-o", name, basename(python), "word_index.py", ...options);
  return name;
}

function view(name, ...options) {
  run("view", "--no-open", "-o", name, ...options);
  return join(scratch, name);
}

mkdirSync(scratch);
copyFileSync(join(root, "examples/word_index.py"), join(scratch, "word_index.py"));
const fast = record("after.data");
const slow = record("before.data", "--slow");
const plain = view("plain.html", "-i", slow);
const compared = view("compared.html", "-i", fast, "--base", slow);

const PICTURES = {
  async flame(open) {
    const page = await open(plain);
    const {left, right, top} = await frame(page, "Article.words");
    await page.mouse.move(left + (right - left) * 0.6, top + 8);
    return page;
  },
  async timeline(open) {
    const page = await open(plain);
    await press(page, "o");
    await selectTime(page, 0.3, 0.62);
    return page;
  },
  async tree(open) { return open(plain, "#view=tree"); },
  async functions(open) {
    const page = await open(plain, "#view=functions&lens=python");
    await page.locator("#table-rows .row", {hasText: "Index.add"}).first().click();
    return page;
  },
  async source(open) {
    const page = await open(plain);
    await clickFrame(page, "Index.add");
    await press(page, "s");
    return page;
  },
  async compare(open) {
    const page = await open(compared, "#normal=0");
    const {left, right, top} = await frame(page, "Index.add");
    await page.mouse.move(left + (right - left) * 0.6, top + 8);
    return page;
  },
  async phone(open) { return open(plain, "", {width: 390, height: 720}); },
};

const {context, close} = await openBrowser();
for (const [name, prepare] of Object.entries(PICTURES)) {
  for (const colorScheme of ["light", "dark"]) {
    const open = (path, hash = "", viewport = SIZE) =>
      openPage(context, path, {hash, viewport, colorScheme});
    const page = await prepare(open);
    await settle(page);
    await page.waitForTimeout(100);
    await page.screenshot({path: join(folder, `viewer-${name}-${colorScheme}.png`)});
    if (page.complaints.length) console.error(name, page.complaints);
    if (name === "flame" && colorScheme === "light") console.log(await ask(page, "totals"));
    await page.close();
  }
}
await close();
rmSync(scratch, {recursive: true});

// The viewer of pitviper: puts its parts together.
//
//     data.js      what is in the page becomes tables         columns.js
//     state.js     what is selected, and the address
//     app.js       answers: trees, totals, names              model.js inverted.js functions.js
//                                                             lines.js timeorder.js compare.js
//     timeline.js  flame.js  tree.js  table.js  source.js     the views
//     controls.js  keys.js  theme.js  search.js               what people touch
//
// A change of the state goes to all parts; each draws what it needs to. A view that is not shown is
// brought up to date when it is.

import {App} from "pitviper/app.js";
import {Controls} from "pitviper/controls.js";
import {loadProfile} from "pitviper/data.js";
import {byId} from "pitviper/dom.js";
import {FlameView} from "pitviper/flame.js";
import {Keys} from "pitviper/keys.js";
import {SourceView} from "pitviper/source.js";
import {State} from "pitviper/state.js";
import {TableView} from "pitviper/table.js";
import {Theme} from "pitviper/theme.js";
import {Timeline} from "pitviper/timeline.js";
import {TreeView} from "pitviper/tree.js";

// A link may come from another profile: what does not exist here is not selected.
function checkAgainst(profile, functionCount) {
  const isFunction = (fn) => Number.isInteger(fn) && fn >= 0 && fn < functionCount;
  const isThread = (t) => Number.isInteger(t) && t >= 0 && t < profile.threads.tid.length;
  return (values) => ({
    ...values,
    event: profile.events[values.event] ? values.event : 0,
    fn: isFunction(values.fn) ? values.fn : -1,
    file: values.file > 0 && values.file < profile.strings.count ? values.file : -1,
    threads: values.threads?.length && values.threads.every(isThread) ? values.threads : null,
    zoom: values.zoom?.length && values.zoom.every(isFunction) ? values.zoom : null,
    wait: profile.hasWaiting ? values.wait : "all",
  });
}

// What tests and the curious may look at: window.pitviper. Nothing in it changes anything.
function publish(app, views, timings) {
  window.pitviper = Object.freeze({
    timings,
    get state() { return JSON.parse(JSON.stringify(app.settings)); },
    get totals() {
      return {weight: app.total, samples: app.samples, unit: app.unit, matched: app.matchedWeight(),
              base: app.base ? app.baseTree().total[0] : null};
    },
    get functions() {
      const {self, total, baseSelf, baseTotal} = app.totals();
      return Array.from(total, (_, fn) => ({
        name: app.names.nameOf(fn), file: app.names.fileOf(fn), self: self[fn], total: total[fn],
        baseSelf: baseSelf?.[fn], baseTotal: baseTotal?.[fn]}));
    },
    get frames() { return views.flame.frames(); },
    get hotLine() { return views.source.hot; },
  });
}

async function start() {
  const began = performance.now();
  const [profile, base] = await Promise.all([loadProfile("profile"), loadProfile("base")]);
  if (!profile) throw new Error("there is no profile in this page");
  const decoded = performance.now();
  const state = new State({event: profile.header.event ?? 0});
  const app = new App(state, profile, base);
  state.check = checkAgainst(profile, app.names.functionCount);
  state.start();

  const views = {flame: new FlameView(app), tree: new TreeView(app), functions: new TableView(app),
                 source: new SourceView(app)};
  const timeline = new Timeline(app);
  const controls = new Controls(app);
  const stale = new Set();
  const update = (changed) => {
    theme.apply();
    controls.update();
    timeline.update();
    for (const [name, view] of Object.entries(views)) {
      if (name !== app.settings.view) stale.add(name);
      else {
        view.update(stale.has(name) ? null : changed);
        stale.delete(name);
      }
    }
  };
  const theme = new Theme(app, () => update(null));
  new Keys(app, views, timeline, theme);
  state.subscribe(update);
  byId("loading").remove();
  byId("page").hidden = false;
  document.body.classList.toggle("compared", Boolean(base));
  update(null);
  requestAnimationFrame(() => {
    publish(app, views, {decoded: decoded - began, shown: performance.now() - began});
    document.documentElement.dataset.ready = "1";
  });
}

start().catch((error) => {
  byId("loading").textContent = `This profile cannot be shown: ${error.message}`;
  document.documentElement.dataset.ready = "failed";
  console.error(error);
});

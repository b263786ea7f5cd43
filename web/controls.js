// What stands above the views: title, quality, tabs, switches, search, and what is selected.

import {byId, el} from "pitviper/dom.js";
import {formatCount, formatPercent, formatTime, shorten} from "pitviper/format.js";
import {weightOfPlaces} from "pitviper/functions.js";
import {changeColour, PLACES, placeColour} from "pitviper/palette.js";
import {VIEWS} from "pitviper/state.js";

export class Controls {
  constructor(app) {
    this.app = app;
    this.search = byId("search");
    const {state} = app;
    for (const view of VIEWS) {
      byId(`tab-${view}`).addEventListener("click", () => state.set({view}));
    }
    byId("tabs").addEventListener("keydown", (event) => this.#tabKey(event));
    this.#switch("inverted", () => ({inverted: !app.settings.inverted, zoom: null, part: null}));
    this.#switch("fold", () => ({fold: !app.settings.fold}));
    this.#switch("normal", () => ({normal: !app.settings.normal}));
    this.#choice("order", ["heavy", "time"]);
    this.#choice("lens", ["all", "python", "native"]);
    this.#choice("wait", ["all", "running", "waiting"]);
    this.#choice("width", ["new", "base"]);
    this.search.addEventListener("input", () => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => state.set({search: this.search.value}, {replace: true}), 60);
    });
    byId("event").addEventListener("change", (event) => {
      state.set({event: Number(event.target.value), zoom: null, part: null});
    });
    this.#showTitle();
    this.#showQuality();
    this.#showEvents();
    byId("wait").hidden = !app.profile.hasWaiting;
    byId("normal").hidden = !app.base;
  }

  #switch(id, patch) {
    byId(id).addEventListener("click", () => this.app.state.set(patch()));
  }

  #choice(id, values) {
    for (const value of values) {
      byId(`${id}-${value}`).addEventListener("click", () => this.app.state.set({[id]: value}));
    }
  }

  #tabKey(event) {
    const step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (!step) return;
    const at = VIEWS.indexOf(this.app.settings.view);
    const view = VIEWS[(at + step + VIEWS.length) % VIEWS.length];
    this.app.state.set({view});
    byId(`tab-${view}`).focus();
    event.preventDefault();
    event.stopPropagation();
  }

  #showTitle() {
    const {header} = this.app.profile;
    const title = header.command || "profile";
    byId("command").textContent = shorten(title, 300);
    const where = [header.recorded, header.host, header.os, header.program].filter(Boolean).join(" · ");
    byId("command").title = [title, where].filter(Boolean).join("\n");
  }

  // How good the recording is, in one line that is always in sight.
  #showQuality() {
    const {quality, duration} = this.app.profile;
    const line = byId("quality");
    const item = (text, isBad, title) =>
      el("span", {class: isBad ? "bad" : "", title}, text);
    const parts = [
      item(`${formatCount(quality.samples)} samples in ${formatTime(duration)}`),
      item(`${formatPercent(quality.samples ? quality.complete / quality.samples : 0)} complete stacks`,
           quality.complete < quality.samples * 0.95,
           "Stacks that reach the outermost function"),
    ];
    const counts = [["truncated", quality.truncated], ["broken", quality.broken],
                    ["without stack", quality.without_stack]];
    for (const [text, count] of counts) {
      if (count > 0) parts.push(item(`${formatCount(count)} ${text}`, count > quality.samples * 0.05));
    }
    const lost = quality.lost_samples;
    parts.push(item(`${formatCount(lost)} lost`, lost > 0));
    if (quality.lost_records) parts.push(item(`${formatCount(quality.lost_records)} records lost`, true));
    if (quality.throttles) parts.push(item(`throttled ${formatCount(quality.throttles)}×`, true));
    if (quality.trigger) parts.push(item(shorten(quality.trigger, 120)));
    if (quality.damage) parts.push(item(shorten(quality.damage, 200), true));
    if (this.app.base) {
      const {header, quality: before} = this.app.base.profile;
      parts.push(item(`compared with ${shorten(header.command || "base", 80)}, ${
        formatCount(before.samples)} samples`));
    }
    line.replaceChildren(...parts);
  }

  #showEvents() {
    const {events} = this.app.profile;
    const select = byId("event");
    select.hidden = events.length < 2;
    select.replaceChildren(...events.map((event, i) =>
      el("option", {value: i}, `${shorten(event.name, 40)} (${formatCount(event.samples)})`)));
  }

  update() {
    const {settings} = this.app;
    for (const view of VIEWS) {
      const tab = byId(`tab-${view}`);
      const isOn = view === settings.view;
      tab.setAttribute("aria-selected", String(isOn));
      tab.tabIndex = isOn ? 0 : -1;
      byId(`view-${view}`).hidden = !isOn;
    }
    for (const id of ["inverted", "fold", "normal"]) {
      byId(id).setAttribute("aria-pressed", String(settings[id]));
    }
    for (const [id, values] of [["order", ["heavy", "time"]], ["lens", ["all", "python", "native"]],
                                ["wait", ["all", "running", "waiting"]], ["width", ["new", "base"]]]) {
      for (const value of values) {
        byId(`${id}-${value}`).setAttribute("aria-pressed", String(settings[id] === value));
      }
    }
    byId("event").value = String(settings.event);
    byId("inverted").hidden = !["flame", "tree"].includes(settings.view);
    byId("order").hidden = settings.view !== "flame" || Boolean(this.app.base);
    byId("width").hidden = settings.view === "functions" || !this.app.base;
    if (document.activeElement !== this.search) this.search.value = settings.search;
    this.#showMatches();
    this.#showChips();
    this.#showLegend();
  }

  #showMatches() {
    const {app} = this;
    const line = byId("matches");
    const {search} = app;
    if (!search) {
      line.textContent = "";
      return;
    }
    const weight = app.matchedWeight();
    line.textContent = search.pattern
      ? `${formatCount(search.count)} functions match: ${app.shareText(weight)}, ${app.weightText(weight)}`
      : "not a regular expression";
  }

  // What is selected, each with a button that takes it back.
  #showChips() {
    const {app} = this;
    const {settings, profile} = app;
    const chips = [];
    const chip = (text, patch, title) => chips.push(el("button", {
      type: "button", class: "chip", title: `${title ?? text}\nClick to take this back.`,
      onclick: () => app.state.set(patch),
    }, text, el("span", {class: "x", "aria-label": "remove"}, "×")));
    if (settings.range) {
      const [from, to] = settings.range;
      chip(`${formatTime(from)} – ${formatTime(Math.min(to, profile.duration))}`, {range: null});
    }
    if (settings.threads) {
      const names = settings.threads.map((t) => profile.threadName(t));
      chip(names.length === 1 ? shorten(names[0], 40) : `${formatCount(names.length)} threads`,
           {threads: null}, shorten(names.join(", "), 500));
    }
    if (settings.zoom) {
      const path = settings.zoom.map((fn) => app.names.nameOf(fn));
      chip(`zoom: ${shorten(path[path.length - 1], 40)}`, {zoom: null}, shorten(path.join(" › "), 1000));
    }
    if (settings.part) chip("part of the time order", {part: null});
    const of = profile.events[settings.event]?.weight ?? 0;
    const summary = el("span", {class: "selected-total", id: "selected-total"},
      `${app.fullWeightText(app.total)} in ${formatCount(app.samples)} samples`
      + (app.total < of ? ` · ${formatPercent(app.total / of)} of all` : ""));
    byId("chips").replaceChildren(summary, ...chips);
  }

  #showLegend() {
    const {app} = this;
    const swatch = (colour) => {
      const box = el("span", {class: "swatch"});
      box.style.background = colour;
      return box;
    };
    if (app.base) {
      byId("legend").replaceChildren(
        ...[[1, "grew"], [0.4, ""], [0, "same"], [-0.4, ""], [-1, "shrank"]].map(([change, text]) =>
          el("span", {class: "legend-item"}, swatch(changeColour(change, app.dark)), text)));
      return;
    }
    const tree = app.tree();
    const places = weightOfPlaces(tree, app.profile);
    const items = PLACES.map((name, place) => {
      if (places[place] === 0 && place > 5) return null;
      return el("span", {class: "legend-item", title: `${name}: own time of such functions`},
                swatch(placeColour(place, app.dark)), name,
                el("span", {class: "legend-share"}, app.shareText(places[place])));
    });
    if (tree.waiting) {
      const title = "The pale band on top of a frame is the part that waited";
      items.push(el("span", {class: "legend-item", title},
                    el("span", {class: "swatch waiting"}), "Waiting",
                    el("span", {class: "legend-share"}, app.shareText(tree.waiting[0]))));
    }
    byId("legend").replaceChildren(...items.filter(Boolean));
  }
}

// A list of any length that only has elements for the rows on the screen.
//
//     const list = new VirtualList(scroller, 22, (index) => element);
//     list.show(200000);
//
// All rows have one height. `scroller` is a scrolling element that belongs to the list.

import {el, oncePerFrame} from "pitviper/dom.js";

const SPARE_ROWS = 6; // above and below the screen, so that scrolling shows no gaps

export class VirtualList {
  constructor(scroller, rowHeight, makeRow) {
    this.scroller = scroller;
    this.rowHeight = rowHeight;
    this.makeRow = makeRow;
    this.count = 0;
    this.space = el("div", {class: "virtual-space", role: "presentation"});
    this.rows = el("div", {class: "virtual-rows", role: "presentation"});
    this.space.append(this.rows);
    scroller.replaceChildren(this.space);
    const refresh = oncePerFrame(() => this.refresh());
    scroller.addEventListener("scroll", refresh, {passive: true});
    new ResizeObserver(refresh).observe(scroller);
  }

  show(count) {
    this.count = count;
    this.space.style.height = `${count * this.rowHeight}px`;
    this.refresh();
  }

  refresh() {
    const {scroller, rowHeight} = this;
    const first = Math.max(0, Math.floor(scroller.scrollTop / rowHeight) - SPARE_ROWS);
    const visible = Math.ceil(scroller.clientHeight / rowHeight) + 2 * SPARE_ROWS;
    const end = Math.min(this.count, first + visible);
    this.rows.style.transform = `translateY(${first * rowHeight}px)`;
    const rows = [];
    for (let i = first; i < end; i++) rows.push(this.makeRow(i));
    this.rows.replaceChildren(...rows);
  }

  // Brings a row into sight; with {middle} into the middle.
  reveal(index, {middle = false} = {}) {
    const {scroller, rowHeight} = this;
    const top = index * rowHeight;
    const height = scroller.clientHeight;
    if (middle) scroller.scrollTop = top - height / 2 + rowHeight / 2;
    else if (top < scroller.scrollTop) scroller.scrollTop = top;
    else if (top + rowHeight > scroller.scrollTop + height) {
      scroller.scrollTop = top + rowHeight - height;
    }
    this.refresh();
  }
}

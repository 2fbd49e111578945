// A list of which only the rows near the window are in the document, so that 10,000 rows stay smooth.

import { el } from "/static/dom.js";

const WHOLE = 300;
const MARGIN = 500;

/**
 * Rows are `<li>` made by `make(item)` and kept by `item.key`; `place(li, item)` is called when a row is shown and
 * when `refresh` is. Rows are of one height until they are unfolded; a shorter list is in the document as a whole.
 */
export class WindowedList {
  constructor({ make, place = () => {}, label }) {
    this.make = make;
    this.place = place;
    this.items = [];
    this.index = new Map();
    this.shown = new Map();
    this.extra = new Map();
    this.rowHeight = 36;
    this.before = el("div", { className: "spacer" });
    this.list = el("ol", { className: "windowed", "aria-label": label });
    this.after = el("div", { className: "spacer" });
    this.root = el("div", { className: "window" }, this.before, this.list, this.after);
    this.waiting = false;
    const soon = () => {
      if (this.waiting || !this.root.isConnected) return;
      this.waiting = true;
      requestAnimationFrame(() => {
        this.waiting = false;
        this.update();
      });
    };
    addEventListener("scroll", soon, { passive: true });
    addEventListener("resize", () => {
      this.measured = false;
      soon();
    });
    this.list.addEventListener("keydown", (event) => this.move(event));
  }

  /** Show these items; rows whose key stays are kept as they are. */
  show(items) {
    this.items = items;
    this.index = new Map(items.map((item, at) => [item.key, at]));
    for (const [key, row] of this.shown) {
      if (!this.index.has(key)) {
        row.remove();
        this.shown.delete(key);
        this.extra.delete(key);
      }
    }
    this.update();
    this.refresh();
  }

  refresh() {
    for (const [key, row] of this.shown) {
      this.place(row, this.items[this.index.get(key)]);
      this.number(row, this.index.get(key));
    }
  }

  /** Tells a screen reader where in the whole list a row is. */
  number(row, at) {
    row.setAttribute("aria-posinset", at + 1);
    row.setAttribute("aria-setsize", this.items.length);
  }

  update() {
    const count = this.items.length;
    let [first, last] = [0, count];
    if (count > WHOLE) {
      this.measure();
      const top = -this.root.getBoundingClientRect().top;
      first = Math.max(0, this.at(top - MARGIN));
      last = Math.min(count, this.at(top + innerHeight + MARGIN) + 1);
    }
    this.render(first, last);
    if (count > WHOLE && !this.measured) this.measure();
    this.before.style.height = `${this.offset(first)}px`;
    this.after.style.height = `${this.offset(count) - this.offset(last)}px`;
  }

  measure() {
    const row = this.list.querySelector("summary");
    if (row && !this.measured) {
      this.rowHeight = row.parentElement.parentElement.getBoundingClientRect().height - (row.parentElement.open ? row.nextElementSibling?.offsetHeight ?? 0 : 0);
      this.measured = true;
    }
    for (const [key, shown] of this.shown) {
      const more = shown.firstElementChild.open ? shown.getBoundingClientRect().height - this.rowHeight : 0;
      if (more > 0) this.extra.set(key, more);
      else this.extra.delete(key);
    }
  }

  render(first, last) {
    const wanted = this.items.slice(first, last);
    const keys = new Set(wanted.map((item) => item.key));
    for (const [key, row] of this.shown) {
      if (!keys.has(key)) {
        row.remove();
        this.shown.delete(key);
      }
    }
    let next = this.list.firstElementChild;
    for (const [step, item] of wanted.entries()) {
      let row = this.shown.get(item.key);
      if (!row) {
        row = this.make(item);
        this.shown.set(item.key, row);
        this.place(row, item);
        this.number(row, first + step);
      }
      if (row === next) next = next.nextElementSibling;
      else this.list.insertBefore(row, next);
    }
  }

  /** How far below the list's top the row with this index begins. */
  offset(at) {
    let y = at * this.rowHeight;
    for (const [key, more] of this.extra) if (this.index.get(key) < at) y += more;
    return y;
  }

  /** The index of the row at this distance from the list's top. */
  at(y) {
    let [low, high] = [0, this.items.length];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.offset(middle) <= y) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** Bring the row with this key into view, and give it; null where there is none. */
  reveal(key) {
    const at = this.index.get(key);
    if (at === undefined) return null;
    if (!this.shown.has(key)) {
      const top = this.root.getBoundingClientRect().top + scrollY;
      scrollTo({ top: top + this.offset(at) - innerHeight / 4, behavior: "instant" });
      this.update();
    }
    const row = this.shown.get(key);
    row.scrollIntoView({ block: "nearest", behavior: "instant" });
    return row;
  }

  move(event) {
    const summary = event.target.closest("summary");
    const step = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
    if (!summary || !step || event.ctrlKey || event.metaKey || event.altKey) return;
    const now = this.index.get(summary.closest("li").dataset.key);
    const to = Math.max(0, Math.min(this.items.length - 1, now + step));
    event.preventDefault();
    this.reveal(this.items[to].key)?.querySelector("summary").focus();
  }
}

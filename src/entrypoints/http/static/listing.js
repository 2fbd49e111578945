// A searchable list that is read page by page.

import { read } from "/static/api.js";
import { el, fill } from "/static/dom.js";
import { skeleton, trouble } from "/static/states.js";

const PAUSE = 200;

/** Fills `root` from `path`, filtered by the text in `search`. `row(data)` makes a row; `none(searched)` what stands for none. */
export class Listing {
  constructor({ root, search, path, row, none, older, limit = 20 }) {
    Object.assign(this, { root, search, path, row, none, older, limit, latest: 0 });
    let typing;
    search.addEventListener("input", () => {
      clearTimeout(typing);
      typing = setTimeout(() => this.load(), PAUSE);
    });
  }

  async load() {
    if (!this.root.childElementCount) fill(this.root, skeleton("Loading…", 6));
    await this.page(`${this.path}?${new URLSearchParams({ limit: this.limit, query: this.search.value })}`, true);
  }

  async page(path, first) {
    const mine = ++this.latest;
    try {
      const { data, next } = await read(path);
      // A newer question was asked meanwhile.
      if (mine !== this.latest) return;
      this.root.querySelector(":scope > .older")?.remove();
      if (first) this.root.replaceChildren();
      this.root.append(...data.map(this.row));
      if (next) this.root.append(el("button", { type: "button", className: "older", onclick: () => this.page(next, false) }, this.older));
      if (!this.root.childElementCount) fill(this.root, this.none(this.search.value));
    } catch (error) {
      if (mine === this.latest) fill(this.root, trouble(error, () => this.load()));
    }
  }
}

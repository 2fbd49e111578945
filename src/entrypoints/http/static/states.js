// What a page, or a part of it, shows when it has nothing else to show.

import { Gone, Refused } from "/static/api.js";
import { el } from "/static/dom.js";

/** What is so, and what can be done. A state of the whole page is its heading, too. */
export function state(title, { bad = false, retry = null, more = null, sign = "", whole = false } = {}) {
  return el("div", { className: `state${bad ? " bad" : ""}`, role: bad ? "alert" : "status" },
    sign && el("span", { className: "sign", "aria-hidden": "true" }, sign),
    el("div", {}, el(whole ? "h1" : "p", { className: "lead" }, title), more, retry && el("p", {}, el("button", { type: "button", onclick: retry }, "Try again"))));
}

/** What went wrong. */
export function trouble(error, retry, whole = false) {
  if (error instanceof Gone) {
    return state(error.message, { bad: true, retry, whole, sign: "⚡", more: el("p", {}, "What is on record is safe; it is only out of reach from here.") });
  }
  if (error instanceof Refused) return state(error.message, { bad: true, retry, whole, sign: "!" });
  console.error(error);
  return state("The page met a fault of its own.", { bad: true, retry, whole, sign: "!" });
}

/** Grey lines where text will be. */
export function skeleton(words, lines = 4) {
  return el("div", { className: "skeleton", role: "status" },
    el("span", { className: "visually-hidden" }, words),
    Array.from({ length: lines }, () => el("i", { "aria-hidden": "true" })));
}

// The case library.

import { el } from "/static/dom.js";
import { traceAddress, when } from "/static/format.js";
import { Listing } from "/static/listing.js";
import { markdown } from "/static/markdown.js";
import { state } from "/static/states.js";

const LONG = 900;
const root = document.getElementById("cases");
const search = document.getElementById("search");
search.value = new URLSearchParams(location.search).get("query") ?? "";

const cases = new Listing({
  root,
  search,
  path: "/api/cases",
  older: "Older cases",
  row: shown,
  none: (searched) => (searched
    ? state(`No case matches “${searched}”.`, { sign: "○" })
    : state("No case yet.", { sign: "○", more: el("p", {}, "Rate a run as useful on its page, and its question and answer are kept here.") })),
});

function shown(found) {
  // A case made of a run's feedback is named by that run; an older one may only know its session.
  const trace = found.sessionId && traceAddress(found.sessionId, found.source === "AUTO" ? found.diagnosisId : null);
  const answer = markdown(found.answer, (sequence) => trace && `${trace}#t${sequence}`);
  const made = el("article", { className: "card case", id: `case-${found.caseId}` },
    el("h2", {}, `Case ${found.caseId}`, found.source === "AUTO" ? null : ` · ${found.source.toLowerCase()}`),
    el("p", { className: "asked text" }, found.query),
    answer,
    el("p", { className: "foot" }, trace && el("a", { href: trace }, "Trace of its run"), when(found.updatedAt), el("code", {}, found.diagnosisId)));
  if (found.answer.length > LONG) fold(answer);
  return made;
}

function fold(answer) {
  answer.classList.add("folded");
  const button = el("button", { type: "button", className: "plain", "aria-expanded": "false" }, "Show all of it");
  button.onclick = () => {
    const folded = answer.classList.toggle("folded");
    button.textContent = folded ? "Show all of it" : "Show less";
    button.setAttribute("aria-expanded", String(!folded));
  };
  queueMicrotask(() => answer.after(button));
}

await cases.load();
if (/^#case-\d+$/.test(location.hash)) {
  const linked = document.getElementById(location.hash.slice(1));
  linked?.classList.add("here");
  linked?.scrollIntoView({ block: "start" });
}

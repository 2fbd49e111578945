// The case library.

import { read } from "/static/api.js";
import { answerText, el, traceAddress, trouble, when } from "/static/show.js";

const cases = document.getElementById("cases");
const search = document.getElementById("search");
let latest = 0;

async function load(from = `/api/cases?${new URLSearchParams({ limit: "20", query: search.value })}`, more = false) {
  const mine = ++latest;
  try {
    const { data, next } = await read(from);
    if (mine !== latest) return;
    cases.querySelector("button.plain")?.remove();
    if (!more) cases.replaceChildren();
    cases.append(...data.map(show));
    if (next) cases.append(el("button", { type: "button", className: "plain", onclick: () => load(next, true) }, "Older cases"));
    if (!cases.children.length) {
      cases.append(el("p", { className: "mute" }, search.value ? "Nothing matches." : "No case yet: rate a run as useful, and it is kept here."));
    }
  } catch (error) {
    if (mine === latest) cases.replaceChildren(trouble(error, () => load()));
  }
}

function show(found) {
  const address = found.sessionId && traceAddress(found.sessionId, found.source === "AUTO" ? found.diagnosisId : null);
  return el("article", { className: "card" },
    el("h2", {}, `Case ${found.caseId}`),
    el("p", { className: "text" }, el("strong", {}, found.query)),
    el("p", { className: "meta" }, when(found.updatedAt), found.source === "AUTO" ? null : el("span", {}, found.source.toLowerCase()), address ? el("a", { href: address }, "Trace") : null, el("code", {}, found.diagnosisId)),
    answerText(found.answer, (sequence) => address && `${address}#t${sequence}`));
}

let typing;
search.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => load(), 200);
});

await load();

// Feedback on exactly the run that is shown.

import { read } from "/static/api.js";
import { card, el, fill } from "/static/dom.js";
import { when } from "/static/format.js";

const RATINGS = { useful: "Useful", not_useful: "Not useful" };

/** The form for a trace's run; for a historical session without a run, for that. */
export function feedback(trace) {
  const { sessionId, runId } = trace;
  const told = el("p", { role: "status", className: "told" }, ...stored(trace.feedback));
  const comment = el("textarea", { id: "comment", rows: 2, maxLength: 4000, value: trace.feedback?.comment ?? "", placeholder: "What was right, what was missing? (optional)" });
  const buttons = Object.entries(RATINGS).map(([rating, words]) =>
    el("button", { type: "button", "aria-pressed": String(trace.feedback?.rating === rating), onclick: () => rate(rating) }, words));

  async function rate(rating) {
    for (const button of buttons) button.disabled = true;
    try {
      const body = { sessionId, runId, feedback: rating, comment: comment.value.trim() ? comment.value : null };
      const { data } = await read("/api/feedback", { method: "POST", body });
      Object.keys(RATINGS).forEach((name, at) => buttons[at].setAttribute("aria-pressed", String(name === data.feedback)));
      fill(told, bound(data, trace.run?.query));
    } catch (error) {
      fill(told, el("span", { className: "bad" }, `Not saved: ${error.message}`));
    }
    for (const button of buttons) button.disabled = false;
  }

  return card(runId ? "Did this run help?" : "Did this help?",
    el("label", { htmlFor: "comment", className: "visually-hidden" }, "Comment"), comment,
    el("div", { className: "row-of" }, buttons, told));
}

function stored(given) {
  if (!given) return [el("span", { className: "mute" }, "Not rated yet.")];
  return [
    el("strong", {}, RATINGS[given.rating] ?? given.rating),
    given.updatedAt && [" since ", when(given.updatedAt)],
    given.comment && [": ", el("q", {}, given.comment)],
  ];
}

function bound(receipt, question) {
  const made = receipt.caseId !== null && receipt.caseId !== undefined;
  return [
    el("strong", {}, RATINGS[receipt.feedback] ?? receipt.feedback),
    receipt.runId && [" · bound to ", el("code", {}, receipt.runId)],
    made && [" · ", el("a", { href: `/cases?${new URLSearchParams({ query: question ?? "" })}#case-${receipt.caseId}` }, `case ${receipt.caseId}`)],
    !made && receipt.feedback === "not_useful" && el("span", { className: "mute" }, " · no case is kept of it"),
  ];
}

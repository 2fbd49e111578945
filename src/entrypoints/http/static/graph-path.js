// The way that a run took through its graph.

import { card, el } from "/static/dom.js";
import { plural } from "/static/format.js";

const REASONS = {
  COMPOSED: "the evidence held, and the answer was composed from it",
  EVIDENCE_EXHAUSTED: "the evidence stayed too thin after every retry, so the fallback answered",
  STEP_LIMIT: "the steps allowed were used up, so the fallback answered",
  MODEL_FAILED: "the model failed, so the fallback answered",
  TIMEOUT: "the run passed its time limit and was ended",
  ERROR: "a fault ended the run",
  INTERRUPTED: "the run was interrupted",
};

/** Why a graph ended, in words. */
export function reason(orchestration) {
  return orchestration && (REASONS[orchestration.terminationReason] ?? orchestration.terminationReason);
}

export function graphPath(orchestration) {
  const { transitions, finalNode, terminationReason, degraded, evidenceRetryCount } = orchestration;
  const ended = terminationReason === "COMPOSED" ? "ok" : degraded ? "warn" : "bad";
  const ORDER = ["START", "planner", "executor", "evidence_check", "composer", "fallback"];
  let retries = 0;
  const nodes = transitions.map(({ from, to }, at) => {
    const back = ORDER.indexOf(to) >= 0 && ORDER.indexOf(to) < ORDER.indexOf(from);
    const final = at === transitions.length - 1 && terminationReason;
    if (back) retries += 1;
    return el("li", {},
      at > 0 && el("span", { className: back ? "arrow warn" : "arrow", "aria-hidden": "true" }, back ? "↺" : "→"),
      back && el("span", { className: "retry-count" }, `retry ${retries}`),
      el("span", { className: `node${final ? ` last ${ended}` : back ? " retry" : ""}` }, final ? `${{ ok: "✓", warn: "⚠", bad: "✗" }[ended]} ${to}` : to),
      final && el("span", { className: "visually-hidden" }, to === finalNode ? " (final node)" : " (ended here)"));
  });
  return card("How it went",
    el("ol", { className: "path" }, nodes),
    terminationReason && el("p", { className: "mute" },
      el("span", { className: ended }, el("code", {}, terminationReason)), `: ${reason(orchestration)}`,
      evidenceRetryCount > 0 && `; ${plural(evidenceRetryCount, "evidence retry", "evidence retries")}`));
}

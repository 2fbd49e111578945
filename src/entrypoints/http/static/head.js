// The top of a run's page: what was asked, how it ended, and what must not be overlooked.

import { el } from "/static/dom.js";
import { duration, plural, statusPill, when } from "/static/format.js";
import { reason } from "/static/graph-path.js";
import { copyButton } from "/static/values.js";

export function head(trace) {
  const { run, session, sessionId } = trace;
  if (!run) {
    return [
      el("h1", {}, `Session ${sessionId}`),
      el("p", { className: "meta" }, el("span", {}, session.status.toLowerCase()), el("span", {}, "last active ", when(session.lastActiveAt)),
        session.source === "diagnosis_session" && el("span", { className: "pill mute" }, "from before runs were kept")),
    ];
  }
  return [
    run.query.length > 400 ? longQuestion(run.query) : el("h1", {}, run.query),
    el("p", { className: "meta" }, figures(trace).map((figure) => (figure instanceof Node ? figure : el("span", {}, figure)))),
    el("p", { className: "meta ids" },
      el("span", {}, "run ", el("code", {}, run.runId), " ", copyButton(run.runId, "run id")),
      el("span", {}, "session ", el("code", {}, run.sessionId), " ", copyButton(run.sessionId, "session id")),
      el("a", { href: `/?${new URLSearchParams({ sessionId: run.sessionId })}` }, "Ask more in this session")),
  ];
}

function longQuestion(query) {
  return [
    el("h1", {}, `${query.slice(0, 300)}…`),
    el("details", { className: "plain-details" }, el("summary", {}, `The whole question, ${plural(query.length, "character")}`), el("p", { className: "text" }, query)),
  ];
}

function figures({ run, agentSteps, toolInvocations }) {
  const tokens = agentSteps.reduce((sum, step) => sum + (step.inputTokens ?? 0) + (step.outputTokens ?? 0), 0);
  const retries = run.orchestrationTrace?.evidenceRetryCount ?? 0;
  return [
    statusPill(run.status),
    run.degraded && el("span", { className: "pill warn" }, "⚠ Degraded"),
    retries > 0 && el("span", { className: "pill warn" }, `↺ ${plural(retries, "evidence retry", "evidence retries")}`),
    run.agentFlow,
    duration(run.durationMs),
    `${plural(agentSteps.length, "step")} · ${plural(toolInvocations.length, "tool call")}`,
    tokens > 0 && plural(tokens, "token"),
    when(run.createdAt, { full: true }),
  ].filter(Boolean);
}

/** What is wrong with this run, as banners. */
export function banners({ run }) {
  if (!run) return [];
  const shown = [];
  if (run.status === "RUNNING") {
    shown.push(banner("live", "Running.", "What has happened so far is shown; the page fills in by itself."));
  }
  if (run.status === "FAILED") {
    shown.push(banner("bad", "This run failed.", run.errorMessage ?? "No reason was recorded.", "alert"));
  } else if (run.errorMessage) {
    shown.push(banner("warn", "It says:", run.errorMessage));
  }
  if (run.degraded) {
    const why = reason(run.orchestrationTrace);
    shown.push(banner("warn", "This answer is degraded.", `It was made without something it should have had${why ? `: ${why}` : ""}. Check it against the evidence before you act on it.`));
  }
  return shown;
}

function banner(kind, lead, words, role = "status") {
  return el("div", { className: `banner ${kind}`, role },
    el("span", { className: "sign", "aria-hidden": "true" }, { live: "●", bad: "✗", warn: "⚠" }[kind]),
    el("p", {}, el("strong", {}, lead), " ", words));
}

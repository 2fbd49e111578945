// The page of one run: the one its address names, or the session's latest.

import { read, Refused } from "/static/api.js";
import { answerText, duration, el, inShort, plural, size, state, statusPill, traceAddress, trouble, value, when } from "/static/show.js";

const REFRESH = 2000;
const asked = new URLSearchParams(location.search);
const sessionId = asked.get("sessionId") ?? "";
let runId = asked.get("runId") || null;

const page = document.getElementById("trace");
const list = document.getElementById("runs");
const base = `/api/diagnosis/${encodeURIComponent(sessionId)}/trace`;

async function load() {
  if (!sessionId) {
    page.replaceChildren(state("No session is named in this page's address.", { more: toConsole() }));
    return;
  }
  try {
    const path = runId === null ? base : `${base}?runId=${encodeURIComponent(runId)}`;
    const { data } = await read(path);
    if (runId === null && data.runId !== null) {
      runId = data.runId;
      history.replaceState(null, "", traceAddress(sessionId, runId) + location.hash);
    }
    render(data);
    if (data.run?.status === "RUNNING") setTimeout(load, REFRESH);
  } catch (error) {
    page.replaceChildren(error instanceof Refused && error.status === 404 ? missing() : trouble(error, load));
  }
}

function missing() {
  const what = runId === null ? `There is no session ${sessionId}.` : `Session ${sessionId} has no run ${runId}.`;
  return state(what, { more: toConsole() });
}

function toConsole() {
  return el("p", {}, el("a", { href: "/" }, "Find a session"));
}

function render(trace) {
  const open = new Set([...page.querySelectorAll("details[open]")].map((one) => one.id));
  const comment = page.querySelector("#comment")?.value ?? trace.feedback?.comment ?? "";
  const { run } = trace;
  document.title = `${run ? run.query : sessionId} · casenotes`;
  page.replaceChildren(
    ...[
      el("h1", {}, run ? run.query : `Session ${sessionId}`),
      meta(trace),
      run?.status === "RUNNING" && state("This run has not ended. What has happened so far is shown, and refreshed."),
      run?.errorMessage && state(`The run failed: ${run.errorMessage}`, { bad: true }),
      !run && trace.answer === null && state("This session has no run yet."),
      trace.answer !== null && card("Answer", answerText(trace.answer, toCall(trace))),
      (run?.status === "SUCCESS" || run?.status === "FAILED" || trace.answer !== null) && feedback(trace, comment),
      run?.orchestrationTrace && card("How it went", path(run.orchestrationTrace)),
      card(`Evidence · ${plural(trace.toolInvocations.length, "tool call")}`, ...some(trace.toolInvocations.map(tool), "No tool was called.")),
      card(`Steps · ${trace.agentSteps.length}`, ...some(trace.agentSteps.map(step), "No step was recorded.")),
      trace.selfEvaluation && card("Self-evaluation", ...evaluation(trace.selfEvaluation)),
    ].filter(Boolean),
  );
  for (const one of page.querySelectorAll("details")) one.open = open.has(one.id);
  reveal();
}

function card(title, ...children) {
  return el("section", { className: "card" }, el("h2", {}, title), ...children);
}

function some(children, otherwise) {
  return children.length ? children : [el("p", { className: "mute text" }, otherwise)];
}

function toCall(trace) {
  const made = new Set(trace.toolInvocations.map((call) => call.sequence));
  return (sequence) => (made.has(sequence) ? `#t${sequence}` : null);
}

function meta({ run, session }) {
  if (!run) {
    return el("p", { className: "meta" }, el("span", {}, session.status), el("span", {}, "last active ", when(session.lastActiveAt)));
  }
  return el(
    "p",
    { className: "meta" },
    statusPill(run.status),
    run.degraded ? el("span", { className: "pill warn", title: "The answer was made without something it should have had." }, "degraded") : null,
    el("span", {}, run.agentFlow),
    run.durationMs === null ? null : el("span", {}, duration(run.durationMs)),
    el("span", {}, when(run.createdAt, { full: true })),
    el("span", {}, "run ", el("code", {}, run.runId)),
    el("span", {}, "session ", el("code", {}, run.sessionId)),
    el("a", { href: `/?${new URLSearchParams({ sessionId: run.sessionId })}` }, "Ask more"),
  );
}

function path(trace) {
  const last = trace.transitions.length - 1;
  const end = trace.terminationReason === "COMPOSED" ? "ok" : trace.degraded ? "warn" : "bad";
  const nodes = trace.transitions.map((move, at) =>
    el("li", {}, el("span", { className: at === last ? `node last ${end}` : "node" }, move.to)),
  );
  const told = [trace.terminationReason, trace.evidenceRetryCount ? plural(trace.evidenceRetryCount, "evidence retry", "evidence retries") : null];
  return el("div", {}, el("ol", { className: "path" }, nodes), el("p", { className: "mute text" }, told.filter(Boolean).join(" · ")));
}

function tool(call) {
  return el(
    "details",
    { id: `t${call.sequence}` },
    el(
      "summary",
      {},
      el("code", {}, `T${call.sequence}`),
      el("strong", { className: "mono" }, call.toolName),
      el("span", { className: "args" }, inShort(call.arguments)),
      call.status === "FAILED" ? el("span", { className: "bad" }, `failed${call.errorMessage ? `: ${call.errorMessage}` : ""}`) : null,
      call.resultTruncated ? el("span", { className: "note" }, `cut, was ${size(call.resultSize)}`) : null,
      el("span", { className: "end" }, duration(call.durationMs) ?? ""),
    ),
    el("p", { className: "mute text" }, when(call.createdAt), call.stepSequence ? ` · in step ${call.stepSequence}` : ""),
    el("h3", {}, "Arguments"),
    value(call.arguments),
    el("h3", {}, "Result"),
    call.result === null ? el("p", { className: "mute text" }, "none") : value(call.result),
  );
}

function step(taken) {
  const tokens = [taken.inputTokens, taken.outputTokens].some((count) => count !== null)
    ? ` · ${taken.inputTokens ?? 0} tokens in, ${taken.outputTokens ?? 0} out`
    : "";
  return el(
    "details",
    { id: `s${taken.sequence}` },
    el(
      "summary",
      {},
      el("code", {}, String(taken.sequence)),
      el("strong", { className: "mono" }, taken.agentName),
      el("span", { className: "mute" }, taken.stepType),
      taken.status === "FAILED" ? el("span", { className: "bad" }, `failed${taken.errorMessage ? `: ${taken.errorMessage}` : ""}`) : null,
      el("span", { className: "end" }, duration(taken.durationMs) ?? ""),
    ),
    el("p", { className: "mute text" }, when(taken.createdAt), taken.model ? ` · ${taken.model}` : "", tokens),
    ...(taken.input === null ? [] : [el("h3", {}, "Input"), value(taken.input)]),
    ...(taken.output === null ? [] : [el("h3", {}, "Output"), value(taken.output)]),
  );
}

function evaluation(found) {
  const { aiops_rule_evaluation: rules, ...rest } = found;
  const parts = [];
  if (rules?.checks) {
    const checks = rules.checks.map((check) =>
      el("li", { className: check.passed ? "" : "bad" }, el("b", { className: check.passed ? "ok" : "bad" }, check.passed ? "✓" : "✗"),
        el("span", {}, el("code", {}, check.id), ` ${check.detail}`)),
    );
    parts.push(el("p", { className: "text" }, rules.summary), el("ul", { className: "checks" }, checks));
  }
  if (Object.keys(rest).length) parts.push(value(rest));
  return parts;
}

function feedback(trace, comment) {
  const told = el("span", { className: "mute", role: "status" }, trace.feedback ? `rated ${words(trace.feedback.rating)}` : "");
  const field = el("input", { id: "comment", placeholder: "Comment (optional)", value: comment, "aria-label": "Comment" });
  const buttons = ["useful", "not_useful"].map((rating) =>
    el("button", { type: "button", "aria-pressed": String(trace.feedback?.rating === rating), onclick: () => rate(rating) }, words(rating)),
  );
  async function rate(rating) {
    for (const button of buttons) button.disabled = true;
    try {
      const body = { sessionId: trace.sessionId, runId: trace.runId, feedback: rating, comment: field.value || null };
      const { data } = await read("/api/feedback", { method: "POST", body });
      buttons.forEach((button, at) => button.setAttribute("aria-pressed", String(["useful", "not_useful"][at] === rating)));
      told.textContent = `rated ${words(rating)}${data.runId ? `, bound to ${data.runId}` : ""}${data.caseId ? ` · case ${data.caseId}` : ""}`;
    } catch (error) {
      told.textContent = `Not saved: ${error.message}`;
    }
    for (const button of buttons) button.disabled = false;
  }
  return card(trace.runId ? "Did this run help?" : "Did this help?", el("div", { className: "bar" }, buttons, field), el("p", { className: "text" }, told));
}

function words(rating) {
  return { useful: "useful", not_useful: "not useful" }[rating] ?? rating;
}

async function loadRuns(from = `/api/chat/session/${encodeURIComponent(sessionId)}/runs?limit=30`) {
  if (!sessionId) return;
  try {
    const { data, next } = await read(from);
    list.querySelector("button")?.remove();
    list.append(...data.map(row));
    if (next) list.append(el("button", { type: "button", className: "plain", onclick: () => loadRuns(next) }, "Older runs"));
    if (!list.children.length) list.append(el("p", { className: "mute" }, "none yet"));
  } catch (error) {
    if (error instanceof Refused && error.status === 404) list.append(el("p", { className: "mute" }, "none"));
    else list.append(trouble(error, () => { list.replaceChildren(); loadRuns(from); }));
  }
}

function row(run) {
  const current = run.runId === runId;
  const end = run.status === "FAILED" ? el("span", { className: "bad" }, "failed") : el("span", {}, run.status === "RUNNING" ? "running" : run.agentFlow.toLowerCase());
  return el("a", { className: "row", href: traceAddress(run.sessionId, run.runId), "aria-current": current ? "page" : null },
    el("small", {}, when(run.createdAt), end), el("span", { className: "line" }, run.query));
}

function reveal() {
  const target = /^#[ts]\d+$/.test(location.hash) && document.getElementById(location.hash.slice(1));
  if (target) {
    target.open = true;
    target.scrollIntoView({ block: "nearest" });
  }
}

addEventListener("hashchange", reveal);
page.addEventListener("click", (event) => {
  const cite = event.target.closest?.("a.cite");
  if (cite && cite.hash === location.hash) reveal();
});
await load();
await loadRuns();

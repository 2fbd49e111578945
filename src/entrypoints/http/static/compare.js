// Two runs side by side: question, answer, figures, steps and tools, and the evidence that only one of them had.

import { aligned, evidence, textParts } from "/static/align.js";
import { card, el } from "/static/dom.js";
import { entriesOf } from "/static/entries.js";
import { clip, duration, flow, inShort, plural, statusPill, traceAddress, when } from "/static/format.js";
import { state } from "/static/states.js";
import { WindowedList } from "/static/windowed.js";

/** The elements that compare two traces. */
export function comparison(one, other) {
  const title = [
    el("h1", {}, "Two runs compared"),
    el("p", { className: "meta" },
      el("a", { href: traceAddress(one.sessionId, one.runId) }, "Only run A"),
      el("a", { href: traceAddress(other.sessionId, other.runId) }, "Only run B"),
      el("a", { href: traceAddress(other.sessionId, other.runId, { compare: one.runId, compareSession: one.sessionId }) }, "⇄ Swap")),
  ];
  if (!one.run || !other.run) return [...title, state("One of the two has no run to compare.", { sign: "○" })];
  return [...title,
    el("div", { className: "two" }, run("A", one), run("B", other)),
    answers(one, other), figures(one, other), steps(one, other), onlyOneHad(one, other)];
}

function run(letter, { run, sessionId }) {
  return el("section", { className: `card side-${letter}` },
    el("h2", {}, el("span", { className: "letter" }, letter), " ", run.runId),
    el("p", { className: "asked" }, clip(run.query, 600)),
    el("p", { className: "meta" }, statusPill(run.status), run.degraded && el("span", { className: "pill warn" }, "⚠ Degraded"),
      el("span", {}, flow(run.agentFlow)), el("span", {}, duration(run.durationMs) ?? "not ended"), when(run.createdAt)),
    el("p", { className: "mute" }, "session ", el("code", {}, sessionId)),
    run.errorMessage && el("p", { className: "fault" }, run.errorMessage));
}

function answers(one, other) {
  const [left, right] = [one.answer ?? "", other.answer ?? ""];
  if (left === right) return card("Answer", el("p", { className: "mute" }, left ? "Both runs gave the same answer, word for word." : "Neither run gave an answer."), left && el("p", { className: "text" }, left));
  const parts = textParts(left, right);
  const column = (letter, mine, theirs, tag, whole) =>
    el("div", { className: "text", role: "group", "aria-label": `Answer of run ${letter}` },
      el("span", { className: "letter" }, letter), " ",
      whole ? parts.filter((part) => !part[theirs]).map((part) => (part[mine] ? el(tag, {}, part.value) : part.value)) : el("span", { className: "mute" }, "no answer"));
  return card("Answer, word by word",
    el("p", { className: "mute key" }, el("del", {}, "only in A"), " ", el("ins", {}, "only in B")),
    el("div", { className: "two" }, column("A", "removed", "added", "del", left), column("B", "added", "removed", "ins", right)));
}

function figures(one, other) {
  const tokens = ({ agentSteps }) => agentSteps.reduce((sum, step) => sum + (step.inputTokens ?? 0) + (step.outputTokens ?? 0), 0);
  const failed = ({ agentSteps, toolInvocations }) => [...agentSteps, ...toolInvocations].filter((row) => row.status === "FAILED").length;
  const rows = [
    ["Status", ({ run }) => run.status.toLowerCase()],
    ["Flow", ({ run }) => flow(run.agentFlow)],
    ["Duration", ({ run }) => duration(run.durationMs) ?? "–"],
    ["Steps", ({ agentSteps }) => agentSteps.length.toLocaleString()],
    ["Tool calls", ({ toolInvocations }) => toolInvocations.length.toLocaleString()],
    ["Failed", (trace) => failed(trace).toLocaleString()],
    ["Evidence retries", ({ run }) => run.orchestrationTrace?.evidenceRetryCount ?? "–"],
    ["Final node", ({ run }) => run.orchestrationTrace?.finalNode ?? "–"],
    ["Tokens", (trace) => tokens(trace).toLocaleString()],
    ["Rated", ({ feedback }) => ({ useful: "useful", not_useful: "not useful" })[feedback?.rating] ?? "–"],
  ].map(([name, of]) => [name, String(of(one)), String(of(other))]).filter(([, left, right]) => left !== "–" || right !== "–");
  return card("Figures", el("table", { className: "figures-table" },
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, el("span", { className: "visually-hidden" }, "What")), el("th", { scope: "col" }, "A"), el("th", { scope: "col" }, "B"))),
    el("tbody", {}, rows.map(([name, left, right]) =>
      el("tr", { className: left === right ? "" : "differs" }, el("th", { scope: "row" }, name), el("td", {}, left), el("td", {}, right))))));
}

function steps(one, other) {
  const pairs = aligned(entriesOf(one), entriesOf(other)).map(([left, right], at) => ({ key: String(at), left, right }));
  const list = new WindowedList({
    label: "Steps and tool calls of both runs",
    make: ({ key, left, right }) => {
      const kind = left && right ? "both" : left ? "only-A" : "only-B";
      return el("li", { className: `pair ${kind}`, "data-key": key }, cell(left, one, "A"), cell(right, other, "B"));
    },
  });
  queueMicrotask(() => list.show(pairs));
  const apart = pairs.filter(({ left, right }) => !left || !right).length;
  return card("Steps and tools",
    el("p", { className: "mute" }, apart ? `${plural(pairs.length - apart, "row")} in both, ${apart.toLocaleString()} in one of them only.` : "Both runs did the same things in the same order."),
    el("div", { className: "pair heads", "aria-hidden": "true" }, el("span", { className: "letter" }, "A"), el("span", { className: "letter" }, "B")), list.root);
}

function cell(entry, trace, letter) {
  if (!entry) return el("span", { className: "cell none" }, el("span", { className: "visually-hidden" }, `not in ${letter}`), el("span", { "aria-hidden": "true" }, "–"));
  const { kind, row, failed, nested } = entry;
  return el("a", { className: `cell${nested ? " nested" : ""}`, href: `${traceAddress(trace.sessionId, trace.runId)}#${kind}${row.sequence}` },
    kind === "t" && el("code", { className: "tag" }, `T${row.sequence}`),
    el("strong", {}, clip(kind === "t" ? row.toolName : row.agentName)),
    failed && el("span", { className: "bad" }, "✗ failed"),
    el("span", { className: "args" }, kind === "t" ? inShort(row.arguments) : clip(row.stepType)),
    el("span", { className: "ms" }, duration(row.durationMs) ?? "–"));
}

const MOST = 200;

function onlyOneHad(one, other) {
  const { onlyOne, onlyOther, differing } = evidence(one.toolInvocations, other.toolInvocations);
  const column = (letter, calls, trace) =>
    el("div", {}, el("h3", {}, el("span", { className: "letter" }, letter), ` only: ${plural(calls.length, "call")}`),
      calls.length ? el("ul", { className: "calls" }, calls.slice(0, MOST).map((call) => el("li", {}, callLink(call, trace), call.status === "FAILED" && el("span", { className: "bad" }, " ✗ failed")))) : el("p", { className: "mute" }, "Nothing that the other did not have."),
      calls.length > MOST && el("p", { className: "mute" }, `and ${plural(calls.length - MOST, "more call")}`));
  return card("Evidence that only one had",
    el("div", { className: "two" }, column("A", onlyOne, one), column("B", onlyOther, other)),
    differing.length > 0 && [
      el("h3", {}, `Asked by both, answered differently: ${plural(differing.length, "call")}`),
      el("ul", { className: "calls" }, differing.slice(0, MOST).map(([left, right]) =>
        el("li", {}, "A ", callLink(left, one), " · B ", el("a", { href: `${traceAddress(other.sessionId, other.runId)}#t${right.sequence}` }, el("code", {}, `T${right.sequence}`))))),
    ]);
}

function callLink(call, trace) {
  return el("a", { href: `${traceAddress(trace.sessionId, trace.runId)}#t${call.sequence}` },
    el("code", {}, `T${call.sequence}`), " ", el("strong", {}, clip(call.toolName)), " ", el("span", { className: "mute" }, clip(inShort(call.arguments), 120)));
}

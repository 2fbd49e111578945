// The rows of a timeline: the steps in their order, each followed by the tool calls made in it.

import { el } from "/static/dom.js";
import { clip, duration, inShort, size, when } from "/static/format.js";
import { times } from "/static/axis.js";
import { value } from "/static/values.js";

/** The entries of a trace: `{key, kind, row, start, end, nested}`. */
export function entriesOf({ agentSteps, toolInvocations }) {
  const inside = new Map(agentSteps.map((step) => [step.sequence, []]));
  const loose = [];
  for (const call of toolInvocations) (inside.get(call.stepSequence) ?? loose).push(call);
  const entries = [];
  let next = 0;
  for (const step of agentSteps) {
    while (next < loose.length && loose[next].createdAt < step.createdAt) entries.push(entry("t", loose[next++], false));
    entries.push(entry("s", step, false));
    for (const call of inside.get(step.sequence)) entries.push(entry("t", call, true));
  }
  while (next < loose.length) entries.push(entry("t", loose[next++], false));
  return entries;
}

function entry(kind, row, nested) {
  return { key: `${kind}${row.sequence}`, kind, row, nested, failed: row.status === "FAILED", ...times(row) };
}

/** The list item of an entry; what it unfolds to is made when it is unfolded. */
export function item(entry, opened) {
  const { key, kind, row, failed, nested } = entry;
  const bar = el("span", { className: `bar ${kind}${failed ? " failed" : ""}` });
  const details = el("details", { id: key, className: `entry${nested ? " nested" : ""}`, open: opened.has(key) },
    el("summary", {},
      el("span", { className: "label" }, kind === "t" ? callLabel(row) : stepLabel(row)),
      el("span", { className: "track" }, bar),
      el("span", { className: "ms" }, duration(row.durationMs) ?? el("span", { title: "No duration was recorded." }, "–"))));
  const unfold = () => details.append(el("div", { className: "body" }, kind === "t" ? callBody(row) : stepBody(row)));
  if (details.open) unfold();
  details.addEventListener("toggle", () => {
    if (details.open) opened.add(key);
    else opened.delete(key);
    if (details.open && details.childElementCount === 1) unfold();
  });
  return el("li", { "data-key": key }, details);
}

function failure(row) {
  return row.status === "FAILED" && el("span", { className: "bad" }, `✗ ${row.errorMessage ? clip(row.errorMessage) : "failed"}`);
}

function callLabel(call) {
  return [
    el("code", { className: "tag" }, `T${call.sequence}`),
    el("strong", {}, clip(call.toolName)),
    call.resultTruncated && el("span", { className: "note" }, `cut, was ${size(call.resultSize)}`),
    failure(call) || el("span", { className: "args" }, inShort(call.arguments)),
  ];
}

function stepLabel(step) {
  return [el("strong", {}, clip(step.agentName)), failure(step) || el("span", { className: "args" }, clip(step.stepType))];
}

function callBody(call) {
  const told = [when(call.createdAt), call.stepSequence !== null && `in step ${call.stepSequence}`, duration(call.durationMs)];
  const note = call.resultTruncated
    ? el("span", { className: "note" }, `cut: ${size(kept(call.result))} of ${size(call.resultSize)} are kept`)
    : el("span", { className: "mute" }, call.resultSize === null ? "" : size(call.resultSize));
  return [
    facts(told),
    fault(call),
    isEmpty(call.arguments) ? el("p", { className: "mute" }, "Called without arguments.") : value("Arguments", call.arguments),
    call.result === null ? el("p", { className: "mute" }, "It gave no result.") : value("Result", call.result, note),
  ];
}

function stepBody(step) {
  const tokens = [[step.inputTokens, "in"], [step.outputTokens, "out"]].filter(([count]) => count !== null);
  const told = [
    when(step.createdAt), `step ${step.sequence}`, step.stepType, step.model, duration(step.durationMs),
    tokens.length > 0 && `tokens: ${tokens.map(([count, way]) => `${count.toLocaleString()} ${way}`).join(", ")}`,
  ];
  return [
    facts(told),
    fault(step),
    step.input !== null && value("Input", step.input),
    step.output !== null && value("Output", step.output),
    step.input === null && step.output === null && el("p", { className: "mute" }, "Nothing else was recorded of it."),
  ];
}

function facts(told) {
  return el("p", { className: "facts" }, told.filter(Boolean).map((fact) => el("span", {}, fact)));
}

function fault(row) {
  return row.status === "FAILED" && el("p", { className: "fault" }, `✗ ${row.errorMessage ?? "It failed."}`);
}

function isEmpty(args) {
  return args === null || (typeof args === "object" && Object.keys(args).length === 0);
}

function kept(result) {
  return new TextEncoder().encode(typeof result === "string" ? result : JSON.stringify(result)).length;
}

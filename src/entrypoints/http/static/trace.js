// The page of one run: the one its address names, or the session's latest; or of two runs side by side.

import { read, Refused } from "/static/api.js";
import { comparison } from "/static/compare.js";
import { card, el, fill, visible } from "/static/dom.js";
import { evaluation } from "/static/evaluation.js";
import { feedback } from "/static/feedback.js";
import { clip, traceAddress, tracePath } from "/static/format.js";
import { graphPath } from "/static/graph-path.js";
import { banners, head } from "/static/head.js";
import { follow } from "/static/live.js";
import { markdown } from "/static/markdown.js";
import { compareForm, RunList } from "/static/runs.js";
import { state, trouble } from "/static/states.js";
import { Timeline } from "/static/timeline.js";

const asked = new URLSearchParams(location.search);
const sessionId = asked.get("sessionId") ?? "";
const otherSession = asked.get("compareSession") || sessionId;
const compare = asked.get("compare") || null;
const comparing = compare !== null || asked.has("compareSession");
let runId = asked.get("runId") || null;

const page = document.getElementById("trace");
const runs = new RunList(document.getElementById("runs"), () => ({ sessionId, runId, compare: otherSession === sessionId ? compare : null }));

/** The run's page: parts that are made anew only when what they show has changed. */
class RunPage {
  constructor() {
    this.timeline = new Timeline();
    this.parts = Object.fromEntries(["head", "banners", "answer", "path"].map((name) => [name, el("div")]));
    this.after = Object.fromEntries(["evaluation", "feedback"].map((name) => [name, el("div")]));
    this.told = {};
    fill(page, Object.values(this.parts), this.timeline.root, Object.values(this.after));
  }

  show(trace) {
    const { run, answer } = trace;
    document.title = `${visible(clip(run ? run.query : sessionId, 80))} · casenotes`;
    const ended = run ? run.status !== "RUNNING" : answer !== null;
    const calls = new Set(trace.toolInvocations.map((call) => call.sequence));
    const toCall = (sequence) => (calls.has(sequence) ? `#t${sequence}` : null);
    this.part("head", [run, trace.session.status], () => head(trace));
    this.part("banners", run && [run.status, run.errorMessage, run.degraded], () => banners(trace));
    this.part("answer", [answer, ended], () => this.answer(trace, ended, toCall));
    this.part("path", run?.orchestrationTrace, () => run?.orchestrationTrace && graphPath(run.orchestrationTrace));
    this.timeline.root.hidden = !run && !trace.agentSteps.length && !trace.toolInvocations.length;
    this.timeline.update(trace);
    this.part("evaluation", trace.selfEvaluation, () => trace.selfEvaluation && evaluation(trace.selfEvaluation));
    this.part("feedback", ended, () => ended && feedback(trace));
  }

  part(name, about, build) {
    const told = JSON.stringify(about ?? null);
    if (this.told[name] === told) return;
    this.told[name] = told;
    fill(this.parts[name] ?? this.after[name], build());
  }

  answer({ run, answer }, ended, toCall) {
    if (answer !== null && answer !== "") return card("Answer", markdown(answer, toCall));
    if (!run && answer === null) return state("This session has no run yet.", { sign: "○", more: el("p", {}, el("a", { href: `/?${new URLSearchParams({ sessionId })}` }, "Ask its first question")) });
    return card("Answer", el("p", { className: "mute" }, ended ? (answer === "" ? "The answer is empty." : "There is no answer.") : "No answer yet."));
  }
}

let shown = null;
let before = "";

async function look() {
  const { data } = await read(tracePath(sessionId, runId));
  if (runId === null && data.runId !== null) {
    runId = data.runId;
    history.replaceState(null, "", traceAddress(sessionId, runId) + location.hash);
  }
  shown ??= new RunPage();
  shown.show(data);
  notice(null);
  const now = JSON.stringify([data.agentSteps.length, data.toolInvocations.length, data.run]);
  const moved = now !== before;
  before = now;
  return { moved, ended: data.run?.status !== "RUNNING" };
}

async function loadRun() {
  try {
    const { ended } = await look();
    reveal();
    if (!ended) goOn();
  } catch (error) {
    shown = null;
    fill(page, isMissing(error) ? missing(sessionId, runId) : trouble(error, again, true));
    if (isMissing(error)) runId = null;
  }
}

async function again() {
  await (comparing ? loadComparison() : loadRun());
  await runs.load();
}

async function goOn() {
  await follow(look, (error) => {
    if (!isMissing(error)) {
      notice(error.message);
      return true;
    }
    shown = null;
    fill(page, missing(sessionId, runId));
    runId = null;
    return false;
  });
  runs.load();
}

function notice(words) {
  const place = document.getElementById("notice");
  place.hidden = words === null;
  place.textContent = words === null ? "" : visible(`${words} Trying again…`);
}

async function loadComparison() {
  try {
    const [one, other] = await Promise.all([tracePath(sessionId, runId), tracePath(otherSession, compare)].map((path) => read(path).catch((error) => error)));
    for (const [found, session, run] of [[one, sessionId, runId], [other, otherSession, compare]]) {
      if (isMissing(found)) return fill(page, missing(session, run));
      if (found instanceof Error) throw found;
    }
    runId ??= one.data.runId;
    document.title = "Two runs compared · casenotes";
    fill(page, comparison(one.data, other.data));
  } catch (error) {
    fill(page, trouble(error, again, true));
  }
}

function isMissing(error) {
  return error instanceof Refused && error.status === 404;
}

function missing(session, run) {
  const what = run === null ? `There is no session ${session}.` : `Session ${session} has no run ${run}.`;
  return state(what, {
    sign: "404",
    whole: true,
    more: [el("p", {}, "It may have been erased, or the address is not quite right."), el("p", {}, el("a", { href: "/" }, "Find a session"))],
  });
}

function reveal() {
  const key = /^#([ts]\d+)$/.exec(location.hash)?.[1];
  if (key && shown) shown.timeline.reveal(key);
}

addEventListener("hashchange", reveal);
page.addEventListener("click", (event) => {
  const cite = event.target.closest?.("a.cite");
  if (cite && cite.hash === location.hash) reveal();
});

if (!sessionId) {
  runs.root.replaceChildren(el("p", { className: "mute" }, "None."));
  fill(page, state("No session is named in this page's address.", { sign: "○", whole: true, more: el("p", {}, el("a", { href: "/" }, "Find a session")) }));
} else {
  await again();
  if (runId !== null) document.getElementById("compare-with").append(compareForm(sessionId, runId));
}

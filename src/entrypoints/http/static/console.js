// The console: recent sessions, and a place to ask.

import { events, Gone, read, Refused } from "/static/api.js";
import { answerText, el, plural, traceAddress, trouble, when } from "/static/show.js";

const form = document.getElementById("ask");
const question = document.getElementById("question");
const turns = document.getElementById("turns");
const sessions = document.getElementById("sessions");
const search = document.getElementById("search");
const conversation = document.getElementById("conversation");
let sessionId = new URLSearchParams(location.search).get("sessionId") || null;

function showConversation() {
  if (!sessionId) {
    conversation.replaceChildren("A question begins a new conversation.");
    return;
  }
  const anew = el("button", { type: "button", className: "plain", onclick: () => continueIn(null) }, "Begin a new one");
  conversation.replaceChildren(el("span", {}, "In conversation ", el("code", {}, sessionId)), anew);
}

function continueIn(session) {
  if (session !== sessionId) turns.replaceChildren();
  sessionId = session;
  history.replaceState(null, "", session ? `/?${new URLSearchParams({ sessionId: session })}` : "/");
  showConversation();
  question.focus();
}

async function ask(path, body, asked) {
  const answer = el("div", {}, el("p", { className: "mute text" }, "Waiting for the first word…"));
  const foot = el("p", { className: "foot" });
  turns.prepend(el("section", { className: "card" }, el("p", { className: "asked text" }, el("strong", {}, asked)), answer, foot));
  let text = "";
  let ended = false;
  let run = null;
  busy(true);
  try {
    for await (const { type, data } of events(path, body)) {
      if (type === "metadata") {
        run = data;
        if (path !== "/api/ai_ops") sessionId = data.sessionId;
        showConversation();
        foot.replaceChildren(el("a", { href: traceAddress(data.sessionId, data.runId) }, "Trace of this run"), el("code", {}, data.runId));
      } else if (type === "progress" && !text) {
        answer.replaceChildren(el("p", { className: "mute text" }, `${data}…`));
      } else if (type === "content") {
        text += data;
        answer.replaceChildren(answerText(text, (sequence) => `${traceAddress(run.sessionId, run.runId)}#t${sequence}`));
      } else if (type === "done" || type === "error") {
        ended = true;
        if (type === "error") answer.append(el("p", { className: "bad text", role: "alert" }, `The run failed: ${data}`));
      }
    }
    if (!ended) throw new Gone("The connection was lost.");
    if (!text && !answer.querySelector(".bad")) answer.replaceChildren(el("p", { className: "mute text" }, "The answer is empty."));
  } catch (error) {
    answer.append(lost(error, run));
  }
  busy(false);
  loadSessions();
}

function lost(error, run) {
  const words = error instanceof Gone && run ? `${error.message} The run goes on; its trace will have the answer.` : error.message;
  if (!(error instanceof Gone || error instanceof Refused)) console.error(error);
  return el("p", { className: "bad text", role: "alert" }, words);
}

function busy(is) {
  document.getElementById("send").disabled = is;
  document.getElementById("alerts").disabled = is;
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const asked = question.value;
  if (!asked.trim()) return;
  question.value = "";
  ask("/api/chat_stream", { sessionId, question: asked }, asked);
});
question.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
});
document.getElementById("alerts").addEventListener("click", () => ask("/api/ai_ops", {}, "Diagnose the firing alerts"));

let latest = 0;

async function loadSessions(from = `/api/sessions?${new URLSearchParams({ limit: "20", query: search.value })}`, more = false) {
  const mine = ++latest;
  try {
    const { data, next } = await read(from);
    if (mine !== latest) return;
    sessions.querySelector("button.plain")?.remove();
    if (!more) sessions.replaceChildren();
    sessions.append(...data.map(row));
    if (next) sessions.append(el("button", { type: "button", className: "plain", onclick: () => loadSessions(next, true) }, "Older sessions"));
    if (!sessions.children.length) sessions.append(el("p", { className: "mute" }, search.value ? "Nothing matches." : "No session yet. Ask something."));
  } catch (error) {
    if (mine === latest) sessions.replaceChildren(trouble(error, () => loadSessions()));
  }
}

function row(session) {
  const href = traceAddress(session.sessionId, session.lastRunId);
  return el("a", { className: "row", href, title: session.sessionId },
    el("small", {}, when(session.lastActiveAt), el("span", {}, plural(session.runCount, "run"))),
    el("span", { className: "line" }, session.lastQuery ?? session.sessionId),
    el("span", { className: "line mono mute" }, session.sessionId));
}

let typing;
search.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => loadSessions(), 200);
});

showConversation();
await loadSessions();

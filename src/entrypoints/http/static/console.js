// The console: recent sessions, and a place to ask.

import { el, fill } from "/static/dom.js";
import { clip, plural, traceAddress, when } from "/static/format.js";
import { Listing } from "/static/listing.js";
import { Turn } from "/static/turns.js";

const form = document.getElementById("ask");
const question = document.getElementById("question");
const alerts = document.getElementById("alerts");
const turns = document.getElementById("turns");
const conversation = document.getElementById("conversation");
let sessionId = new URLSearchParams(location.search).get("sessionId") || null;

const sessions = new Listing({
  root: document.getElementById("sessions"),
  search: document.getElementById("search"),
  path: "/api/sessions",
  older: "Older sessions",
  row: (session) => {
    const id = el("span", { className: "line mono mute" }, clip(session.sessionId));
    return el("a", { className: "row", href: traceAddress(session.sessionId, session.lastRunId), title: session.sessionId },
      el("small", {}, when(session.lastActiveAt), el("span", {}, plural(session.runCount, "run"))),
      el("span", { className: "line" }, session.lastQuery === null ? "no question yet" : clip(session.lastQuery)), id);
  },
  none: (searched) => (searched
    ? el("p", { className: "mute" }, `Nothing matches “${searched}”.`)
    : el("p", { className: "mute" }, "No session yet. Ask something, and it is kept here.")),
});

function continueIn(session) {
  sessionId = session;
  history.replaceState(null, "", session ? `/?${new URLSearchParams({ sessionId: session })}` : "/");
  if (!session) {
    fill(conversation, "A question begins a new conversation.");
    return;
  }
  const anew = el("button", { type: "button", className: "plain" }, "Begin a new one");
  anew.onclick = () => {
    turns.replaceChildren();
    continueIn(null);
    question.focus();
  };
  fill(conversation, el("span", {}, "In conversation ", el("a", { href: traceAddress(session, null) }, el("code", {}, session))), anew);
}

async function ask(path, body, asked) {
  const turn = new Turn(asked);
  turns.prepend(turn.root);
  document.getElementById("welcome").hidden = true;
  busy(true);
  await turn.ask(path, body, (run) => {
    // An AIOps report has a session of its own, and is no part of the conversation.
    if (path !== "/api/ai_ops") continueIn(run.sessionId);
    sessions.load();
  });
  busy(false);
  sessions.load();
}

function busy(is) {
  document.getElementById("send").disabled = is;
  alerts.disabled = is;
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const asked = question.value;
  if (!asked.trim() || alerts.disabled) return;
  question.value = "";
  ask("/api/chat_stream", { sessionId, question: asked }, asked);
});
question.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
});
alerts.addEventListener("click", () => ask("/api/ai_ops", {}, "Diagnose the firing alerts"));

continueIn(sessionId);
await sessions.load();

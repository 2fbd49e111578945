// The list of a session's runs, newest first, and the ways to compare them.

import { read, Refused } from "/static/api.js";
import { el, fill } from "/static/dom.js";
import { clip, flow, traceAddress, when } from "/static/format.js";
import { skeleton } from "/static/states.js";

const PAGE = 30;

export class RunList {
  /** `root` is the element; `shown` gives `{sessionId, runId, compare}`, what the page shows. */
  constructor(root, shown) {
    this.root = root;
    this.shown = shown;
  }

  async load() {
    const { sessionId } = this.shown();
    if (!this.root.childElementCount) fill(this.root, skeleton("Loading the runs…", 6));
    try {
      const { data, next } = await read(`/api/chat/session/${encodeURIComponent(sessionId)}/runs?limit=${PAGE}`);
      this.root.replaceChildren();
      this.add(data, next);
      if (!data.length) fill(this.root, el("p", { className: "mute" }, "None yet."));
    } catch (error) {
      if (error instanceof Refused && error.status === 404) fill(this.root, el("p", { className: "mute" }, "None."));
      else fill(this.root, el("p", { className: "mute" }, "Not known: ", error.message.toLowerCase().replace(/\.$/, ""), ". ",
        el("button", { type: "button", className: "plain", onclick: () => this.load() }, "Try again")));
    }
  }

  add(runs, next) {
    this.root.append(...runs.map((run) => this.row(run)));
    if (next) {
      const older = el("button", { type: "button", className: "plain" }, "Older runs");
      older.onclick = async () => {
        older.disabled = true;
        try {
          const page = await read(next);
          older.remove();
          this.add(page.data, page.next);
        } catch (error) {
          older.disabled = false;
          older.textContent = `${error.message} Try again`;
        }
      };
      this.root.append(older);
    }
    const current = this.root.querySelector("[aria-current]")?.parentElement;
    if (current && this.root.scrollWidth > this.root.clientWidth) this.root.scrollLeft = current.offsetLeft - this.root.offsetLeft;
  }

  row(run) {
    const { runId, compare } = this.shown();
    const current = run.runId === runId;
    const end = { FAILED: el("span", { className: "bad" }, "✗ failed"), RUNNING: el("span", { className: "running" }, "● running") }[run.status]
      ?? el("span", {}, flow(run.agentFlow));
    const link = el("a", { className: "row", href: traceAddress(run.sessionId, run.runId), "aria-current": current ? "page" : null },
      el("small", {}, when(run.createdAt), end),
      el("span", { className: "line" }, clip(run.query)),
      el("span", { className: "line mute" }, run.answerPreview ? clip(run.answerPreview.replace(/[*`#]+/g, "")) : "no answer"));
    const versus = !current && runId && el("a", {
      className: "versus", href: traceAddress(run.sessionId, runId, { compare: run.runId }), "aria-current": run.runId === compare ? "true" : null,
      "aria-label": `Compare with: ${clip(run.query, 60)}`, title: "Compare the run that is shown with this one",
    }, run.runId === compare ? "compared" : "compare");
    return el("div", { className: "run" }, link, versus);
  }
}

/** A form that leads to a comparison with a run of any session. */
export function compareForm(sessionId, runId) {
  const session = el("input", { id: "other-session", required: true, autocomplete: "off" });
  const run = el("input", { id: "other-run", autocomplete: "off", placeholder: "its latest" });
  const form = el("form", {}, el("label", { htmlFor: "other-session" }, "Session id"), session,
    el("label", { htmlFor: "other-run" }, "Run id"), run, el("button", {}, "Compare"));
  form.onsubmit = (event) => {
    event.preventDefault();
    location.assign(traceAddress(sessionId, runId, { compare: run.value.trim(), compareSession: session.value }));
  };
  return el("details", { className: "plain-details" }, el("summary", {}, "Compare with another session"), form);
}

// One question asked in the console, and its answer as it streams in.

import { events, Gone, Refused } from "/static/api.js";
import { el, fill } from "/static/dom.js";
import { traceAddress } from "/static/format.js";
import { markdown } from "/static/markdown.js";

/** What is shown of a question, from the asking to the end of its answer. */
export class Turn {
  constructor(asked) {
    this.body = el("div", { className: "streamed", "aria-live": "off" });
    this.progress = el("p", { className: "progress", role: "status" }, "Waiting for the first word…");
    this.foot = el("p", { className: "foot" });
    this.root = el("section", { className: "card turn busy", "aria-busy": "true" }, el("p", { className: "asked text" }, asked), this.body, this.progress, this.foot);
    this.text = "";
    this.run = null;
    this.drawing = false;
  }

  /** Ask, and show what comes until it ends. `begun(run)` is told the ids. Never throws. */
  async ask(path, body, begun) {
    let end = null;
    try {
      for await (const { type, data } of events(path, body)) {
        if (type === "metadata") this.begin(data, begun);
        else if (type === "progress") fill(this.progress, `${data}…`);
        else if (type === "content") this.tell(data);
        else if (type === "done" || type === "error") end = { type, data };
      }
      if (!end) throw new Gone("The connection was lost.");
      this.draw();
      fill(this.progress, end.type === "error" ? el("span", { className: "bad" }, `✗ The run failed: ${end.data}`) : this.text ? null : "The answer is empty.");
    } catch (error) {
      this.draw();
      fill(this.progress, this.lost(error));
    }
    this.progress.classList.add("ended");
    this.root.classList.remove("busy");
    this.root.setAttribute("aria-busy", "false");
  }

  begin(run, begun) {
    this.run = run;
    fill(this.foot, el("a", { href: traceAddress(run.sessionId, run.runId) }, "Trace of this run"), el("code", {}, run.runId));
    begun(run);
  }

  tell(piece) {
    this.text += piece;
    if (this.drawing) return;
    this.drawing = true;
    requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.drawing = false;
    if (this.text) fill(this.body, markdown(this.text, (sequence) => this.run && `${traceAddress(this.run.sessionId, this.run.runId)}#t${sequence}`));
  }

  lost(error) {
    if (!(error instanceof Gone || error instanceof Refused)) console.error(error);
    const goesOn = error instanceof Gone && this.run ? " The run goes on; its trace will have the answer." : "";
    return el("span", { className: "bad", role: "alert" }, `✗ ${error.message}${goesOn}`);
  }
}

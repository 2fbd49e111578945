// The waterfall: every step and tool call of a run on one time axis, each to be unfolded.

import { Axis } from "/static/axis.js";
import { card, el, fill } from "/static/dom.js";
import { entriesOf, item } from "/static/entries.js";
import { plural } from "/static/format.js";
import { WindowedList } from "/static/windowed.js";

const SHOWN = {
  all: ["Everything", () => true],
  t: ["Tool calls", (entry) => entry.kind === "t"],
  s: ["Steps", (entry) => entry.kind === "s"],
  failed: ["Failures", (entry) => entry.failed],
};

export class Timeline {
  constructor() {
    this.opened = new Set();
    this.entries = [];
    this.list = new WindowedList({
      label: "Steps and tool calls",
      make: (entry) => item(entry, this.opened),
      place: (row, entry) => this.axis.place(row.querySelector(".bar"), entry),
    });
    this.choice = el("select", { "aria-label": "Show in the timeline", onchange: () => this.filter() },
      Object.entries(SHOWN).map(([name, [words]]) => el("option", { value: name }, words)));
    this.count = el("span", { className: "mute" });
    this.scale = el("div", { className: "fall-head" });
    this.root = card("Timeline", el("div", { className: "bar-of" }, this.count, this.choice), this.scale, this.list.root);
  }

  update(trace) {
    this.entries = entriesOf(trace);
    this.axis = new Axis(trace.run, this.entries);
    const failed = this.entries.filter((entry) => entry.failed).length;
    fill(this.count, `${plural(trace.agentSteps.length, "step")} · ${plural(trace.toolInvocations.length, "tool call")}`,
      failed > 0 && el("span", { className: "bad" }, ` · ${failed.toLocaleString()} failed`));
    this.choice.hidden = this.entries.length < 2;
    fill(this.scale, el("span", { className: "key" },
      el("span", { className: "key-s" }, "step"), el("span", { className: "key-t" }, "tool call"), failed > 0 && el("span", { className: "key-f" }, "failed")),
      this.entries.length > 0 && this.axis.scale(), el("span"));
    this.filter();
  }

  filter() {
    this.list.show(this.entries.filter(SHOWN[this.choice.value][1]));
    this.none ??= this.list.root.parentElement.appendChild(el("p", { className: "mute" }));
    this.none.hidden = this.list.items.length > 0;
    this.none.textContent = this.entries.length ? "Nothing of this kind." : "Nothing is recorded yet.";
  }

  /** Unfold the entry with this key, bring it into view and mark it. */
  reveal(key) {
    if (!this.list.index.has(key)) {
      this.choice.value = "all";
      this.filter();
    }
    this.opened.add(key);
    const row = this.list.reveal(key);
    if (!row) return false;
    for (const marked of this.list.list.querySelectorAll(".here")) marked.classList.remove("here");
    const details = row.firstElementChild;
    details.open = true;
    details.classList.add("here");
    details.querySelector("summary").focus({ preventScroll: true });
    // Its body is made when it has been unfolded, a moment later.
    requestAnimationFrame(() => details.scrollIntoView({ block: "nearest", behavior: "instant" }));
    return true;
  }
}

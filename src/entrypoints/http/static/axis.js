// When things of a run happened, on one axis.

import { el } from "/static/dom.js";
import { duration } from "/static/format.js";

/** A row is recorded when it ends, so it began its duration earlier; without a duration only its end is known. */
export function times({ createdAt, durationMs }) {
  const end = new Date(createdAt).valueOf();
  return { start: durationMs === null ? null : end - durationMs, end };
}

/** The axis that holds a run and all of its rows. */
export class Axis {
  constructor(run, rows) {
    let [first, last] = [Infinity, -Infinity];
    for (const row of rows) {
      first = Math.min(first, row.start ?? row.end);
      last = Math.max(last, row.end);
    }
    if (run) {
      const began = new Date(run.createdAt).valueOf();
      first = Math.min(first, began);
      // Migrated rows may be older or younger than their run: the rows are believed.
      const ended = run.durationMs === null ? began : began + run.durationMs;
      last = Math.max(last, ended);
    }
    this.first = Number.isFinite(first) ? first : 0;
    this.length = Math.max(1, Number.isFinite(last) ? last - this.first : 1);
  }

  /** Where a moment lies, in percent. */
  at(moment) {
    return Math.min(100, Math.max(0, ((moment - this.first) / this.length) * 100));
  }

  /** Puts a bar where its row's times are; a row without a duration is a mark at its end. */
  place(bar, { start, end }) {
    bar.classList.toggle("instant", start === null);
    const left = this.at(start ?? end);
    bar.style.left = `${left}%`;
    bar.style.width = start === null ? "" : `${this.at(end) - left}%`;
  }

  /** The scale above the rows. */
  scale() {
    const marks = [0, 0.25, 0.5, 0.75, 1].map((part) => {
      const mark = el("span", { className: part === 1 ? "last" : part === 0 || part === 0.5 ? "" : "minor" }, duration(this.length * part));
      mark.style.left = `${part * 100}%`;
      return mark;
    });
    return el("div", { className: "scale", "aria-hidden": "true" }, marks);
  }
}

// Builds what the pages show. All text goes in as text.

import { Gone, Refused } from "/static/api.js";

/** An element with properties, attributes (`aria-…`, `data-…`, `datetime`) and children. */
export function el(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (key in made && !key.includes("-")) made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

/** The answer's text, its citations as links: `hrefOf` gives the address of a call, or null where there is none. */
export function answerText(text, hrefOf) {
  const line = el("p", { className: "text" });
  for (const part of text.split(/(\[T\d{1,9}\]|\[unsupported\])/)) {
    const cited = /^\[T(\d+)\]$/.exec(part);
    const href = cited && hrefOf(Number(cited[1]));
    if (part === "[unsupported]") {
      line.append(el("span", { className: "unsupported", title: "The call that was cited here was never made." }, part));
    } else if (href) {
      line.append(el("a", { className: "cite", href }, part));
    } else {
      line.append(part);
    }
  }
  return line;
}

const CLOCK = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" };
const WHEN = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", ...CLOCK });
const FULL = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric", ...CLOCK, timeZoneName: "short" });

/** A time in the reader's zone; its exact form in UTC on hover. */
export function when(moment, { full = false } = {}) {
  return el("time", { dateTime: moment, title: moment }, (full ? FULL : WHEN).format(new Date(moment)));
}

export function duration(milliseconds) {
  if (milliseconds === null) return null;
  if (milliseconds < 1000) return `${milliseconds} ms`;
  if (milliseconds < 60_000) return `${(milliseconds / 1000).toFixed(1)} s`;
  return `${Math.floor(milliseconds / 60_000)} min ${Math.round((milliseconds % 60_000) / 1000)} s`;
}

export function size(bytes) {
  if (bytes < 1024) return `${bytes} bytes`;
  if (bytes < 1024 * 1024) return `${(bytes / 1024).toFixed(1)} KiB`;
  return `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}

export function plural(count, one, many = `${one}s`) {
  return `${count.toLocaleString()} ${count === 1 ? one : many}`;
}

/** Any stored value: a string as it is, all else as JSON. */
export function value(stored) {
  return el("pre", { tabIndex: 0 }, typeof stored === "string" ? stored : JSON.stringify(stored, null, 2));
}

const STATUS = { SUCCESS: ["ok", "✓ Success"], FAILED: ["bad", "✗ Failed"], RUNNING: ["warn", "… Running"] };

export function statusPill(status) {
  const [kind, words] = STATUS[status] ?? ["mute", status];
  return el("span", { className: `pill ${kind}` }, words);
}

/** A call's arguments in a few words. */
export function inShort(args) {
  if (args === null || typeof args !== "object") return args === null ? "" : String(args);
  return Object.entries(args).map(([name, given]) => `${name}=${typeof given === "string" ? given : JSON.stringify(given)}`).join(", ");
}

/** The address of a run's page. */
export function traceAddress(sessionId, runId) {
  const query = new URLSearchParams({ sessionId });
  if (runId) query.set("runId", runId);
  return `/trace?${query}`;
}

/** A state of the whole page or of a part of it: what is so, and what can be done. */
export function state(words, { bad = false, retry = null, more = null } = {}) {
  const button = retry && el("button", { type: "button", onclick: retry }, "Try again");
  return el("div", { className: `state${bad ? " bad" : ""}`, role: bad ? "alert" : "status" }, el("p", {}, words), more, button);
}

/** What went wrong, as a state. */
export function trouble(error, retry) {
  const known = error instanceof Gone || error instanceof Refused;
  if (!known) console.error(error);
  return state(known ? error.message : "The page met a fault of its own.", { bad: true, retry });
}

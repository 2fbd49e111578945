// How times, durations, sizes, statuses and addresses are written.

import { el } from "/static/dom.js";

const CLOCK = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" };
const WHEN = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", ...CLOCK });
const FULL = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric", ...CLOCK, timeZoneName: "short" });

/** A time in the reader's zone; its exact form in UTC on hover. */
export function when(moment, { full = false } = {}) {
  const at = new Date(moment);
  const shown = Number.isNaN(at.valueOf()) ? moment : (full ? FULL : WHEN).format(at);
  return el("time", { dateTime: moment, title: moment }, shown);
}

/** A duration in words, or null. */
export function duration(milliseconds) {
  if (milliseconds === null) return null;
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 59_950) return `${(milliseconds / 1000).toFixed(1)} s`;
  const seconds = Math.round(milliseconds / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

export function size(bytes) {
  if (bytes < 1024) return `${bytes} bytes`;
  if (bytes < 1024 * 1024) return `${(bytes / 1024).toFixed(1)} KiB`;
  return `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}

export function plural(count, one, many = `${one}s`) {
  return `${count.toLocaleString()} ${count === 1 ? one : many}`;
}

const STATUS = { SUCCESS: ["ok", "✓ Success"], FAILED: ["bad", "✗ Failed"], RUNNING: ["live", "Running"] };

export function statusPill(status) {
  const [kind, words] = STATUS[status] ?? ["mute", status];
  return el("span", { className: `pill ${kind}` }, words);
}

const FLOWS = { CHAT: "chat", STATE_GRAPH: "graph", AI_OPS: "AIOps", LEGACY: "legacy" };

/** An agent's flow in a word. */
export function flow(name) {
  return FLOWS[name] ?? name.toLowerCase();
}

/** A call's arguments in a few words. */
export function inShort(args) {
  if (args === null) return "";
  if (typeof args !== "object") return clip(String(args));
  return clip(Object.entries(args).map(([name, given]) => `${name}=${typeof given === "string" ? given : JSON.stringify(given)}`).join(", "));
}

/** One line of a text, and no more of it than a line can hold. */
export function clip(text, most = 240) {
  const line = text.slice(0, 4 * most).replace(/\s+/g, " ").trim();
  return line.length > most ? `${line.slice(0, most)}…` : line;
}

/** The address of a run's page; `more` adds to its query. */
export function traceAddress(sessionId, runId, more = {}) {
  const query = new URLSearchParams({ sessionId });
  if (runId) query.set("runId", runId);
  for (const [name, given] of Object.entries(more)) if (given) query.set(name, given);
  return `/trace?${query}`;
}

/** Where the service tells what is on record of a run. */
export function tracePath(sessionId, runId) {
  const path = `/api/diagnosis/${encodeURIComponent(sessionId)}/trace`;
  return runId ? `${path}?runId=${encodeURIComponent(runId)}` : path;
}

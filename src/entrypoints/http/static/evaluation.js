// What a run found when it was held to the rules.

import { card, el } from "/static/dom.js";
import { value } from "/static/values.js";

export function evaluation(found) {
  const { aiops_rule_evaluation: rules, ...rest } = found;
  const shown = [];
  if (Array.isArray(rules?.checks)) {
    const failed = rules.checks.filter((check) => !check.passed).length;
    shown.push(
      el("p", {}, el("span", { className: `pill ${failed ? "bad" : "ok"}` }, failed ? `✗ ${failed} of ${rules.checks.length} failed` : "✓ all passed"), " ", rules.summary),
      el("ul", { className: "checks" }, rules.checks.map(check)));
  } else if (rules !== undefined) {
    rest.aiops_rule_evaluation = rules;
  }
  const flat = Object.entries(rest).flatMap(([name, given]) => facts(name, given));
  if (flat.length && flat.length <= 12 && flat.every(Boolean)) {
    shown.push(el("dl", { className: "figures" }, flat.map(([name, given]) => el("div", {}, el("dt", {}, name), el("dd", {}, mark(given))))));
  } else if (Object.keys(rest).length) {
    shown.push(value("As stored", rest));
  }
  return card("Self-evaluation", shown.length ? shown : el("p", { className: "mute" }, "It is empty."));
}

function check({ id, passed, detail }) {
  return el("li", {},
    el("b", { className: passed ? "ok" : "bad", role: "img", "aria-label": passed ? "passed" : "failed" }, passed ? "✓" : "✗"),
    el("span", {}, el("span", { className: passed ? "" : "bad" }, String(id).replaceAll("_", " ")), " ", el("span", { className: "mute" }, detail ?? "")));
}

/** Names and plain values, one level deep; null for what is deeper. */
function facts(name, given) {
  if (given === null || typeof given !== "object") return [[name, given]];
  if (Array.isArray(given)) return [null];
  return Object.entries(given).map(([inner, value]) => (value === null || typeof value !== "object" ? [`${name}: ${inner}`, value] : null));
}

function mark(given) {
  if (typeof given === "number") return given.toLocaleString();
  return { true: "yes", false: "no", null: "–" }[given] ?? String(given);
}

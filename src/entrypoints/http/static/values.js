// Stored values: pretty-printed, long ones folded, each with a button that copies it whole.

import { el, visible } from "/static/dom.js";
import { plural } from "/static/format.js";

const LINES = 24;
const CHARACTERS = 3000;
const COLOURED = 40_000;

/** A value under a heading: a string as it is, all else as JSON. */
export function value(title, stored, note = null) {
  const text = typeof stored === "string" ? stored : JSON.stringify(stored, null, 2);
  const block = el("pre", { tabIndex: 0, "aria-label": title });
  const cut = foldAt(text);
  write(block, text.slice(0, cut), typeof stored !== "string");
  const parts = [el("div", { className: "value-head" }, el("h3", {}, title), note, copyButton(text, title)), block];
  if (cut < text.length) {
    const rest = text.slice(cut).split("\n").length - 1;
    const unfold = el("button", { type: "button", className: "plain" }, rest ? `Show ${plural(rest, "more line")}` : `Show ${plural(text.length - cut, "more character")}`);
    unfold.onclick = () => {
      write(block, text, typeof stored !== "string");
      unfold.remove();
      block.focus({ preventScroll: true });
    };
    parts.push(unfold);
  }
  return el("div", { className: "value" }, parts);
}

function foldAt(text) {
  let at = -1;
  for (let line = 0; line < LINES; line++) {
    at = text.indexOf("\n", at + 1);
    if (at < 0) break;
  }
  const cut = Math.min(at < 0 ? text.length : at, CHARACTERS);
  // A remainder that is hardly longer than the button is not worth one.
  return text.length - cut < 200 ? text.length : cut;
}

function write(block, text, isJson) {
  if (!isJson || text.length > COLOURED) {
    block.replaceChildren(visible(text));
    return;
  }
  const parts = text.split(/^(\s*"(?:[^"\\]|\\.)*")(?=: )/m);
  block.replaceChildren(...parts.map((part, at) => (at % 2 ? el("span", { className: "name" }, part) : visible(part))));
}

/** A button that copies a text as it is stored. */
export function copyButton(text, what) {
  const button = el("button", { type: "button", className: "copy", "aria-label": `Copy: ${what}` }, "Copy");
  button.onclick = async () => {
    button.textContent = (await copied(text)) ? "Copied" : "Not copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  };
  return button;
}

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // No clipboard outside of HTTPS and localhost: the old way still works there.
    const field = el("textarea", { className: "visually-hidden", value: text });
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  }
}

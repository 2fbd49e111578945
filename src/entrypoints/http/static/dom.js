// Builds elements. All text goes in as text, and what would be invisible in it is shown.

// Most text is plain, and needs no more than one look.
const PLAIN = /^[\t\n -~\u00a1-\u00ac\u00ae-\u05ff]*$/;
const PICTURED = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]|\r(?!\n)/g;
const HIDDEN = /[\u0080-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

/** Text in which control characters and characters that steer the writing direction can be seen. */
export function visible(text) {
  if (PLAIN.test(text)) return text;
  return text
    .replace(PICTURED, (found) => (found === "\u007f" ? "␡" : String.fromCodePoint(0x2400 + found.codePointAt(0))))
    .replace(HIDDEN, (found) => `⟨U+${found.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

/** An element with properties, attributes (`aria-…`, `data-…`, `role`) and children; what is null or false is left out. */
export function el(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (key in made && !key.includes("-")) made[key] = key === "title" ? visible(value) : value;
    else made.setAttribute(key, value);
  }
  add(made, children);
  return made;
}

/** Puts children into an element in place of what it holds. */
export function fill(element, ...children) {
  element.replaceChildren();
  add(element, children);
  return element;
}

function add(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : visible(String(child)));
  }
}

/** A part of the page with a heading. */
export function card(title, ...children) {
  return el("section", { className: "card" }, el("h2", {}, title), children);
}

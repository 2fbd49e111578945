// Renders an answer's Markdown into elements. The library only parses: no HTML text is ever made, so none can slip in.

import MarkdownIt from "/static/markdown-it.min.js";
import { el } from "/static/dom.js";

const parser = new MarkdownIt("default", { html: false, linkify: true, typographer: false });
parser.linkify.set({ fuzzyLink: false, fuzzyEmail: false, fuzzyIP: false });
// A definition such as "[T1]: https://…" could turn the citations of an answer into links of its own.
parser.disable("reference");
parser.validateLink = (address) => /^(https?:\/\/|mailto:)/i.test(address.trim());

const BLOCKS = new Set(["p", "ul", "ol", "li", "blockquote", "table", "thead", "tbody", "tr", "th", "td", "strong", "em", "s"]);
const LONGEST = 400_000;

/** The elements of a Markdown text. `hrefOf` gives the address of a cited call, or null where there is none. */
export function markdown(text, hrefOf) {
  const root = el("div", { className: "prose" });
  if (text.length > LONGEST) {
    root.append(el("pre", { tabIndex: 0 }, text));
    return root;
  }
  const outline = { level: 2 };
  render(parser.parse(text, {}), root, hrefOf, outline);
  return root;
}

function render(tokens, root, hrefOf, outline) {
  const open = [root];
  const here = () => open[open.length - 1];
  for (const token of tokens) {
    if (token.hidden) continue;
    if (token.nesting === 1) open.push(opened(token, here(), outline));
    else if (token.nesting === -1) open.pop();
    else if (token.type === "inline") render(token.children, here(), hrefOf, outline);
    else here().append(...leaf(token, hrefOf));
  }
}

function opened(token, parent, outline) {
  const made = element(token, outline);
  // A table may be wider than the page: it scrolls by itself.
  parent.append(token.tag === "table" ? el("div", { className: "scroll", tabIndex: 0, role: "group", "aria-label": "Table" }, made) : made);
  return made;
}

function element(token, outline) {
  if (/^h[1-6]$/.test(token.tag)) {
    // The page has its own h1 and h2; a heading goes at most one level deeper than the one before.
    outline.level = Math.min(Number(token.tag[1]) + 2, outline.level + 1, 6);
    return el(`h${outline.level}`);
  }
  if (token.tag === "a") {
    const href = token.attrGet("href");
    return el("a", { href, title: href, target: "_blank", rel: "noopener noreferrer", className: "out" });
  }
  if (!BLOCKS.has(token.tag)) return el("span");
  const made = el(token.tag);
  if (token.tag === "ol" && token.attrGet("start")) made.start = Number(token.attrGet("start"));
  const align = /text-align:(left|center|right)/.exec(token.attrGet("style") ?? "");
  if (align) made.classList.add(`to-${align[1]}`);
  return made;
}

function leaf(token, hrefOf) {
  switch (token.type) {
    case "text": return cited(token.content, hrefOf);
    case "code_inline": return [el("code", {}, token.content)];
    case "fence":
    case "code_block": return [el("pre", { tabIndex: 0 }, el("code", {}, token.content.replace(/\n$/, "")))];
    case "softbreak": return ["\n"];
    case "hardbreak": return [el("br")];
    case "hr": return [el("hr")];
    case "image": return [el("span", { className: "mute", title: token.attrGet("src") }, `[image: ${token.content || token.attrGet("src")}]`)];
    default: return [el("span", {}, token.content)];
  }
}

/** Text with its citations made links. */
function cited(text, hrefOf) {
  return text.split(/(\[T\d{1,9}\]|\[unsupported\])/).filter(Boolean).map((part) => {
    if (part === "[unsupported]") {
      return el("span", { className: "unsupported", title: "A call was cited here that was never made." }, part);
    }
    const call = /^\[T(\d+)\]$/.exec(part);
    const href = call && hrefOf(Number(call[1]));
    return href ? el("a", { className: "cite", href, "aria-label": `Tool call T${call[1]}` }, `T${call[1]}`) : el("span", {}, part);
  });
}

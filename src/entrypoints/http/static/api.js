// Speaks to the service. What it is given by others stays text: nothing here or above makes HTML of it.

const KEY = "casenotes.key";

/** The service refused, in words that may be shown. */
export class Refused extends Error {
  constructor(status, message, data = null) {
    super(message);
    this.status = status;
    this.data = data;
  }
}

/** The service could not be reached. */
export class Gone extends Error {}

/** Asks for a path; on 401 asks the reader for a key and tries again. */
export async function call(path, { method = "GET", body } = {}) {
  for (;;) {
    const headers = { Accept: "application/json, text/event-stream" };
    const key = sessionStorage.getItem(KEY);
    if (key) headers.Authorization = `Bearer ${key}`;
    if (body !== undefined) headers["Content-Type"] = "application/json";
    let response;
    try {
      response = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
    } catch {
      throw new Gone("The service cannot be reached.");
    }
    if (response.ok) return response;
    if (response.status !== 401) throw await refusal(response);
    await keyFromReader(Boolean(key));
  }
}

async function refusal(response) {
  try {
    const { message, data } = await response.json();
    return new Refused(response.status, message, data);
  } catch {
    return new Refused(response.status, `The service answered ${response.status}.`);
  }
}

/** The `data` of a path, and the path of the next page if there is one. */
export async function read(path, options) {
  const response = await call(path, options);
  const { data } = await response.json();
  const next = /<([^>]+)>;\s*rel="next"/.exec(response.headers.get("Link") || "");
  return { data, next: next ? next[1] : null };
}

/** The events of a stream, as objects `{type, data}`. Throws `Gone` when it breaks off. */
export async function* events(path, body) {
  const response = await call(path, { method: "POST", body });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    let part;
    try {
      part = await reader.read();
    } catch {
      throw new Gone("The connection was lost.");
    }
    if (part.done) return;
    held += part.value;
    const blocks = held.split(/\r\n\r\n|\n\n|\r\r/);
    held = blocks.pop();
    for (const block of blocks) {
      const data = block.split(/\r\n|\n|\r/).filter((line) => line.startsWith("data:")).map((line) => line.slice(5).replace(/^ /, ""));
      if (data.length) yield JSON.parse(data.join("\n"));
    }
  }
}

let asking = null;

function keyFromReader(wasWrong) {
  asking ??= new Promise((resolve) => {
    const form = document.getElementById("key");
    form.hidden = false;
    form.querySelector("output").textContent = wasWrong ? "✗ This key is not accepted." : "";
    form.elements.key.value = "";
    form.elements.key.focus();
    form.onsubmit = (event) => {
      event.preventDefault();
      const given = form.elements.key.value.trim();
      if (!given) return;
      sessionStorage.setItem(KEY, given);
      form.hidden = true;
      asking = null;
      resolve();
    };
  });
  return asking;
}

// Reads streams as the page does: a line of JSON in is a stream in pieces of base64, a line out its events.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const source = readFileSync(process.argv[2]).toString("base64");
const { events } = await import(`data:text/javascript;base64,${source}`);

globalThis.sessionStorage = { getItem: () => null };
for await (const line of createInterface({ input: process.stdin })) {
  const pieces = JSON.parse(line).map((piece) => new Uint8Array(Buffer.from(piece, "base64")));
  const body = new ReadableStream({
    pull(controller) {
      if (pieces.length) controller.enqueue(pieces.shift());
      else controller.close();
    },
  });
  globalThis.fetch = async () => new Response(body);
  const read = [];
  for await (const event of events("/", {})) read.push(event);
  console.log(JSON.stringify(read));
}

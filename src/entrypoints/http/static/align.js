// What two runs have in common, and what only one of them has.

import "/static/diff.min.js";

const { diffArrays, diffWordsWithSpace, diffLines } = globalThis.Diff;
const PATIENCE = { timeout: 600 };
const words = new Intl.Segmenter(undefined, { granularity: "word" });

/** The parts of two texts: `{value, added, removed}`, by words; by lines, or whole, where that would take too long. */
export function textParts(one, other) {
  return diffWordsWithSpace(one, other, { ...PATIENCE, intlSegmenter: words })
    ?? diffLines(one, other, PATIENCE)
    ?? [{ value: one, removed: true }, { value: other, added: true }];
}

/** Pairs `[ofOne, ofOther]` of the entries of two timelines, in order; one of the two is null where it has no match. */
export function aligned(one, other) {
  const parts = diffArrays(one.map(name), other.map(name), PATIENCE);
  if (!parts) return [...one.map((entry) => [entry, null]), ...other.map((entry) => [null, entry])];
  const pairs = [];
  let [left, right] = [0, 0];
  for (const { count, added, removed } of parts) {
    for (let step = 0; step < count; step++) {
      pairs.push([added ? null : one[left++], removed ? null : other[right++]]);
    }
  }
  return pairs;
}

function name({ kind, row }) {
  return kind === "t" ? `t ${row.toolName} ${canonical(row.arguments)}` : `s ${row.agentName} ${row.stepType}`;
}

/**
 * The evidence of two runs, by tool and arguments: the calls that only one of them made, and the pairs of calls that
 * both made and that gave each something else. A call made twice counts twice.
 */
export function evidence(one, other) {
  const made = new Map();
  for (const call of other) {
    const key = callName(call);
    made.set(key, [...(made.get(key) ?? []), call]);
  }
  const onlyOne = [];
  const differing = [];
  for (const call of one) {
    const match = made.get(callName(call))?.shift();
    if (!match) onlyOne.push(call);
    else if (result(call) !== result(match)) differing.push([call, match]);
  }
  return { onlyOne, onlyOther: [...made.values()].flat(), differing };
}

function callName(call) {
  return `${call.toolName} ${canonical(call.arguments)}`;
}

function result(call) {
  return `${call.status} ${call.errorMessage} ${canonical(call.result)}`;
}

/** JSON with its keys in order. */
function canonical(stored) {
  return JSON.stringify(stored, (_, inner) =>
    inner !== null && typeof inner === "object" && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner);
}

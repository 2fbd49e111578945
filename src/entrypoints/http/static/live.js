// Asks again while a run goes on: soon while it moves, seldom while it stands still, never after its end.

const SOONEST = 800;
const SELDOMEST = 10_000;

/**
 * Calls `look` until it says `{ended: true}`. `look` says `{moved}` otherwise, or throws when it could not look;
 * `lost(error)` is told then, and says whether to go on. Nothing is asked for while the page is hidden.
 */
export async function follow(look, lost) {
  let pause = SOONEST;
  for (;;) {
    await waited(pause);
    await seen();
    try {
      const { ended, moved } = await look();
      if (ended) return;
      pause = moved ? SOONEST : Math.min(SELDOMEST, pause * 1.5);
    } catch (error) {
      if (!lost(error)) return;
      pause = Math.min(SELDOMEST, pause * 2);
    }
  }
}

function waited(milliseconds) {
  return new Promise((resolve) => { setTimeout(resolve, milliseconds); });
}

function seen() {
  if (!document.hidden) return Promise.resolve();
  return new Promise((resolve) => { document.addEventListener("visibilitychange", resolve, { once: true }); });
}

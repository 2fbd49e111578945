"""A run of ten thousand steps. What is measured is printed: it says something of a quiet machine only."""

from __future__ import annotations

import pytest
from pages.browsing import opened, trace_page
from pages.scenes import seed_steps
from playwright.sync_api import Browser, expect
from support.background import in_background
from support.scripted import Scripted, telling
from support.service import Backend

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

STEPS = 10_000
WATCH = """
  window.blocked = []; window.painted = new Promise((done) => { window.paint = done; });
  new PerformanceObserver((list) => { for (const one of list.getEntries()) blocked.push(one.duration); })
    .observe({type: 'longtask', buffered: true});
  new MutationObserver(() => {
    if (document.querySelector('#s1')) {
      requestAnimationFrame(() => setTimeout(() => paint(performance.now())));
    }
  }).observe(document, {childList: true, subtree: true});
"""
SCROLL = """async () => {
  blocked.length = 0;
  let worst = 0;
  for (let y = 0; y < 60; y++) {
    const began = performance.now();
    scrollBy(0, y < 50 ? 900 : 30000);
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    worst = Math.max(worst, performance.now() - began);
  }
  return worst;
}"""


def test_ten_thousand_steps(browser: Browser, sqlite: Backend) -> None:
    with in_background(sqlite, Scripted(telling("So it is."))) as service, opened(browser) as page:
        run = service.wait_for(service.here.client.ask("how long is it", "s-1"))
        service.wait_for(seed_steps(service.here, "s-1", run["runId"], STEPS))
        page.add_init_script(WATCH)
        page.goto(trace_page(service, "s-1"))
        expect(page.locator("#s1")).to_be_visible()
        expect(page.locator("#runs a.row")).to_have_count(1)
        painted = page.evaluate("painted")
        loading = page.evaluate("Math.max(0, ...blocked)")
        assert page.locator(".entry").count() < 200
        worst = page.evaluate(SCROLL)
        blocked = page.evaluate("Math.max(0, ...blocked)")
        print(
            f"\n{STEPS} steps: painted after {painted:.0f} ms (longest task {loading:.0f} ms);"
            f" scrolling: longest frame {worst:.0f} ms, longest task {blocked:.0f} ms"
        )
        assert page.locator(".entry").count() < 200

        # A link to the last call: the list goes there, unfolds it, and knows where it stands.
        page.evaluate(f"scrollTo(0, 0); location.hash = 't{STEPS // 4}'")
        call = page.locator(f"#t{STEPS // 4}")
        expect(call).to_have_attribute("open", "")
        expect(call).to_be_in_viewport()
        total = STEPS + STEPS // 4
        expect(page.locator("li[data-key]", has=call)).to_have_attribute("aria-posinset", str(total))
        page.keyboard.press("Home")
        expect(page.locator("#s1 summary")).to_be_focused()
        expect(page.locator("#s1")).to_be_in_viewport()
        page.get_by_label("Show in the timeline").select_option("failed")
        expect(page.locator(".entry")).to_have_count(STEPS // 97)

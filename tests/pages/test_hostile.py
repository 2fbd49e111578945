"""What others wrote is text on the pages, whatever it says."""

from __future__ import annotations

import pytest
from pages.browsing import examine, opened, trace_page
from pages.scenes import BROUGHT, HOSTILE, SHOWN, scenes
from playwright.sync_api import Browser, Page, expect
from support.background import in_background
from support.scripted import Scripted
from support.service import Backend

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

BROUGHT_ELEMENTS = (
    "x-brought, img, iframe, object, embed, body script, style, [onclick], [onerror], [style*=url],"
    " [href^='javascript:'], [href^='data:'], [src^='http']"
)


def _nothing_was_brought(page: Page) -> None:
    expect(page.get_by_text(BROUGHT).first).to_be_visible()
    assert "owned" not in page.title() or "<" in page.title()
    assert page.locator(BROUGHT_ELEMENTS).count() == 0
    shown = page.locator("body").inner_text()
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in shown and "\x1b" not in shown


def test_stored_content_is_never_markup(browser: Browser, memory: Backend) -> None:
    """Every field holds markup; ``opened`` sees to it that no script complains and that no other host is asked."""
    with in_background(memory, Scripted(scenes)) as service, opened(browser) as page:
        client = service.here.client
        one = service.wait_for(client.ask(HOSTILE, "s-1"))
        two = service.wait_for(client.ask(f"again {HOSTILE}", "s-1"))
        service.wait_for(client.rate("s-1", comment=HOSTILE))
        service.wait_for(service.here.seed_history(BROUGHT, HOSTILE))
        page.goto(trace_page(service, "s-1", two["runId"]))
        expect(page.locator("h1")).to_have_text(f"again {SHOWN}")
        for details in page.locator(".entry summary").all():
            details.click()
        expect(page.locator(".entry[open] .body")).to_have_count(3)
        expect(page.locator(".unsupported")).to_have_count(1)
        expect(page.locator(".told q")).to_have_text(SHOWN)
        # Cited in the text, twice; in code it is no citation, and no definition makes another link of it.
        expect(page.locator(".prose .cite")).to_have_count(3)
        expect(page.locator(".prose code .cite")).to_have_count(0)
        assert {cite.get_attribute("href") for cite in page.locator(".prose .cite").all()} == {"#t1"}
        links = [link.get_attribute("href") for link in page.locator(".prose a:not(.cite)").all()]
        assert links == ["https://elsewhere.invalid/page", "https://elsewhere.invalid/hijacked"]
        _nothing_was_brought(page)
        examine(page, "trace-hostile")
        page.get_by_label("Comment").fill(HOSTILE)
        page.get_by_role("button", name="Not useful").click()
        page.get_by_role("button", name="Useful", exact=True).click()
        expect(page.locator(".told a")).to_be_visible()
        for address in (
            trace_page(service, "s-1", one["runId"], compare=two["runId"]),
            trace_page(service, BROUGHT),
            trace_page(service, BROUGHT, BROUGHT),
            f"{service.url}/",
            f"{service.url}/cases",
        ):
            page.goto(address)
            _nothing_was_brought(page)
        page.goto(f"{service.url}/")
        page.get_by_label("Question", exact=True).fill(HOSTILE)
        page.get_by_role("button", name="Ask").click()
        expect(page.locator(".streamed pre")).to_be_visible()
        _nothing_was_brought(page)


def test_the_policy_lets_no_string_become_markup(browser: Browser, memory: Backend) -> None:
    """Even a fault of ours could not: the browser itself refuses."""
    with in_background(memory) as service, opened(browser, minded=False) as page:
        page.goto(f"{service.url}/cases")
        refused = "(act) => { try { act(); return 'done' } catch (error) { return error.name } }"
        for act in ("document.body.innerHTML = '<b>x</b>'", "document.write('<b>x</b>')"):
            assert page.evaluate(f"({refused})(() => {{ {act} }})") == "TypeError", act

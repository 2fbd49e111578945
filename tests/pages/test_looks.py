"""Every state of the pages, at every width and in both modes: accessible, inside the window, and photographed."""

from __future__ import annotations

import pytest
from pages.browsing import OTHER_WIDTHS, examine, look, opened, stays_inside, trace_page
from pages.scenes import WHY_PAYMENT, WHY_SLOW, scenes
from playwright.sync_api import Browser, expect
from support.background import in_background
from support.scripted import Scripted, playing, usual
from support.service import Backend

from casenotes.core.words import StepStatus
from casenotes.ports.agent import Chunk, Progress, StepTaken, ToolCalled

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


def test_runs(browser: Browser, memory: Backend) -> None:
    with in_background(memory, Scripted(scenes)) as service, opened(browser) as page:
        client = service.here.client
        slow = service.wait_for(client.ask(WHY_SLOW, "s-checkout", flow="graph"))
        payment = service.wait_for(client.ask(WHY_PAYMENT, "s-checkout", flow="graph"))
        service.wait_for(client.ask("Is this one degraded?", "s-checkout", flow="graph"))
        for run in (slow, payment):
            service.wait_for(client.rate("s-checkout", runId=run["runId"], comment="It was the node."))
        service.wait_for(client.stream("/api/ai_ops", {"sessionId": "s-alerts"}))

        page.goto(f"{trace_page(service, 's-checkout', payment['runId'])}#t4")
        expect(page.locator("#t4 .body")).to_be_visible()
        expect(page.locator("#runs a.row")).to_have_count(3)
        examine(page, "trace-graph")
        page.goto(trace_page(service, "s-checkout"))
        expect(page.locator(".banner.warn")).to_be_visible()
        examine(page, "trace-degraded")
        page.goto(trace_page(service, "s-alerts"))
        expect(page.locator(".checks .bad").first).to_be_visible()
        examine(page, "trace-aiops")
        page.goto(trace_page(service, "s-checkout", slow["runId"], compare=payment["runId"]))
        expect(page.locator(".pair").first).to_be_visible()
        examine(page, "trace-compare")
        page.goto(f"{service.url}/")
        expect(page.locator("#sessions a")).to_have_count(2)
        examine(page, "console")
        page.goto(f"{service.url}/cases")
        expect(page.locator(".case")).to_have_count(2)
        examine(page, "cases")


def test_what_is_not_there_is_told(browser: Browser, memory: Backend) -> None:
    with in_background(memory) as service, opened(browser) as page:
        page.goto(f"{service.url}/")
        expect(page.get_by_text("No session yet.")).to_be_visible()
        examine(page, "console-empty")
        service.wait_for(service.here.client.ask("one", "s-1"))
        service.wait_for(service.here.seed_session("s-empty"))
        for name, path, words in (
            ("no-session-named", "/trace", "No session is named in this page's address."),
            ("not-found-session", "/trace?sessionId=s-none", "There is no session s-none."),
            ("not-found", "/trace?sessionId=s-1&runId=run-none", "Session s-1 has no run run-none."),
            ("trace-empty", "/trace?sessionId=s-empty", "This session has no run yet."),
            ("cases-empty", "/cases", "No case yet"),
        ):
            page.goto(service.url + path)
            expect(page.get_by_text(words)).to_be_visible()
            if name in ("not-found", "trace-empty", "cases-empty"):
                examine(page, name)
        service.wait_for(service.here.seed_history("s-old"))
        page.goto(trace_page(service, "s-old"))
        expect(page.get_by_text("an old answer")).to_be_visible()
        page.get_by_role("button", name="Useful", exact=True).click()
        expect(page.locator(".told")).to_contain_text("Useful")


def test_a_service_that_is_out_of_reach_is_told_and_tried_again(browser: Browser, memory: Backend) -> None:
    with in_background(memory) as service, opened(browser) as page:
        service.wait_for(service.here.client.ask("one", "s-1"))
        page.route("**/api/**", lambda route: route.abort())
        page.goto(trace_page(service, "s-1"))
        expect(page.locator("#trace")).to_contain_text("The service cannot be reached.")
        examine(page, "gone")
        page.unroute("**/api/**")
        page.locator("#trace").get_by_role("button", name="Try again").click()
        expect(page.locator("h1")).to_have_text("one")


def test_a_key_is_asked_for_and_kept_for_the_tab(browser: Browser, memory: Backend) -> None:
    keys = frozenset({"k-right"})
    with in_background(memory, key="k-right", api_keys=keys) as service, opened(browser) as page:
        service.wait_for(service.here.client.ask("one", "s-1"))
        page.goto(trace_page(service, "s-1"))
        field = page.get_by_label("This service needs an API key.")
        expect(field).to_be_focused()
        field.fill("k-wrong")
        page.get_by_role("button", name="Use this key").click()
        expect(page.get_by_text("This key is not accepted.")).to_be_visible()
        examine(page, "key")
        field.fill("k-right")
        field.press("Enter")
        expect(page.locator("h1")).to_have_text("one")
        expect(field).to_be_hidden()
        page.goto(f"{service.url}/")
        expect(page.locator("#sessions a")).to_have_count(1)
        assert page.evaluate("localStorage.length") == 0


def test_words_without_a_gap_stay_inside_the_window(browser: Browser, memory: Backend) -> None:
    long = "x" * 300
    script = playing(
        Progress(long),
        StepTaken(long, output=long),
        ToolCalled(long, {long: long}, {"a": [long]}, status=StepStatus.FAILED, error_message=long),
        Chunk(f"# {long}\n\n{long} [T1] `{long}`\n\n|{long}|b|\n|-|-|\n|1|2|\n\n```\n{long}\n```\n"),
    )
    with in_background(memory, Scripted(script)) as service, opened(browser) as page:
        run = service.wait_for(service.here.client.ask(long, "s" * 128))
        service.wait_for(service.here.client.rate("s" * 128, comment=long))
        for path in (
            f"{trace_page(service, 's' * 128)}#t1",
            trace_page(service, "s" * 128, run["runId"], compare=run["runId"]),
            f"{service.url}/",
            f"{service.url}/cases",
        ):
            page.goto(path)
            expect(page.get_by_text(long[:200]).first).to_be_visible()
            for width in OTHER_WIDTHS:
                look(page, width, "light")
                assert stays_inside(page), (path, width)


def test_the_page_does_not_jump_while_it_fills(browser: Browser, memory: Backend) -> None:
    with in_background(memory, Scripted(usual)) as service, opened(browser) as page:
        service.wait_for(service.here.client.ask("why", "s-1"))
        page.add_init_script(
            "window.jumped = 0; new PerformanceObserver((list) => { for (const one of list.getEntries())"
            " jumped += one.value; }).observe({type: 'layout-shift', buffered: true})"
        )
        for path in (trace_page(service, "s-1"), f"{service.url}/", f"{service.url}/cases"):
            page.goto(path)
            expect(page.locator(".skeleton")).to_have_count(0)
            page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
            assert page.evaluate("jumped") < 0.1, path

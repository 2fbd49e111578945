"""A run that goes on while it is looked at."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from pages.browsing import api_calls, examine, opened
from playwright.sync_api import Browser, Page, expect
from support.background import in_background
from support.scripted import Gate, Scripted
from support.service import Backend

from casenotes.ports.agent import AgentEvent, Answered, Chunk, Enquiry, Progress, StepTaken, ToolCalled

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

ANSWER = """**The pool is exhausted** since 10:36 [T1].

- `payment` logged *connection refused* 212 times, first at 10:36:04 [T1]
- every other service kept its connections
"""


class Halting:
    """Records a call, tells half an answer, and waits at two gates: before a second call, and before its end."""

    def __init__(self) -> None:
        self.more = asyncio.Event()
        self.end = asyncio.Event()

    async def __call__(self, _enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
        yield StepTaken("planner", output="the logs", duration_ms=12)
        yield ToolCalled("logs.search", {"query": "pool"}, "exhausted", duration_ms=34)
        yield Chunk(ANSWER)
        yield Progress("asking the deploys")
        await self.more.wait()
        yield ToolCalled("deploys.list", {"service": "payment"}, [], duration_ms=8)
        await self.end.wait()
        yield Chunk("\nNot found: no deploy [T2].\n")
        yield Answered()


def _ask(page: Page, url: str, question: str) -> None:
    page.goto(f"{url}/")
    page.get_by_label("Question", exact=True).fill(question)
    page.get_by_role("button", name="Ask").click()


def test_a_running_run_fills_in_and_stops_asking_when_it_ends(browser: Browser, memory: Backend) -> None:
    halting = Halting()
    with in_background(memory, Scripted(halting)) as service, opened(browser) as page:
        _ask(page, service.url, "are you done")
        expect(page.locator(".streamed strong")).to_have_text("The pool is exhausted")
        expect(page.locator(".turn .progress")).to_have_text("asking the deploys…")
        expect(page.get_by_role("button", name="Ask")).to_be_disabled()
        examine(page, "console-streaming", whole=False)
        page.get_by_role("link", name="Trace of this run").click()
        expect(page.locator(".banner.live")).to_contain_text("the page fills in by itself")
        expect(page.locator(".pill.live")).to_have_text("Running")
        page.locator("#t1 summary").click()
        examine(page, "trace-running")
        service.do(halting.more.set)
        expect(page.locator("#t2")).to_contain_text("deploys.list")
        expect(page.locator("#t1")).to_have_attribute("open", "")

        # Out of reach for a while: what was shown stays, and is brought up to date later.
        page.route("**/api/**", lambda route: route.abort())
        expect(page.locator("#notice")).to_have_text("The service cannot be reached. Trying again…")
        expect(page.locator("#t2")).to_be_visible()
        page.unroute("**/api/**")
        service.do(halting.end.set)
        expect(page.locator(".pill.ok")).to_have_text("✓ Success")
        expect(page.locator("#notice")).to_be_hidden()
        expect(page.locator(".prose")).to_contain_text("no deploy T2.")
        expect(page.get_by_role("button", name="Useful", exact=True)).to_be_visible()
        expect(page.locator("#runs a.row")).to_contain_text(["The pool is exhausted"])
        expect(page.locator("#t1")).to_have_attribute("open", "")

        # The trace of an ended run is not asked for again, though its clock runs far ahead.
        asked = api_calls(page)
        page.clock.install()
        page.clock.fast_forward(60_000)
        assert [url for url in asked if "/trace" in url] == []


def test_a_run_that_is_erased_while_it_is_looked_at_is_told_missing(
    browser: Browser, memory: Backend
) -> None:
    gate = Gate(StepTaken("planner"))
    with in_background(memory, Scripted(gate)) as service, opened(browser) as page:
        _ask(page, service.url, "are you done")
        page.get_by_role("link", name="Trace of this run").click()
        expect(page.locator("#s1")).to_be_visible()
        session_id = service.wait_for(service.here.client.get("/api/sessions")).data[0]["sessionId"]
        service.wait_for(service.here.client.delete(f"/api/chat/session/{session_id}"))
        expect(page.get_by_text(f"Session {session_id} has no run")).to_be_visible()
        service.do(gate.opened.set)


def test_a_stream_that_breaks_off_says_where_the_answer_will_be(browser: Browser, memory: Backend) -> None:
    halting = Halting()
    with opened(browser) as page:
        with in_background(memory, Scripted(halting)) as service:
            _ask(page, service.url, "are you done")
            expect(page.locator(".streamed strong")).to_be_visible()
        expect(page.locator(".turn .progress")).to_contain_text("✗ ")
        expect(page.locator(".streamed")).to_contain_text("The pool is exhausted")
        expect(page.get_by_role("button", name="Ask")).to_be_enabled()

"""The pages, in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect
from support.background import Background, in_background
from support.scripted import Gate, Scripted, playing, raising, usual
from support.service import Backend

from casenotes.ports.agent import Chunk, Progress, StepTaken, ToolCalled

pytestmark = pytest.mark.browser

HARD_ID = "s:1+a=b@~é-\N{CJK UNIFIED IDEOGRAPH-4E2D}"
HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"


@contextmanager
def opened(browser: Browser, width: int = 1200, scheme: str = "light") -> Iterator[Page]:
    """A page of its own. A fault of a script, or of the content policy, fails the test."""
    context = browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme="dark" if scheme == "dark" else "light"
    )
    page = context.new_page()
    page.set_default_timeout(20_000)
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on(
        "console",
        lambda message: (
            None
            if message.type != "error" or "Failed to load resource" in message.text
            else faults.append(message.text)
        ),
    )
    try:
        yield page
        assert not faults, faults
    finally:
        context.close()


def trace_page(service: Background, session_id: str, run_id: str | None = None) -> str:
    query = {"sessionId": session_id} | ({} if run_id is None else {"runId": run_id})
    return f"{service.url}/trace?{urlencode(query)}"


def api_calls(page: Page) -> list[str]:
    """The API paths that the page asks for from now on, as they are sent."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/api/" in request.url else None)
    return asked


@pytest.mark.parametrize("session_id", ["s-1", HARD_ID])
def test_trace_ui_honors_url_run_id(browser: Browser, memory: Backend, session_id: str) -> None:
    """The scenario of the spec: the run of the address is asked for, exactly, though a newer one exists."""
    with in_background(memory) as service, opened(browser) as page:
        first = service.wait_for(service.here.client.ask("the first question", session_id))
        service.wait_for(service.here.client.ask("the second question", session_id))
        asked = api_calls(page)
        page.goto(trace_page(service, session_id, first["runId"]))
        expect(page.locator("h1")).to_have_text("the first question")
        expect(page.locator("#trace")).to_contain_text("three lines [T1] for the first question")
        expect(page.locator("#runs a")).to_have_count(2)
        expect(page.locator("#runs a[aria-current]")).to_contain_text("the first question")
        encoded = quote(session_id, safe="")
        traces = [url for url in asked if "/trace" in url]
        assert traces == [f"{service.url}/api/diagnosis/{encoded}/trace?runId={first['runId']}"]


def test_without_a_run_id_the_latest_is_shown_and_named_in_the_address(
    browser: Browser, memory: Backend
) -> None:
    with in_background(memory) as service, opened(browser) as page:
        service.wait_for(service.here.client.ask("the first question", HARD_ID))
        latest = service.wait_for(service.here.client.ask("why the second", HARD_ID))
        page.goto(trace_page(service, HARD_ID))
        expect(page.locator("h1")).to_have_text("why the second")
        found = parse_qs(urlsplit(page.url).query)
        assert found == {"sessionId": [HARD_ID], "runId": [latest["runId"]]}
        expect(page.locator(".path li")).to_have_count(6)
        page.reload()
        expect(page.locator("h1")).to_have_text("why the second")


def test_a_citation_leads_to_its_call(browser: Browser, memory: Backend) -> None:
    with in_background(memory) as service, opened(browser) as page:
        service.wait_for(service.here.client.ask("why", "s-1"))
        page.goto(trace_page(service, "s-1"))
        call = page.locator("#t2")
        expect(call).not_to_have_attribute("open", "")
        page.get_by_role("link", name="[T2]").click()
        expect(call).to_have_attribute("open", "")
        expect(call).to_contain_text("timeout waiting for a connection")
        expect(call).to_be_in_viewport()


def test_stored_text_is_shown_as_text(browser: Browser, memory: Backend) -> None:
    script = playing(
        StepTaken(HOSTILE, output=HOSTILE),
        ToolCalled(HOSTILE, {HOSTILE: HOSTILE}, HOSTILE),
        Chunk(f"{HOSTILE} [x](javascript:document.title='owned') [T1] [T7]\n"),
    )
    with in_background(memory, Scripted(script)) as service, opened(browser) as page:
        service.wait_for(service.here.client.ask(HOSTILE, "s-1"))
        service.wait_for(service.here.client.rate("s-1", comment=HOSTILE))
        for path in (trace_page(service, "s-1"), f"{service.url}/", f"{service.url}/cases"):
            page.goto(path)
            expect(page.get_by_text(HOSTILE).first).to_be_visible()
            assert page.title() != "owned"
            assert page.locator("img, main script, [href^=javascript]").count() == 0
        page.goto(trace_page(service, "s-1"))
        expect(page.locator(".unsupported")).to_have_text("[unsupported]")


def test_feedback_goes_to_exactly_the_run_that_is_shown(browser: Browser, memory: Backend) -> None:
    with in_background(memory) as service, opened(browser) as page:
        client = service.here.client
        shown = service.wait_for(client.ask("one", "s-1"))
        latest = service.wait_for(client.ask("two", "s-1"))
        page.goto(trace_page(service, "s-1", shown["runId"]))
        page.get_by_label("Comment").fill("it helped")
        page.get_by_role("button", name="useful", exact=True).click()
        expect(page.get_by_text(f"bound to {shown['runId']} · case 1")).to_be_visible()
        expect(page.get_by_role("button", name="useful", exact=True)).to_have_attribute(
            "aria-pressed", "true"
        )
        found = service.wait_for(client.trace("s-1", shown["runId"])).data["feedback"]
        assert (found["rating"], found["comment"]) == ("useful", "it helped")
        assert service.wait_for(client.trace("s-1", latest["runId"])).data["feedback"] is None
        page.get_by_role("button", name="not useful").click()
        expect(page.get_by_role("button", name="not useful")).to_have_attribute("aria-pressed", "true")
        expect(page.get_by_role("button", name="useful", exact=True)).to_have_attribute(
            "aria-pressed", "false"
        )


def test_a_running_run_is_followed_to_its_end(browser: Browser, memory: Backend) -> None:
    gate = Gate(StepTaken("planner"), ToolCalled("logs.search", {"q": "x"}))
    with in_background(memory, Scripted(gate)) as service, opened(browser) as page:
        page.goto(f"{service.url}/")
        page.get_by_label("Question", exact=True).fill("are you done")
        page.get_by_role("button", name="Ask").click()
        page.get_by_role("link", name="Trace of this run").click()
        expect(page.get_by_text("This run has not ended.")).to_be_visible()
        expect(page.locator("#t1")).to_contain_text("logs.search")
        service.do(gate.opened.set)
        expect(page.locator(".pill.ok")).to_have_text("✓ Success")
        expect(page.locator("#trace")).to_contain_text("are you done")


def test_a_failed_run_says_why(browser: Browser, memory: Backend) -> None:
    broken = Scripted(raising(ValueError("x"), Chunk("half an answer\n")))
    with in_background(memory, broken) as service, opened(browser) as page:
        service.wait_for(service.here.client.ask("what", "s-1"))
        page.goto(trace_page(service, "s-1"))
        expect(page.get_by_role("alert")).to_have_text("The run failed: an internal fault ended the run")
        expect(page.locator(".pill.bad")).to_have_text("✗ Failed")


def test_what_is_not_there_is_told(browser: Browser, memory: Backend) -> None:
    with in_background(memory) as service, opened(browser) as page:
        service.wait_for(service.here.client.ask("one", "s-1"))
        service.wait_for(service.here.seed_session("s-empty"))
        for path, words in (
            ("/trace", "No session is named in this page's address."),
            ("/trace?sessionId=s-none", "There is no session s-none."),
            ("/trace?sessionId=s-1&runId=run-none", "Session s-1 has no run run-none."),
            ("/trace?sessionId=s-empty", "This session has no run yet."),
            ("/cases", "No case yet"),
        ):
            page.goto(service.url + path)
            expect(page.get_by_text(words)).to_be_visible()


def test_history_without_a_run_is_shown(browser: Browser, memory: Backend) -> None:
    with in_background(memory) as service, opened(browser) as page:
        service.wait_for(service.here.seed_history("s-old"))
        page.goto(trace_page(service, "s-old"))
        expect(page.get_by_text("an old answer")).to_be_visible()
        page.get_by_role("button", name="useful", exact=True).click()
        expect(page.get_by_text("rated useful")).to_be_visible()


def test_the_console_asks_and_goes_on_in_the_same_conversation(browser: Browser, memory: Backend) -> None:
    asked = Scripted(usual)
    with in_background(memory, asked) as service, opened(browser) as page:
        page.goto(f"{service.url}/")
        expect(page.get_by_text("No session yet.")).to_be_visible()
        for question in ("hello there", "and then"):
            page.get_by_label("Question", exact=True).fill(question)
            page.get_by_label("Question", exact=True).press("Control+Enter")
            expect(page.get_by_text(f"three lines [T1] for {question}")).to_be_visible()
            expect(page.get_by_role("button", name="Ask")).to_be_enabled()
        assert asked.enquiries[0].session_id == asked.enquiries[1].session_id
        assert [pair.question for pair in asked.enquiries[1].conversation] == ["hello there"]
        expect(page.locator("#sessions a")).to_have_count(1)
        page.get_by_role("button", name="Begin a new one").click()
        page.get_by_label("Question", exact=True).fill("elsewhere")
        page.get_by_role("button", name="Ask").click()
        expect(page.locator("#sessions a")).to_have_count(2)
        page.get_by_label("Search sessions").fill("nowhere")
        expect(page.get_by_text("Nothing matches.")).to_be_visible()
        page.get_by_label("Search sessions").fill("hello")
        expect(page.locator("#sessions a")).to_have_count(1)
        page.locator("#sessions a").click()
        expect(page.locator("h1")).to_have_text("and then")


def test_the_console_diagnoses_the_firing_alerts(browser: Browser, memory: Backend) -> None:
    with in_background(memory) as service, opened(browser) as page:
        page.goto(f"{service.url}/")
        page.get_by_role("button", name="Diagnose the firing alerts").click()
        expect(page.get_by_text("Next action: drain the node.")).to_be_visible()
        page.get_by_role("link", name="[T2]").click()
        expect(page.locator("h1")).to_have_text("Diagnose the firing alerts")
        expect(page.locator("#t2")).to_have_attribute("open", "")
        expect(page.get_by_text("7 of 7 rules hold")).to_be_visible()


def test_a_key_is_asked_for_and_kept_for_the_tab(browser: Browser, memory: Backend) -> None:
    keys = frozenset({"k-right"})
    with in_background(memory, key="k-right", api_keys=keys) as service, opened(browser) as page:
        service.wait_for(service.here.client.ask("one", "s-1"))
        page.goto(trace_page(service, "s-1"))
        field = page.get_by_label("This service needs an API key.")
        field.fill("k-wrong")
        page.get_by_role("button", name="Use this key").click()
        expect(page.get_by_text("This key is not accepted.")).to_be_visible()
        field.fill("k-right")
        field.press("Enter")
        expect(page.locator("h1")).to_have_text("one")
        expect(field).to_be_hidden()
        page.goto(f"{service.url}/")
        expect(page.locator("#sessions a")).to_have_count(1)
        assert page.evaluate("localStorage.length") == 0


def test_a_service_that_is_gone_is_told_and_tried_again(browser: Browser, memory: Backend) -> None:
    with in_background(memory) as service, opened(browser) as page:
        service.wait_for(service.here.client.ask("one", "s-1"))
        page.route("**/api/**", lambda route: route.abort())
        page.goto(trace_page(service, "s-1"))
        expect(page.locator("#trace")).to_contain_text("The service cannot be reached.")
        page.unroute("**/api/**")
        page.locator("#trace").get_by_role("button", name="Try again").click()
        expect(page.locator("h1")).to_have_text("one")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 390, 1440])
def test_nothing_is_wider_than_the_window(browser: Browser, memory: Backend, width: int, scheme: str) -> None:
    long = "x" * 300
    script = playing(
        Progress(long),
        StepTaken(long, output=long),
        ToolCalled(long, {long: long}, {"a": [long]}, error_message=long),
        Chunk(f"{long} [T1]\n"),
    )
    with in_background(memory, Scripted(script)) as service, opened(browser, width, scheme) as page:
        service.wait_for(service.here.client.ask(long, "s" * 128))
        service.wait_for(service.here.client.rate("s" * 128))
        for path in (f"{trace_page(service, 's' * 128)}#t1", f"{service.url}/", f"{service.url}/cases"):
            page.goto(path)
            expect(page.get_by_text(long).first).to_be_visible()
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path

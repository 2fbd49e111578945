"""The page of a run: which run it asks for, what it shows of it, and the feedback that it takes."""

from __future__ import annotations

from urllib.parse import parse_qs, quote, urlsplit

import pytest
from pages.browsing import api_calls, opened, trace_page
from pages.scenes import WHY_PAYMENT, WHY_SLOW, scenes
from playwright.sync_api import Browser, expect
from support.background import in_background
from support.scripted import Scripted, playing, raising
from support.service import Backend

from casenotes.ports.agent import Chunk, StepTaken, ToolCalled

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

HARD_ID = "s:1+a=b@~é-\N{CJK UNIFIED IDEOGRAPH-4E2D}"


def test_trace_ui_honors_url_run_id(browser: Browser, memory: Backend) -> None:
    """The scenario of the spec: the run of the address is asked for, exactly, though a newer one exists."""
    with in_background(memory) as service:
        for session_id in ("s-1", HARD_ID):
            with opened(browser) as page:
                first = service.wait_for(service.here.client.ask("the first question", session_id))
                service.wait_for(service.here.client.ask("the second question", session_id))
                asked = api_calls(page)
                page.goto(trace_page(service, session_id, first["runId"]))
                expect(page.locator("h1")).to_have_text("the first question")
                expect(page.locator("#trace")).to_contain_text("three lines T1 for the first question")
                expect(page.locator("#runs a.row")).to_have_count(2)
                expect(page.locator("#runs a.row").first).to_contain_text("the second question")
                expect(page.locator("#runs a.row[aria-current]")).to_contain_text("the first question")
                encoded = quote(session_id, safe="")
                traces = [url for url in asked if "/trace" in url]
                assert traces == [f"{service.url}/api/diagnosis/{encoded}/trace?runId={first['runId']}"]


def test_ids_are_encoded_exactly_once(browser: Browser, memory: Backend) -> None:
    with in_background(memory) as service, opened(browser) as page:
        asked = api_calls(page)
        page.goto(f"{service.url}/trace?sessionId=a%20b%23&runId=run-x")
        expect(page.get_by_text("Session a b# has no run run-x.")).to_be_visible()
        expect(page.locator("#runs")).to_contain_text("None.")
        print("\nthe requests:", *asked, sep="\n  ")
        assert [url for url in asked if "/diagnosis/" in url] == [
            f"{service.url}/api/diagnosis/a%20b%23/trace?runId=run-x"
        ]


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
        page.reload()
        expect(page.locator("h1")).to_have_text("why the second")


def test_a_run_is_read_from_its_answer_down_to_its_evidence(browser: Browser, memory: Backend) -> None:
    with in_background(memory, Scripted(scenes)) as service, opened(browser) as page:
        service.wait_for(service.here.client.ask(WHY_PAYMENT, "s-1", flow="graph"))
        page.goto(trace_page(service, "s-1"))
        expect(page.locator(".prose strong").first).to_contain_text("payment lost its database connections")
        expect(page.locator(".path .node")).to_have_text(
            ["planner", "executor", "evidence_check", "executor", "evidence_check", "✓ composer"]
        )
        expect(page.locator(".path .retry")).to_have_count(1)
        expect(page.get_by_text("1 evidence retry").first).to_be_visible()

        # A citation leads to its call, which is unfolded and marked.
        call = page.locator("#t4")
        expect(call).not_to_have_attribute("open", "")
        page.get_by_role("link", name="Tool call T4").click()
        expect(call).to_have_attribute("open", "")
        expect(call).to_have_class("entry nested here")
        expect(call).to_contain_text("212x ERROR could not connect to db-main:5432")
        expect(call).to_be_in_viewport()
        expect(call.locator("summary")).to_be_focused()

        # The keyboard goes on from there.
        page.keyboard.press("ArrowDown")
        expect(page.locator("#t5 summary")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("#t5 .fault")).to_contain_text("timed out after 0.12 s")
        page.keyboard.press("Home")
        expect(page.locator("#s1 summary")).to_be_focused()

        # A long result is folded; a cut one says how large it was. Copying gives it as it is stored.
        page.locator("#t6 summary").click()
        expect(page.locator("#t6 .note").last).to_have_text("cut: 64.0 KiB of 142.5 KiB are kept")
        block = page.locator("#t6").get_by_label("Result", exact=True)
        assert len(block.inner_text()) < 4000
        page.locator("#t6").get_by_role("button", name="more lines").click()
        expect(block).to_contain_text("payment-7f9 GET /v1/charges 503 1200 ms")
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.locator("#t6").get_by_role("button", name="Copy: Arguments").click()
        expect(page.locator("#t6").get_by_text("Copied")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText().then(JSON.parse)") == {
            "service": "payment",
            "lines": 3000,
        }

        # The bars lie where their times are: a call ends before the next step does.
        left = page.locator("#s1 .bar").bounding_box()
        right = page.locator("#t6 .bar").bounding_box()
        assert left and right and left["x"] + left["width"] < right["x"]

        page.get_by_label("Show in the timeline").select_option("failed")
        expect(page.locator(".entry")).to_have_count(1)
        page.get_by_role("link", name="Tool call T2").click()
        expect(page.locator("#t2")).to_have_attribute("open", "")


def test_feedback_goes_to_exactly_the_run_that_is_shown(browser: Browser, memory: Backend) -> None:
    with in_background(memory) as service, opened(browser) as page:
        client = service.here.client
        shown = service.wait_for(client.ask("one", "s-1"))
        latest = service.wait_for(client.ask("two", "s-1"))
        page.goto(trace_page(service, "s-1", shown["runId"]))
        useful, useless = (
            page.get_by_role("button", name="Useful", exact=True),
            page.get_by_text("Not useful"),
        )
        page.get_by_label("Comment").fill("it helped")
        useful.click()
        expect(page.get_by_text(f"bound to {shown['runId']} · case 1")).to_be_visible()
        expect(useful).to_have_attribute("aria-pressed", "true")
        found = service.wait_for(client.trace("s-1", shown["runId"])).data["feedback"]
        assert (found["rating"], found["comment"]) == ("useful", "it helped")
        assert service.wait_for(client.trace("s-1", latest["runId"])).data["feedback"] is None
        page.reload()
        expect(page.get_by_label("Comment")).to_have_value("it helped")
        expect(page.locator(".told")).to_contain_text("Useful since")
        page.get_by_role("button", name="Not useful").click()
        expect(page.get_by_text("no case is kept of it")).to_be_visible()
        expect(useless.first).to_have_attribute("aria-pressed", "true")
        expect(useful).to_have_attribute("aria-pressed", "false")
        useful.click()
        page.get_by_role("link", name="case 1").click()
        expect(page.locator("#case-1")).to_have_class("card case here")
        page.get_by_role("link", name="Trace of its run").click()
        expect(page.locator("h1")).to_have_text("one")
        assert parse_qs(urlsplit(page.url).query)["runId"] == [shown["runId"]]


def test_feedback_that_was_not_saved_is_told(browser: Browser, memory: Backend) -> None:
    with in_background(memory) as service, opened(browser) as page:
        service.wait_for(service.here.client.ask("one", "s-1"))
        page.goto(trace_page(service, "s-1"))
        page.route("**/api/feedback", lambda route: route.abort())
        page.get_by_label("Comment").fill("it helped")
        page.get_by_role("button", name="Useful", exact=True).click()
        expect(page.locator(".told")).to_have_text("Not saved: The service cannot be reached.")
        expect(page.get_by_label("Comment")).to_have_value("it helped")


def test_failed_and_degraded_runs_cannot_be_overlooked(browser: Browser, memory: Backend) -> None:
    with in_background(memory, Scripted(scenes)) as service, opened(browser) as page:
        service.wait_for(service.here.client.ask("a degraded one", "s-1", flow="graph"))
        page.goto(trace_page(service, "s-1"))
        expect(page.locator(".banner.warn")).to_contain_text("This answer is degraded.")
        expect(page.locator(".banner.warn")).to_contain_text("evidence stayed too thin after every retry")
        expect(page.locator(".node.last.warn")).to_have_text("⚠ fallback")
        expect(page.locator(".bar.failed")).to_have_count(2)
    broken = Scripted(raising(ValueError("x"), ToolCalled("logs.search"), Chunk("half an answer\n")))
    with in_background(memory, broken) as service, opened(browser) as page:
        service.wait_for(service.here.client.ask("what", "s-1"))
        page.goto(trace_page(service, "s-1"))
        expect(page.get_by_role("alert")).to_contain_text("an internal fault ended the run")
        expect(page.locator(".pill.bad")).to_have_text("✗ Failed")
        expect(page.locator("#t1")).to_contain_text("logs.search")


def test_a_long_list_of_runs_is_read_page_by_page(browser: Browser, memory: Backend) -> None:
    with in_background(memory, Scripted(playing(Chunk("so")))) as service, opened(browser) as page:
        for number in range(32):
            service.wait_for(service.here.client.ask(f"question {number}", "s-1"))
        page.goto(trace_page(service, "s-1"))
        expect(page.locator("#runs a.row")).to_have_count(30)
        page.get_by_role("button", name="Older runs").click()
        expect(page.locator("#runs a.row")).to_have_count(32)
        expect(page.locator("#runs a.row").last).to_contain_text("question 0")
        expect(page.locator("h1")).to_have_text("question 31")


def test_a_session_is_compared_within_and_with_another(browser: Browser, memory: Backend) -> None:
    with in_background(memory, Scripted(scenes)) as service, opened(browser) as page:
        client = service.here.client
        slow = service.wait_for(client.ask(WHY_SLOW, "s-1", flow="graph"))
        payment = service.wait_for(client.ask(WHY_PAYMENT, "s-1", flow="graph"))
        other = service.wait_for(client.ask("a degraded one", "s 2".replace(" ", "+"), flow="graph"))
        page.goto(trace_page(service, "s-1", payment["runId"]))
        page.locator(".run").nth(1).hover()
        page.get_by_role("link", name="Compare with").click()
        expect(page.locator("h1")).to_have_text("Two runs compared")
        assert parse_qs(urlsplit(page.url).query) == {
            "sessionId": ["s-1"],
            "runId": [payment["runId"]],
            "compare": [slow["runId"]],
        }
        expect(page.locator(".side-A .asked")).to_have_text(WHY_PAYMENT)
        expect(page.locator(".side-B .asked")).to_have_text(WHY_SLOW)
        expect(page.locator(".text ins").first).to_have_text("checkout waits for")
        expect(page.locator(".text del").last).to_contain_text("the source did not answer [T5].")
        expect(page.locator(".pair.only-A")).to_have_count(2)
        expect(page.locator(".pair.only-B")).to_have_count(0)
        only = page.locator(".card", has_text="Evidence that only one had").locator(".two > div")
        expect(only.nth(0).locator("li")).to_contain_text(["deploys.list", "logs.tail"])
        expect(only.nth(1)).to_contain_text("Nothing that the other did not have.")
        page.get_by_role("link", name="Swap").click()
        expect(page.locator(".side-A .asked")).to_have_text(WHY_SLOW)

        page.get_by_text("Compare with another session").click()
        page.get_by_label("Session id").fill("s+2")
        page.get_by_role("button", name="Compare").click()
        expect(page.locator(".side-B h2")).to_contain_text(other["runId"])
        expect(page.locator(".side-B")).to_contain_text("Degraded")
        only.nth(1).get_by_role("link").first.click()
        expect(page.locator("h1")).to_have_text("a degraded one")
        expect(page.locator("#t1")).to_have_attribute("open", "")


def test_steps_and_calls_without_times_or_a_step_are_shown(browser: Browser, memory: Backend) -> None:
    script = playing(
        ToolCalled("before.any_step"), StepTaken("planner"), ToolCalled("in.the_step"), Chunk("[T1]")
    )
    with in_background(memory, Scripted(script)) as service, opened(browser) as page:
        service.wait_for(service.here.client.ask("what", "s-1"))
        page.goto(trace_page(service, "s-1"))
        expect(page.locator(".entry .label strong")).to_have_text(
            ["before.any_step", "planner", "in.the_step"]
        )
        expect(page.locator(".bar.instant")).to_have_count(3)
        expect(page.locator(".entry.nested")).to_have_count(1)

"""The console and the case library."""

from __future__ import annotations

import pytest
from pages.browsing import opened
from playwright.sync_api import Browser, expect
from support.background import in_background
from support.scripted import Scripted, telling, usual
from support.service import Backend

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


def test_the_console_asks_and_goes_on_in_the_same_conversation(browser: Browser, memory: Backend) -> None:
    asked = Scripted(usual)
    with in_background(memory, asked) as service, opened(browser) as page:
        page.goto(f"{service.url}/")
        expect(page.get_by_text("No session yet.")).to_be_visible()
        question = page.get_by_label("Question", exact=True)
        for words in ("hello there", "and then"):
            question.fill(words)
            question.press("Control+Enter")
            expect(page.get_by_text(f"three lines T1 for {words}")).to_be_visible()
            expect(page.get_by_role("button", name="Ask")).to_be_enabled()
        assert asked.enquiries[0].session_id == asked.enquiries[1].session_id
        assert [pair.question for pair in asked.enquiries[1].conversation] == ["hello there"]
        expect(page.locator("#sessions a")).to_have_count(1)

        # The conversation is named in the address, and goes on after a reload.
        page.reload()
        expect(page.locator("#conversation")).to_contain_text(asked.enquiries[0].session_id)
        page.get_by_role("button", name="Begin a new one").click()
        question.fill("elsewhere")
        page.get_by_role("button", name="Ask").click()
        expect(page.locator("#sessions a")).to_have_count(2)
        assert asked.enquiries[2].session_id != asked.enquiries[0].session_id

        page.get_by_label("Search sessions").fill("nowhere")
        expect(page.get_by_text("Nothing matches “nowhere”.")).to_be_visible()
        page.get_by_label("Search sessions").fill("hello")
        expect(page.locator("#sessions a")).to_have_count(1)
        page.get_by_label("Search sessions").fill(asked.enquiries[2].session_id)
        expect(page.locator("#sessions a")).to_contain_text("elsewhere")
        page.locator("#sessions a").click()
        expect(page.locator("h1")).to_have_text("elsewhere")
        page.get_by_role("link", name="Ask more in this session").click()
        expect(page.locator("#conversation")).to_contain_text(asked.enquiries[2].session_id)


def test_the_console_diagnoses_the_firing_alerts(browser: Browser, memory: Backend) -> None:
    with in_background(memory) as service, opened(browser) as page:
        page.goto(f"{service.url}/")
        page.get_by_role("button", name="Diagnose the firing alerts").click()
        expect(page.get_by_text("Next action: drain the node.")).to_be_visible()
        expect(page.locator("#conversation")).to_have_text("A question begins a new conversation.")
        page.get_by_role("link", name="Tool call T2").click()
        expect(page.locator("h1")).to_have_text("Diagnose the firing alerts")
        expect(page.locator("#t2")).to_have_attribute("open", "")
        expect(page.get_by_text("7 of 7 rules hold")).to_be_visible()
        expect(page.locator(".checks li")).to_have_count(7)


def test_the_cases_are_searched_and_lead_to_their_runs(browser: Browser, memory: Backend) -> None:
    long = "A pool that ran dry. " * 90
    with in_background(memory, Scripted(telling(long, pieces_of=400))) as service, opened(browser) as page:
        client = service.here.client
        for number in range(22):
            service.wait_for(client.ask(f"incident {number:02}", f"s-{number}"))
            service.wait_for(client.rate(f"s-{number}"))
        page.goto(f"{service.url}/cases")
        expect(page.locator(".case")).to_have_count(20)
        page.get_by_role("button", name="Older cases").click()
        expect(page.locator(".case")).to_have_count(22)
        page.get_by_role("button", name="Show all of it").first.click()
        expect(page.locator(".case .prose").first).not_to_have_class("prose folded")
        page.get_by_label("Search cases").fill("nothing of the kind")
        expect(page.get_by_text("No case matches “nothing of the kind”.")).to_be_visible()
        page.get_by_label("Search cases").fill("incident 07")
        expect(page.locator(".case")).to_have_count(1)
        page.get_by_role("link", name="Trace of its run").click()
        expect(page.locator("h1")).to_have_text("incident 07")

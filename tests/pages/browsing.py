"""A reader's browser: opens the pages at every width and in both modes, and minds what must never happen there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal
from urllib.parse import quote, urlencode

from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, Page
from support.background import Background

SCREENSHOTS = Path(__file__).parents[1] / "screenshots"

Scheme = Literal["light", "dark"]
LOOKS: tuple[tuple[int, Scheme], ...] = ((1440, "light"), (390, "dark"))
OTHER_WIDTHS = (360, 760, 1920)


@contextmanager
def opened(
    browser: Browser, width: int = 1440, scheme: Scheme = "light", *, minded: bool = True
) -> Iterator[Page]:
    """A page of its own. A fault of a script or a breach of the content policy fails the test, and so does a
    request to any other host; ``minded=False`` lets that pass."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, timezone_id="UTC"
    )
    page = context.new_page()
    page.set_default_timeout(20_000)
    faults: list[str] = []
    hosts: set[str] = set()
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on(
        "console",
        lambda message: (
            # The browser's own word about an answer of 401, 404 or none at all.
            None
            if message.type != "error" or "Failed to load resource" in message.text
            else faults.append(message.text)
        ),
    )
    page.on("request", lambda request: hosts.add(request.url.split("/")[2].split(":")[0]))
    try:
        yield page
        assert not minded or not faults, faults
        assert hosts <= {"127.0.0.1"}, hosts
    finally:
        context.close()


def trace_page(service: Background, session_id: str, run_id: str | None = None, **more: str) -> str:
    query = {"sessionId": session_id} | ({} if run_id is None else {"runId": run_id}) | more
    return f"{service.url}/trace?{urlencode(query, quote_via=quote)}"


def api_calls(page: Page) -> list[str]:
    """The API addresses that the page asks for from now on, as they are sent."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/api/" in request.url else None)
    return asked


def look(page: Page, width: int, scheme: Scheme) -> None:
    """Give the window another width, and the system the other mode."""
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")


def stays_inside(page: Page) -> bool:
    """Whether nothing is wider than the window."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def examine(page: Page, name: str, *, whole: bool = True) -> None:
    """Hold the page, as it is, to accessibility rules in both modes, and to every width; keep pictures of it."""
    SCREENSHOTS.mkdir(exist_ok=True)
    for width in OTHER_WIDTHS:
        look(page, width, "light")
        assert stays_inside(page), f"{name} at {width} px"
    for width, scheme in LOOKS:
        look(page, width, scheme)
        assert stays_inside(page), f"{name} at {width} px"
        found = Axe().run(page)
        assert found.violations_count == 0, found.generate_report()
        page.screenshot(path=SCREENSHOTS / f"{name}-{width}-{scheme}.png", full_page=whole)
    look(page, *LOOKS[0])

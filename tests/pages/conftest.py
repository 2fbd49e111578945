"""A browser for the tests of the pages."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright
from support.servers import find_browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium, one for each module.

    While it lives, this thread has a running event loop: a module that uses it has no test of its own for a loop.
    """
    if (path := find_browser()) is None:
        reason = "no Chromium: apt-get install chromium-headless-shell, or set CASENOTES_TEST_BROWSER"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    arguments = ["--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    if os.geteuid() == 0:
        arguments.append("--no-sandbox")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=arguments)
        yield chromium
        chromium.close()

"""What all tests share: the backends, and a browser."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
import structlog
from playwright.sync_api import Browser, sync_playwright
from support.servers import find_browser
from support.service import Backend, memory_backend, sqlite_backend

pytest_plugins = ["support.database_servers"]


def pytest_configure() -> None:
    """Send the service's logs to the standard library, where pytest shows them for a test that failed."""
    structlog.configure(
        processors=[structlog.processors.format_exc_info, structlog.processors.KeyValueRenderer()],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
    )


@pytest.fixture(params=["memory", "sqlite"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    """Each backend in turn."""
    return memory_backend() if request.param == "memory" else sqlite_backend(tmp_path)


@pytest.fixture
def sqlite(tmp_path: Path) -> Backend:
    """The backend whose database can be looked into."""
    return sqlite_backend(tmp_path)


@pytest.fixture
def memory() -> Backend:
    """The backend for what has nothing to do with a database."""
    return memory_backend()


@pytest.fixture
def browser() -> Iterator[Browser]:
    """A headless Chromium. One for each test: while it lives, this thread has a running event loop."""
    if (path := find_browser()) is None:
        _missing("Chromium", "apt-get install chromium-headless-shell, or set CASENOTES_TEST_BROWSER")
    arguments = ["--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    if os.geteuid() == 0:
        arguments.append("--no-sandbox")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=arguments)
        yield chromium
        chromium.close()


def _missing(what: str, how: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(f"{what} is needed in CI: {how}")
    pytest.skip(f"no {what}: {how}")

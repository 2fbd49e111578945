"""The files that the pages are made of."""

from __future__ import annotations

import re

from support.http import Client
from support.service import Backend, Running

from casenotes.entrypoints.http.pages import FOLDER


def test_every_file_is_asked_for_by_a_page_and_is_there() -> None:
    """From the pages on, each file names what it needs; nothing needed is missing, and nothing is left over."""
    needed = {f"{name}.html" for name in ("console", "trace", "cases")}
    seen: set[str] = set()
    while missing := needed - seen:
        name = missing.pop()
        seen.add(name)
        if not name.endswith(".min.js"):
            needed |= set(re.findall(r'"/static/([^"]+)"', (FOLDER / name).read_text("utf-8")))
    served = {path.name for path in FOLDER.iterdir() if path.suffix != ".txt"}
    assert seen == served


def test_vendored_files_are_noted_and_licensed() -> None:
    noted = (FOLDER / "VENDORED.txt").read_text("utf-8")
    for path in FOLDER.glob("*.min.js"):
        assert path.name in noted
        assert (FOLDER / path.name.replace(".min.js", ".LICENSE.txt")).is_file()


def test_a_known_file_is_not_sent_again(memory: Backend) -> None:
    async def scenario(here: Running) -> None:
        client: Client = here.client
        first = await client.get("/static/base.css")
        assert first.headers["Content-Type"] == "text/css; charset=utf-8"
        again = await client.get("/static/base.css", **{"If-None-Match": first.headers["ETag"]})
        assert (again.status, again.body) == (304, b"")
        other = await client.get("/static/base.css", **{"If-None-Match": '"another"'})
        assert (other.status, other.body) == (200, first.body)
        for reply in (first, again):
            assert reply.headers["X-Frame-Options"] == "DENY"
            assert "require-trusted-types-for 'script'" in reply.headers["Content-Security-Policy"]

    memory.run(scenario)

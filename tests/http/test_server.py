from __future__ import annotations

import asyncio

import pytest
from support.service import Backend, Running

from casenotes.core.errors import InvalidSettings
from casenotes.entrypoints.http.addresses import is_loopback
from casenotes.entrypoints.http.server import listening


@pytest.mark.parametrize(
    ("host", "private"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.0.7", False),
        ("example.org", False),
        ("", False),
    ],
)
def test_loopback_is_told_from_the_rest(host: str, private: bool) -> None:
    assert is_loopback(host) is private


def test_an_address_that_others_reach_needs_keys(memory: Backend) -> None:
    async def open_to_all() -> None:
        async with listening(memory.settings, host="0.0.0.0"):
            pass

    with pytest.raises(InvalidSettings, match="CASENOTES_API_KEYS"):
        asyncio.run(open_to_all())


def test_an_address_that_is_taken_is_named(memory: Backend) -> None:
    async def scenario(here: Running) -> None:
        port = int(here.client.url.rpartition(":")[2])
        with pytest.raises(InvalidSettings, match=f"cannot listen on 127.0.0.1:{port}"):
            async with listening(memory.settings, port=port):
                pass

    memory.run(scenario)

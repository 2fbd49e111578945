from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.http import client_of
from support.service import Backend, Running

PROTECTED = (
    "/api/sessions",
    "/%61pi/sessions",
    "/api/openapi.json",
    "/api/nothing",
    "/metrics",
    "/api/diagnosis/s/trace",
)
OPEN = ("/healthz", "/readyz", "/", "/trace", "/cases")


def test_without_a_key_the_api_and_the_metrics_are_closed(memory: Backend) -> None:
    async def scenario(here: Running) -> None:
        for path in PROTECTED:
            reply = await here.client.get(path)
            assert reply.status == 401 and reply.headers["WWW-Authenticate"] == "Bearer"
            assert reply.json["code"] == 401
        for path in OPEN:
            assert (await here.client.get(path)).status == 200
        assert (await here.client.post("/api/chat", {"question": "q"})).status == 401
        assert not here.service.executions.running()

    memory.run(scenario, api_keys=frozenset({"k-one", "k-two"}))


@pytest.mark.parametrize("key", ["k-one", "k-two"])
def test_each_key_opens_it(memory: Backend, key: str) -> None:
    async def scenario(here: Running) -> None:
        assert (await here.client.get("/api/sessions")).status == 200
        assert (await here.client.get("/metrics")).status == 200
        assert (await here.client.ask("q"))["success"] is True
        assert (await here.client.get("/api/sessions", Authorization=f"bearer {key}")).status == 200

    memory.run(scenario, key=key, api_keys=frozenset({"k-one", "k-two"}))


@pytest.mark.parametrize(
    "header", ["", "k-one", "Basic k-one", "Bearer", "Bearer k-on", "Bearer k-one2", "Bearer K-ONE"]
)
def test_what_is_not_a_key_does_not(memory: Backend, header: str) -> None:
    async def scenario(here: Running) -> None:
        assert (await here.client.get("/api/sessions", Authorization=header)).status == 401

    memory.run(scenario, api_keys=frozenset({"k-one"}))


def test_a_file_of_keys_is_read_again_when_it_changes(memory: Backend, tmp_path: Path) -> None:
    file = tmp_path / "keys"

    async def scenario(here: Running) -> None:
        async with (
            client_of(here.client.url, key="k-old") as old,
            client_of(here.client.url, key="k-new") as new,
        ):

            async def seen() -> list[int]:
                return [(await client.get("/api/sessions")).status for client in (old, new)]

            assert await seen() == [200, 401]
            (tmp_path / "next").write_text("k-new\n")
            os.replace(tmp_path / "next", file)
            assert await seen() == [401, 200]
            file.unlink()
            assert await seen() == [401, 200]
            file.write_text("")
            assert await seen() == [401, 401]

    file.write_text("k-old\n\n")
    memory.run(scenario, api_keys_file=file)

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.http import client_of
from support.raw import say
from support.service import Backend, Running

PROTECTED = (
    "/api/sessions",
    "/%61pi/sessions",
    "/api/openapi.json",
    "/api/nothing",
    "/metrics",
    "/api/diagnosis/s/trace",
)
CLOSING = b"GET /api/sessions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
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


def test_a_rotation_takes_effect_within_the_process_however_fast_the_file_is_written_again(
    memory: Backend, tmp_path: Path
) -> None:
    """In place, with a key of the same length, and with the same time of change: nothing but the text differs."""
    file = tmp_path / "keys"

    async def scenario(here: Running) -> None:
        for number in range(30):
            stat = file.stat()
            file.write_text(f"k-{number:02}\n")
            os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
            new, old = f"Bearer k-{number:02}", f"Bearer k-{number - 1:02}"
            assert (await here.client.get("/api/sessions", Authorization=new)).status == 200
            assert (await here.client.get("/api/sessions", Authorization=old)).status == 401

    file.write_text("k--1\n")
    memory.run(scenario, api_keys_file=file)


def test_a_file_that_lies_still_is_read_once(
    memory: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, reads = tmp_path / "keys", list[Path]()

    def read_text(path: Path, encoding: str) -> str:
        reads.append(path)
        return real(path, encoding)

    async def scenario(here: Running) -> None:
        monkeypatch.setattr(Path, "read_text", read_text)
        for _ in range(5):
            assert (await here.client.get("/api/sessions")).status == 200

    real = Path.read_text
    file.write_text("k-one\n")
    os.utime(file, (1_700_000_000, 1_700_000_000))
    memory.run(scenario, key="k-one", api_keys_file=file)
    assert reads == [file]


@pytest.mark.parametrize("text", ["", "\n\n", "  \n\t\n", "\ufeff\n"])
def test_a_file_without_a_key_opens_nothing(memory: Backend, tmp_path: Path, text: str) -> None:
    file = tmp_path / "keys"

    async def scenario(here: Running) -> None:
        for header in ("Bearer ", "Bearer", "", "Bearer \t", "Bearer \ufeff"):
            assert (await here.client.get("/api/sessions", Authorization=header)).status == 401
        assert (await here.client.get("/metrics")).status == 401

    file.write_text(text, "utf-8")
    memory.run(scenario, api_keys_file=file)


def test_a_file_may_come_from_any_editor(memory: Backend, tmp_path: Path) -> None:
    """Marked as UTF-8, lines ended as on Windows, padded, and with letters of any script."""
    file = tmp_path / "keys"

    async def scenario(here: Running) -> None:
        for key in ("k-one", "schlüssel-Ω", "k three"):
            assert (await here.client.get("/api/sessions", Authorization=f"Bearer  {key} ")).status == 200
        for key in ("k-on", "schlussel-Ω", "k", "three"):
            assert (await here.client.get("/api/sessions", Authorization=f"Bearer {key}")).status == 401
        latin = CLOSING + b"Authorization: Bearer schl\xfcssel-\xd9\r\n\r\n"
        assert (await say(here.client.url, latin)).status == 401

    file.write_bytes("\ufeffk-one\r\n  schlüssel-Ω\t\r\nk three".encode())
    memory.run(scenario, api_keys_file=file)


def test_two_authorizations_are_none(memory: Backend) -> None:
    async def scenario(here: Running) -> None:
        for pair in (("Bearer k-one", "Bearer wrong"), ("Basic x", "Bearer k-one"), ("Bearer k-one",) * 2):
            lines = b"".join(b"Authorization: %s\r\n" % value.encode() for value in pair)
            assert (await say(here.client.url, CLOSING + lines + b"\r\n")).status in (400, 401)

    memory.run(scenario, api_keys=frozenset({"k-one"}))

"""How light it is: the import, an idle service, and a thousand streams that are open and wait."""

from __future__ import annotations

import asyncio
import os
import resource
import sys
from pathlib import Path
from typing import Final

from bench import service_apart, work
from bench.http_client import ROOT, connect, get, post
from bench.http_client import service_apart as started
from bench.measuring import Comparison, Figure, Spoilt, at_most

STREAMS: Final = 1_000
IMPORT: Final = at_most(0.5, absolute=True)
IDLE: Final = at_most(80, absolute=True)
OPEN: Final = at_most(200, absolute=True)

_STATUS: Final = Path("/proc/self/status")
_SETTLED_SECONDS: Final = 2
_AT_ONCE: Final = 50
_IMPORT: Final = """
import time
began = time.perf_counter()
import casenotes
print(time.perf_counter() - began)
"""


async def imported(repetitions: int) -> list[Comparison]:
    """How long ``import casenotes`` takes in a new process; the first, which may compile, is not counted."""
    seconds = [await _import_seconds() for _ in range(repetitions + 1)]
    return [Comparison("import casenotes", "s", (), [Figure(each) for each in seconds[1:]], IMPORT)]


async def _import_seconds() -> float:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _IMPORT, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    told, _ = await process.communicate()
    return float(told)


async def resident(folder: Path) -> list[Comparison]:
    """The memory of ``casenotes serve`` that has answered once, and of a service with a thousand open streams.

    The first start makes the file, with all that migrates loaded; a later one finds nothing to migrate.
    """
    if not _STATUS.exists():
        print("how much memory a process has is asked of /proc, which is not here: left out")
        return []
    first, again = await _idle_mib(folder), await _idle_mib(folder)
    opened = await _opened_mib(folder)
    return [
        Comparison("idle service, first start", "MiB", (), [Figure(first)], IDLE),
        Comparison("idle service, later starts", "MiB", (), [Figure(again)], IDLE),
        Comparison(f"{STREAMS:,} open streams, over idle", "MiB", (), [Figure(opened)], OPEN),
    ]


async def _idle_mib(folder: Path) -> float:
    argv = ("-m", "casenotes", "serve", "--port", "0")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CASENOTES_")}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *argv,
        cwd=folder,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdout is not None
    try:
        url = (await process.stdout.readline()).decode().split()[-1]
        reader, writer = await connect(url)
        writer.write(get("/readyz"))
        await reader.readuntil(b"\r\n\r\n")
        writer.close()
        await asyncio.sleep(_SETTLED_SECONDS)
        return _resident_mib(process.pid)
    finally:
        process.kill()
        await process.wait()


async def _opened_mib(folder: Path) -> float:
    """What a service takes for streams whose runs wait, over what it took before."""
    _allow_files(2 * STREAMS)
    writers: list[asyncio.StreamWriter] = []
    database, context = f"sqlite:///{folder / 'streams.db'}", f"sqlite:///{folder / 'streams-context.db'}"
    room = str(2 * STREAMS)
    bounds = {"CASENOTES_MAX_RUNNING": room, "CASENOTES_MAX_CONNECTIONS": room}
    async with started(folder, database, context, **bounds) as apart:
        turns = asyncio.Semaphore(_AT_ONCE)

        async def open_stream(number: int) -> None:
            body = {"sessionId": work.session_id(number), "question": service_apart.NEVER, "flow": "chat"}
            async with turns:
                reader, writer = await connect(apart.product)
                writers.append(writer)
                writer.write(post("/api/chat_stream", body))
                head = await reader.readuntil(b"\r\n\r\n")
                if not head.startswith(b"HTTP/1.1 200 "):
                    raise Spoilt(f"a stream was not opened: {head!r} {await reader.read(500)!r}")
                await reader.readuntil(b'"metadata"')

        try:
            await asyncio.sleep(_SETTLED_SECONDS)
            before = _resident_mib(apart.pid)
            await asyncio.gather(*map(open_stream, range(STREAMS)))
            await asyncio.sleep(_SETTLED_SECONDS)
            return _resident_mib(apart.pid) - before
        finally:
            for writer in writers:
                writer.close()


def _resident_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (kibibytes,) = (line.split()[1] for line in lines if line.startswith("VmRSS:"))
    return int(kibibytes) / 1024


def _allow_files(number: int) -> None:
    """Let this process and those it starts have so many files open, as far as it may say so."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = number if hard == resource.RLIM_INFINITY else min(number, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))

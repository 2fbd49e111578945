"""Through HTTP: traces beside a bare application that answers the same bytes, and chats beside their own writes.

The service is a process of its own, with the bare application in it, and logs as it does in earnest.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bench import work
from bench.http_client import Connections, get, post, service_apart
from bench.measuring import Comparison, Load, at_least, at_most, in_turns
from bench.postgres_floor import PostgresFloor
from bench.product import on_postgres, on_sqlite

CONCURRENCY: Final = 16
TRACE: Final = at_least(0.3)
CHAT: Final = at_most(3)
CHAT_FLUSHES: Final = 2
"""The start of its run, then the end."""


async def postgres_trace(
    url: str, context_url: str, folder: Path, seconds: float, repetitions: int
) -> list[Comparison]:
    async with on_postgres(url) as product:
        await product.fill()
    return [await _traces("postgres", url, context_url, folder, seconds, repetitions)]


async def sqlite_trace(folder: Path, seconds: float, repetitions: int) -> list[Comparison]:
    file = folder / "http.db"
    async with on_sqlite(file) as product:
        await product.fill()
    context_url = f"sqlite:///{folder / 'context.db'}"
    return [await _traces("sqlite", f"sqlite:///{file}", context_url, folder, seconds, repetitions)]


async def _traces(
    database: str, url: str, context_url: str, folder: Path, seconds: float, repetitions: int
) -> Comparison:
    requests = [get(f"/api/diagnosis/{work.session_id(number)}/trace") for number in range(work.SESSIONS)]
    async with (
        service_apart(folder, url, context_url) as apart,
        Connections.open(apart.product, CONCURRENCY) as product,
        Connections.open(apart.bare, CONCURRENCY) as bare,
    ):
        body = await product.ask(requests[0])
        await bare.ask(post("/bytes", body))

        async def ask_product(number: int) -> None:
            await product.ask(requests[number % len(requests)])

        async def ask_bare(number: int) -> None:
            await bare.ask(requests[number % len(requests)])

        floors, products = Load(ask_bare, CONCURRENCY), Load(ask_product, CONCURRENCY)
        await floors.warm_up(seconds)
        await products.warm_up(seconds)
        pairs = await in_turns(floors.rate, products.rate, repetitions)
    what = f"trace: HTTP on {database}, {CONCURRENCY} at once"
    by = f"aiohttp, {len(body):,} bytes from memory"
    return Comparison(what, "requests/s", *pairs, TRACE, floor_is=by, cpu_tells=False)


async def chat(
    url: str, context_url: str, folder: Path, seconds: float, repetitions: int
) -> list[Comparison]:
    """How long a chat takes whose diagnostician does nothing, beside the statements that its run needs."""
    async with on_postgres(url) as product:
        evaluation = await product.fill()
    async with (
        service_apart(folder, url, context_url) as apart,
        Connections.open(apart.product, CONCURRENCY) as connections,
        PostgresFloor.open(url, CONCURRENCY, evaluation) as floor,
    ):

        async def ask(number: int) -> None:
            body = {"sessionId": work.session_id(number), "question": work.question(number), "flow": "chat"}
            await connections.ask(post("/api/chat", body))

        floors = Load(floor.record_bare, CONCURRENCY, first=90_000_000)
        products = Load(ask, CONCURRENCY)
        await floors.warm_up(seconds)
        await products.warm_up(seconds)
        pairs = await in_turns(floors.median_ms, products.median_ms, repetitions)
    by = f"asyncpg, {CONCURRENCY} connections, the 4 statements of a run without facts"
    what = f"chat: HTTP on postgres, {CONCURRENCY} at once"
    return [Comparison(what, "p50 ms", *pairs, CHAT, floor_is=by, cpu_tells=False, flushes=CHAT_FLUSHES)]

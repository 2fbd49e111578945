"""The unit of work that is measured: a run of 6 steps and 6 tool calls with outputs of 500 bytes, in 50 sessions."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

STEPS: Final = 6
TOOLS: Final = 6
SESSIONS: Final = 50
OUTPUT_BYTES: Final = 500
SEED: Final = 20_261_201

AGENT: Final = "executor"
MODEL: Final = "m-1"
TOOL: Final = "logs.search"
ARGUMENTS: Final[Mapping[str, object]] = {
    "query": 'service="checkout" |= "timeout"',
    "minutes": 30,
    "limit": 50,
}
INPUT_TOKENS: Final = 1_200
OUTPUT_TOKENS: Final = 130
STEP_MS: Final = 900
TOOL_MS: Final = 40

_LEVELS = ("INFO", "WARN", "ERROR")
_PODS = ("checkout-7d9f8c6b5d", "payment-5c4b7d8f9d", "cart-6f7d9c8b5b", "orders-8b5d7f9c6d")
_PHRASES = (
    "timeout after 3 retries waiting for a connection",
    "pool exhausted: total=20 active=20 idle=0 waiting=131",
    "upstream reset by peer",
    "p99 rose above the objective",
    "consumer lag grows on partition 7",
    "segment flushed and rebalanced",
    "GET /api/cart answered 503",
)


def _text(random_: random.Random) -> str:
    lines: list[str] = []
    while sum(map(len, lines)) < OUTPUT_BYTES:
        at = f"2026-12-01T04:{random_.randrange(60):02}:{random_.randrange(60):02}Z"
        pod = f"{random_.choice(_PODS)}-{random_.randrange(16**5):05x}"
        lines.append(
            f"{at} {random_.choice(_LEVELS)} {pod} {random_.choice(_PHRASES)} in {random_.randrange(10_000)} ms\n"
        )
    return "".join(lines)[:OUTPUT_BYTES].strip().ljust(OUTPUT_BYTES, ".")


_TEXTS: Final = tuple(_text(random_) for random_ in (random.Random(SEED),) for _ in range(256))


def text(number: int) -> str:
    """An output of 500 bytes: lines of a log; the same for the same number."""
    return _TEXTS[number % len(_TEXTS)]


def session_id(number: int) -> str:
    """The session that the run of this number belongs to."""
    return f"bench-session-{number % SESSIONS:02}"


def question(number: int) -> str:
    return f"Why does checkout answer slowly since the deploy of build {number}?"


def answer(number: int) -> str:
    return "The connection pool is exhausted [T1], since the deploy [T2].\n\n" + text(number)[:430]

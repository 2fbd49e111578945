"""The real time, and real names."""

from __future__ import annotations

import secrets
import time
from datetime import UTC, datetime


def utc_now() -> datetime:
    """The time now, aware, in UTC."""
    return datetime.now(UTC)


def new_id() -> str:
    """A version 7 UUID: 48 bits of milliseconds, then 74 random bits. Later ones sort later."""
    value = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    text = f"{value:032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))

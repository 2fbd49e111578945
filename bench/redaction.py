"""What redaction costs, text by text, and how that grows with the text: a rule that is quadratic shows here.

    .venv/bin/python bench/redaction.py [--out redaction.json]

For ordinary texts: microseconds for 500 bytes and for 64 KiB, the most that is stored of one result. For texts made to
be slow: the time for 32 KiB and for 64 KiB, and how many times the first the second is. Twice the text should take
about twice the time; over ``MOST_GROWTH`` times, the rule that the text was made against is to be looked at, and the
exit status is 1.
"""

from __future__ import annotations

import base64
import json
import sys
import time
from argparse import ArgumentParser
from pathlib import Path

from casenotes.core.redaction import redact

SMALL, LARGE = 500, 64 * 1024
MOST_GROWTH = 2.6

_LOG = (
    "2026-03-01T09:14:07.112Z ERROR payment-7d9f8c6b5d-x2x9k c.e.p.Pool - timeout after 30000 ms waiting for a"
    " connection (total=20, active=20, idle=0, waiting=131) trace_id=4bf92f3577b34da6a3ce929d0e0e4736\n"
)
_ROW = {
    "metric": {"__name__": "http_requests_total", "pod": "payment-7d9f8c6b5d-x2x9k", "code": "503"},
    "value": [1772356447.112, "131"],
    "traceId": "4bf92f3577b34da6a3ce929d0e0e4736",
    "key": "order:1934",
}
_HINTED = (
    "2026-03-01T09:14:07.112Z INFO payment-7d9f8c6b5d-x2x9k the session of an author has passed inside, keyed by order,"
    " see https://grafana.example/d/pay -- value=131\n"
)
_SECRETIVE = (
    'time=09:14:07 level=info msg="token bucket refilled" tokens=512 url=https://pay.example/v1?id=7\n'
    'env: DB_PASSWORD=hunter2hunter2 dsn=postgres://app:s3cr3t@db:5432/pay {"api_key": "k-123", "n": 1}\n'
)
ORDINARY = {
    "log": _LOG,
    "json": json.dumps(_ROW) + ",",
    "base64": base64.b64encode(bytes(range(256))).decode(),
    "words like those of secrets": _HINTED,
    "secrets": _SECRETIVE,
}
_UNITS = (
    *(
        "a",
        "A",
        "0",
        "=",
        ":",
        "-",
        "_",
        ".",
        "/",
        "@",
        "&",
        '"',
        "'",
        "\\",
        '\\"',
        " ",
        "\t",
        "\n",
        "{",
        "é",
    ),
    *(
        "-----BEGIN ",
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\n",
        "-----END PRIVATE KEY-----\n",
    ),
    *("a://", "a://b:", "a://b:c@", "a://b:c", "http://", "eyJ", "eyJaaaaaaaa.", "eyJaaaaaaaa.eyJaaaaaaaa"),
    *(
        "password",
        "password=",
        "password =",
        "pass",
        "password: ",
        "password ",
        "secret_",
        "my_secret_",
        "a_b-",
    ),
    *("api_key", "apikey", "key", '"password":"', "'password':'", '\\"password\\":\\"', '"token":', "token="),
    *(
        "bearer ",
        "bearer a",
        "authorization: ",
        "authorization:",
        "basic ",
        "cookie: ",
        "cookie:a=",
        "set-cookie",
    ),
    *("--password ", "--", "-u a:", "curl -u ", "curl ", "AKIA", "ghp_", "sk-", "sig=", "&sig=", "token "),
    *(
        "machine a login b password ",
        "xoxb-",
        "xoxb-1-",
        "SG.a",
        "hooks.slack.com/services/",
        "identified by '",
    ),
    *(
        "name: password value: ",
        '"name": "password", "value": ',
        "kind: Secret\ndata:\n  a: ",
        "AIza",
        "x-api-key: ",
    ),
)
HARD = {unit: unit for unit in _UNITS} | {
    f"password={unit}...": unit for unit in ("a", "\\", '"', "=", ":", " ")
}


def filled(unit: str, size: int) -> str:
    """The unit over and over, ``size`` characters of it."""
    return (unit * (size // len(unit) + 1))[:size]


def microseconds(text: str, least_seconds: float = 0.05) -> float:
    """What redacting the text takes, the best of five."""
    begun = time.thread_time()
    redact(text)
    once = time.thread_time() - begun
    times = max(1, int(least_seconds / 5 / max(once, 1e-7)))
    best = float("inf")
    for _ in range(5):
        begun = time.thread_time()
        for _ in range(times):
            redact(text)
        best = min(best, (time.thread_time() - begun) / times)
    return best * 1e6


def hard(label: str, unit: str, size: int) -> str:
    """The text of this name: the unit over and over, after ``password=`` where the name says so."""
    return ("password=" if label.endswith("...") else "") + filled(unit, size)


def main() -> int:
    parser = ArgumentParser(description="What redaction costs.")
    parser.add_argument("--out", type=Path, help="write the figures there as JSON")
    asked = parser.parse_args()

    print(f"{'text':<32}{'500 B, us':>12}{'64 KiB, us':>12}")
    figures: dict[str, dict[str, float]] = {}
    for name, unit in ORDINARY.items():
        small, large = (microseconds(filled(unit, size)) for size in (SMALL, LARGE))
        figures[name] = {"us_500_bytes": round(small, 1), "us_64_kib": round(large, 1)}
        print(f"{name:<32}{small:>12.1f}{large:>12.0f}")

    print(f"\n{'made to be slow':<32}{'32 KiB, us':>12}{'64 KiB, us':>12}{'growth':>9}")
    grown = 0
    for name, unit in HARD.items():
        for _ in range(3):  # what else the machine does may spoil one
            half, whole = (microseconds(hard(name, unit, size), 0.01) for size in (LARGE // 2, LARGE))
            if whole <= half * MOST_GROWTH:
                break
        growth = whole / half
        grown += growth > MOST_GROWTH
        figures[name] = {
            "us_32_kib": round(half, 1),
            "us_64_kib": round(whole, 1),
            "growth": round(growth, 2),
        }
        marked = " <-- grows too fast" if growth > MOST_GROWTH else ""
        print(f"{name!r:<32}{half:>12.0f}{whole:>12.0f}{growth:>9.2f}{marked}")
    if asked.out is not None:
        asked.out.write_text(json.dumps(figures, indent=2) + "\n", "utf-8")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())

"""Values that one store takes and another refuses, and values too large: the same, and harmless, on every backend."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from support.scripted import Scripted, playing
from support.service import Backend, Running
from support.statements import heard

from casenotes.adapters.sql.ledger import SqlLedger
from casenotes.core.text import LIMIT_BYTES, bounded, clean_json
from casenotes.ports.agent import Answered, StepTaken, ToolCalled


class Broken:
    """What a tool may hand over: an object that fails whatever is asked of it."""

    def __repr__(self) -> str:
        raise RuntimeError("password=hunter2")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("password=hunter2")

    __hash__ = object.__hash__


class BrokenList(list[object]):
    def __iter__(self) -> object:  # type: ignore[override]
        raise RuntimeError("password=hunter2")


def nested(depth: int) -> object:
    value: object = "x"
    for _ in range(depth):
        value = [value]
    return value


def doubled(times: int) -> object:
    """A list that holds one list twice, which does likewise: as a tree it has more leaves than there are atoms."""
    value: object = ["x"]
    for _ in range(times):
        value = [value, value]
    return value


def in_itself() -> object:
    value: dict[str, object] = {}
    value["again"] = [value]
    return value


STORED = [
    ("a\x00b", "a\ufffdb"),
    ("a\ud800b", "a\ufffdb"),
    ({"a\x00": "\udfff"}, {"a\ufffd": "\ufffd"}),
    (float("nan"), "NaN"),
    ([float("inf"), -float("inf")], ["Infinity", "-Infinity"]),
    (b"ab\xff\x00", "ab\ufffd\ufffd"),
    (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00+00:00"),
    (in_itself(), {"again": ["[cyclic]"]}),
    ("[1]", "[1]"),
    ([1], [1]),
    ('"[1]"', '"[1]"'),
    ("null", "null"),
    ("[" * 5000, "[" * 5000),
    ({10**5000: 1}, {hex(10**5000): 1}),
    ({"password": Broken(), "them": {Broken()}}, {"password": "[redacted:password]", "them": ["<Broken>"]}),
    ({Broken(): 1}, {"<Broken>": 1}),
    ([BrokenList([1])], ["<BrokenList>"]),
    (2**70, 2**70),
]


def test_every_odd_value_of_a_tool_is_stored_alike_and_fails_no_run(backend: Backend) -> None:
    calls = [ToolCalled("t", {"value": given}, given) for given, _ in STORED]

    async def scenario(here: Running) -> None:
        assert (await here.client.ask("q", "s-1"))["success"] is True
        found = (await here.client.trace("s-1")).data["toolInvocations"]
        for (_, stored), call in zip(STORED, found, strict=True):
            assert (call["result"], call["arguments"]) == (stored, {"value": stored})
            assert type(call["result"]) is type(stored) and call["status"] == "SUCCESS"

    backend.run(scenario, Scripted(playing(*calls)))


def test_json_nested_thousands_deep_is_cut_and_read_again(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        assert (await here.client.ask("q", "s-1"))["success"] is True
        (call,) = (await here.client.trace("s-1")).data["toolInvocations"]
        for stored in (call["result"], call["arguments"]):
            assert "[nested too deep]" in json.dumps(stored)
        reply = await here.client.post("/api/ai_ops", {"alerts": [{"labels": nested(900)}]})
        assert reply.status == 400 and "nested" in reply.message

    backend.run(scenario, Scripted(playing(ToolCalled("t", {"deep": nested(20_000)}, nested(20_000)))))


LINE = "GET /a?password=hunter2 200\n"


def lines(megabytes: int) -> list[str]:
    return [LINE] * (megabytes * 1024 * 1024 // len(LINE))


def test_tens_of_megabytes_are_stored_cut_with_their_true_size(backend: Backend) -> None:
    text, report = "".join(lines(24)), {"lines": lines(6)}
    sizes = [len(text), len(json.dumps(report, separators=(",", ":")))]

    async def scenario(here: Running) -> None:
        assert (await here.client.ask("q", "s-1"))["success"] is True
        found = (await here.client.trace("s-1")).data
        for call, size in zip(found["toolInvocations"], sizes, strict=True):
            assert call["resultTruncated"] is True and isinstance(call["result"], str)
            assert LIMIT_BYTES - 4 < len(call["result"].encode()) <= LIMIT_BYTES
            assert "hunter2" not in call["result"] and call["resultSize"] == size
        assert len(found["agentSteps"][0]["output"].encode()) <= LIMIT_BYTES
        for path in ("/api/chat/session/s-1/runs", "/api/sessions", "/api/cases"):
            assert len((await here.client.get(path)).body) < 2000

    script = playing(StepTaken("a", output=text), ToolCalled("t", {}, text), ToolCalled("t", {}, report))
    backend.run(scenario, Scripted(script))


@pytest.mark.parametrize(
    ("value", "size"),
    [
        (b"x" * 10_000_000, 10_000_000),
        (range(1_000_000), len(json.dumps(list(range(1_000_000)), separators=(",", ":")))),
        ({str(n): [n, {"n": n}] for n in range(20_000)}, None),
        (
            {"é": "€" * 3_000_000, "n": [float("nan")] * 9},
            9_000_000 + len(b'{"\xc3\xa9":"","n":[]}') + 9 * 6 - 1,
        ),
        (doubled(15), None),
    ],
)
def test_the_true_size_of_what_is_large_is_told_whatever_it_is(value: object, size: int | None) -> None:
    if size is None:
        size = len(json.dumps(value, separators=(",", ":")))
    kept = bounded(value)
    assert (kept.truncated, kept.size) == (True, size)
    assert isinstance(kept.value, str) and len(kept.value.encode()) <= LIMIT_BYTES


def test_a_value_that_holds_its_parts_many_times_takes_no_time() -> None:
    """As a tree, this list has more leaves than there is memory; as JSON it would never end."""
    kept = bounded(doubled(60))
    assert kept.truncated and kept.size > 2**60
    assert isinstance(kept.value, str) and len(kept.value) <= LIMIT_BYTES
    assert len(json.dumps(clean_json(doubled(40)))) < 10 * 1024 * 1024


def test_what_is_left_out_of_a_large_value_ends_before_a_secret_that_it_halves() -> None:
    token = "ghp_" + "a1" * 20
    for before in range(0, 60, 7):
        key = "-----BEGIN PRIVATE KEY-----" + "k" * (98_304 - 80 - before) + "-----END PRIVATE KEY-----"
        assert "ghp_" not in str(bounded(f"{key} {token} " + "x" * 100_000).value)


def test_tokens_past_32_bits_add_up(backend: Backend) -> None:
    step = StepTaken("a", input_tokens=2**31 + 5, output_tokens=2**40)

    async def scenario(here: Running) -> None:
        await here.client.ask("q", "s-1")
        steps = (await here.client.trace("s-1")).data["agentSteps"]
        assert sum(one["inputTokens"] for one in steps) == 3 * (2**31 + 5)
        assert sum(one["outputTokens"] for one in steps) == 3 * 2**40
        if here.has_rows:
            (row,) = here.rows(
                "select sum(input_tokens) as read, sum(output_tokens) as written from agent_step"
            )
            assert (int(row["read"]), int(row["written"])) == (3 * (2**31 + 5), 3 * 2**40)

    backend.run(scenario, Scripted(playing(step, step, step)))


@pytest.mark.parametrize("told", [-1, 2**53, 10**30, 1.5, True, "7", [7]])
def test_a_count_that_is_none_is_unknown_and_the_run_readable(backend: Backend, told: Any) -> None:
    """Servers of models say the oddest things of tokens; SQLite would store them, and no reader take them."""
    step = StepTaken("a", input_tokens=told, output_tokens=told, duration_ms=told)

    async def scenario(here: Running) -> None:
        assert (await here.client.ask("q", "s-1"))["success"] is True
        found = (await here.client.trace("s-1")).data
        (first, second), (call,) = found["agentSteps"], found["toolInvocations"]
        counts = [first["inputTokens"], first["outputTokens"], first["durationMs"], call["durationMs"]]
        assert counts == [None] * 4 and second["inputTokens"] == 2**53 - 1

    more = (ToolCalled("t", {}, 1, duration_ms=told), StepTaken("a", input_tokens=2**53 - 1))
    backend.run(scenario, Scripted(playing(step, *more)))


BIG = re.compile(
    r"\b(answer|result|arguments|input|output|self_evaluation|orchestration_trace|error_message)\b", re.I
)
SHORTENED = re.compile(r"substr\([\w.]*\banswer, [^)]*\)", re.I)


@pytest.mark.parametrize("path", ["/api/chat/session/s-1/runs", "/api/sessions", "/api/sessions?query=q"])
def test_a_list_reads_no_big_column(backend: Backend, path: str) -> None:
    """Else a page of runs with large answers, results and traces would be as slow as they are large."""
    said: list[str] = []

    async def scenario(here: Running) -> None:
        ledger = here.service.ledger
        if not isinstance(ledger, SqlLedger):
            return
        await here.client.ask("q", "s-1")
        with heard(said.append):
            assert len((await here.client.get(path)).data) == 1
        lists = [statement for statement in said if " limit " in " ".join(statement.lower().split())]
        pages = [one for one in lists if "query" in one]
        assert pages, said
        read = [" ".join(SHORTENED.sub("", one).partition("FROM diagnosis_run")[0].split()) for one in pages]
        if path.endswith("runs"):
            read = [one for one in read if "step_count" in one and "lease_owner" not in one]
        assert read and not [found for one in read if (found := BIG.search(one.partition(" FROM ")[0]))], read
        assert not any("tool_invocation" in one or "agent_step" in one for one in said)

    backend.run(scenario, Scripted(playing(Answered("a" * 100_000))))

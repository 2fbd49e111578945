"""Loki: lines in their order, bounded, and lookups for what a run is about."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web
from evidence_live.answering import Asked, answering, matrix, success

from casenotes.adapters.evidence.live import LokiSource
from casenotes.adapters.evidence.live.loki import MAX_LINES
from casenotes.core.text import bounded
from casenotes.ports.agent import About, Lookup, Observation, ObservationStatus

NOW = datetime(2026, 3, 11, 10, 0, tzinfo=UTC)
TOOL = "logs.search"


def play(answer: Callable[[Asked], Any], act: Callable[[LokiSource], Any]) -> tuple[Any, list[Asked]]:
    async def scene() -> tuple[Any, list[Asked]]:
        async with answering(answer) as server:
            source = LokiSource(server.upstream("Loki"), lambda: NOW)
            try:
                return await act(source), server.asked
            finally:
                await source.close()

    return asyncio.run(scene())


def look(given: Any, **arguments: Any) -> tuple[Observation, list[Asked]]:
    return play(lambda _: given, lambda source: source.look(Lookup(TOOL, arguments)))


def streams(*lines: tuple[str, str]) -> dict[str, Any]:
    halves = [{"stream": {"n": str(n)}, "values": [list(line) for line in lines[n::2]]} for n in (0, 1)]
    return success({"resultType": "streams", "result": halves})


def test_lines_of_all_streams_come_in_order_each_with_a_time() -> None:
    given = streams(
        ("1773223200000000003", "third"),
        ("1773223200000000001", '{"level":"error"}'),
        ("1773223200000000002", "2026-03-11T10:00:00Z second\n"),
        ("odd", "x"),
    )
    seen, (asked,) = look(given, query='{app="a"}', contains="x.y", minutes=30)
    assert seen.result == ('{"level":"error"}\n2026-03-11T10:00:00Z second\n2026-03-11T10:00:00.000Z third')
    assert asked.path == "/loki/api/v1/query_range"
    assert asked.fields == {
        "query": '{app="a"} |~ "(?i)x\\\\.y"',
        "start": f"{NOW.timestamp() - 1800:.3f}",
        "end": f"{NOW.timestamp():.3f}",
        "limit": str(MAX_LINES),
        "direction": "backward",
    }


def test_many_lines_keep_the_latest_and_it_is_said() -> None:
    given = streams(*((f"17732232{number:011}", "x" * 100) for number in range(MAX_LINES)))
    seen, _ = look(given, query='{a="b"}')
    assert not bounded(seen.result).truncated
    assert seen.left_out is not None
    assert seen.left_out.endswith("lines left out for their size; only the latest 1000 lines were asked for")


def test_a_query_for_numbers_is_answered_with_its_matrix() -> None:
    seen, _ = look(matrix(({"app": "a"}, ["1"])), query='sum(rate({a="b"}[1m]))')
    assert isinstance(seen.result, dict) and seen.status is ObservationStatus.SUCCESS


@pytest.mark.parametrize(
    ("given", "arguments", "status"),
    [
        (streams(), {"query": '{a="b"}'}, ObservationStatus.NO_DATA),
        (streams(), {"file": "of another source"}, ObservationStatus.NO_DATA),
        (streams(), {"query": '{a="b"}', "minutes": -1}, ObservationStatus.ERROR),
        (success(3), {"query": '{a="b"}'}, ObservationStatus.ERROR),
        (
            web.Response(status=400, text="parse error near s3cret"),
            {"query": "{"},
            ObservationStatus.ERROR,
        ),
    ],
)
def test_no_lines_and_failures_are_told_apart(
    given: Any, arguments: dict[str, Any], status: ObservationStatus
) -> None:
    seen, _ = look(given, **arguments)
    assert seen.status is status
    assert "s3cret" not in repr(seen)


def there(asked: Asked) -> Any:
    match asked.path.removeprefix("/loki/api/v1/"):
        case "labels":
            return success(["app", "pod", "unheard_of"])
        case "label/app/values":
            return success(["checkout", "cart"])
        case "label/pod/values":
            return {"status": "success"}
    raise AssertionError(asked)


def test_lines_of_what_the_run_is_about_are_offered_faults_first() -> None:
    about = About("why is checkout slow?", ({"labels": {"alertname": "A", "service": "cart"}},))
    offered, _ = play(there, lambda source: source.offer_for(about))
    assert [lookup.arguments["service"] for lookup in offered] == ["checkout", "checkout", "cart", "cart"]
    assert str(offered[0].arguments["query"]).startswith('{app="checkout"} |~ "(?i)error|')
    assert offered[1].arguments == {"service": "checkout", "query": '{app="checkout"}', "minutes": 60}


def test_a_loki_that_fails_still_offers_the_lookup_that_says_so() -> None:
    offered, _ = play(lambda _: web.Response(status=503), lambda source: source.offer_for(About("why?")))
    assert len(offered) == 1

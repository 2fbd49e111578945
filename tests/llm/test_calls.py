"""One call of a model: its time, and when it is made again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from support.model_server import KEY, Play, choosing, refusing, serving_model

from casenotes.adapters.agents.llm import ChatModel
from casenotes.adapters.agents.llm.allowance import SHARE, Allowance
from casenotes.adapters.agents.llm.citing import CitedAnswer
from casenotes.adapters.agents.llm.failure import ModelFailed
from casenotes.adapters.agents.llm.plans import PLAN, read_plan
from casenotes.adapters.agents.llm.retrying import ATTEMPTS, pause_before
from casenotes.adapters.agents.llm.wire import Message
from casenotes.ports.agent import Lookup

ASKED = [Message("user", "why")]


class Time:
    """A clock that moves when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def __call__(self) -> float:
        return self.now


def asked_of(
    play: Play, timeout: float, within: float = 600.0
) -> tuple[Time, list[dict[str, Any]], str | None]:
    """The pauses and requests of one call, and why it failed."""
    time = Time()

    async def run() -> tuple[list[dict[str, Any]], str | None]:
        async with serving_model(play, play) as server:
            model = ChatModel(server.base_url, "m", timeout, KEY, sleep=time.sleep, clock=time)
            try:
                await model.ask(ASKED, PLAN, within)
                return server.asked, None
            except ModelFailed as failure:
                return server.asked, failure.why
            finally:
                await model.close()

    requests, why = asyncio.run(run())
    return time, requests, why


def test_the_pause_asked_for_is_kept_within_the_time_of_the_call() -> None:
    time, requests, why = asked_of(refusing(429, Retry_After="25"), timeout=60.0)
    assert (time.pauses, len(requests)) == ([25.0, 25.0], 3)
    assert why == "its server had too many requests (429)"


def test_a_pause_past_the_time_of_the_call_is_not_begun() -> None:
    for patience in ((60.0, 600.0), (600.0, 60.0)):
        time, requests, _ = asked_of(refusing(429, Retry_After="61"), *patience)
        assert (time.pauses, len(requests)) == ([], 1)


def test_attempts_are_bounded_and_their_pauses_grow() -> None:
    time, requests, why = asked_of(refusing(503), timeout=60.0)
    assert len(requests) == ATTEMPTS
    assert why == "its server failed (503)"
    assert len(time.pauses) == ATTEMPTS - 1
    assert all(0.25 * 2**n <= pause <= 0.5 * 2**n for n, pause in enumerate(time.pauses))


def test_what_does_not_pass_is_not_repeated() -> None:
    assert len(asked_of(refusing(401), timeout=60.0)[1]) == 1


def test_a_call_that_works_makes_no_pause() -> None:
    time, requests, why = asked_of(choosing(1), timeout=60.0)
    assert (time.pauses, len(requests), why) == ([], 1, None)


@pytest.mark.parametrize(
    ("header", "within"),
    [
        ("3", (3.0, 3.0)),
        ("0.5", (0.5, 0.5)),
        ("-7", (0.0, 0.0)),
        ("soon", (0.25, 0.5)),
        ("nan", (0.25, 0.5)),
        (None, (0.25, 0.5)),
        (format_datetime(datetime(2020, 1, 1, tzinfo=UTC)), (0.0, 0.0)),
    ],
)
def test_the_pause_is_read_in_every_form(header: str | None, within: tuple[float, float]) -> None:
    least, most = within
    assert least <= pause_before(1, header, 0.5) <= most


def test_the_pause_is_read_as_a_date() -> None:
    hence = format_datetime(datetime.now(UTC) + timedelta(hours=10))
    assert 9 * 3600 < pause_before(1, hence, 0.5) <= 10 * 3600


def test_a_run_keeps_time_for_the_evidence_and_the_fallback() -> None:
    time = Time()
    allowance = Allowance.of_run(100.0, time)
    assert allowance.next_call() == pytest.approx(100 * SHARE / 2)
    time.now = 100 * SHARE
    with pytest.raises(ModelFailed, match="the time that it may take in one run is used up"):
        allowance.next_call()


def test_what_the_environment_says_of_another_provider_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("API_KEY", "ORG_ID", "PROJECT_ID"):
        monkeypatch.setenv(f"OPENAI_{name}", "hunter2")
    seen: list[str] = []

    async def note(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        seen.append(str(request.headers))
        return await choosing(1)(request, body)

    assert asked_of(note, timeout=60.0)[2] is None
    assert len(seen) == 1 and "hunter2" not in seen[0].replace(KEY, "")


def test_neither_the_key_nor_the_url_is_in_its_repr() -> None:
    model = ChatModel("http://u:hunter2@h/v1", "m", 1.0, KEY)
    assert "hunter2" not in repr(model)
    asyncio.run(model.close())


def told(answer: CitedAnswer, pieces: list[str]) -> list[str]:
    return [*map(answer.feed, pieces), answer.finish()]


def test_nothing_is_sent_before_the_first_citation() -> None:
    pieces = ["It is the", " disk [", "T1", "]. And", " so on."]
    assert told(CitedAnswer(must_cite=True), pieces) == [
        "",
        "",
        "",
        "It is the disk [T1]. And",
        " so on.",
        "",
    ]


@pytest.mark.parametrize(
    ("said", "sent"),
    [
        ("a [T1, T2] b", "a [T1] [T2] b"),
        ("a [T1; 2 and T3]", "a [T1] [T2] [T3]"),
        ("a [ T 1 ]", "a [T1]"),
        ("<think>no [T9]</think>\n\nyes [T1]", "yes [T1]"),
        ("a [T1] [link](x) [", "a [T1] [link](x) ["),
    ],
)
@pytest.mark.parametrize("size", [1, 3, 100])
def test_citations_take_one_form_however_they_come(said: str, sent: str, size: int) -> None:
    pieces = [said[at : at + size] for at in range(0, len(said), size)]
    assert "".join(told(CitedAnswer(must_cite=True), pieces)) == sent


@given(st.lists(st.text(alphabet="ab[]T1,<think>/ \n", max_size=12), max_size=8))
def test_what_is_sent_does_not_depend_on_the_pieces(pieces: list[str]) -> None:
    def whole(parts: list[str]) -> str | None:
        try:
            return "".join(told(CitedAnswer(must_cite=True), parts))
        except ModelFailed:
            return None

    assert whole(pieces) == whole(["".join(pieces)])


OFFERED = [Lookup("look", {"at": number}) for number in range(3)]


@pytest.mark.parametrize(
    ("said", "chosen"),
    [
        ('{"lookups": [3, 1, 3, 99, true, null, 1.5]}', [2, 0]),
        ('{"x": {"lookups": [2]}}', [1]),
        ('{"lookups": []}', []),
    ],
)
def test_a_plan_can_choose_only_what_was_offered(said: str, chosen: list[int]) -> None:
    assert read_plan(said, OFFERED).lookups == [OFFERED[at] for at in chosen]


@pytest.mark.parametrize(
    "said",
    [
        "",
        "[1]",
        "{}",
        '{"lookups": {}}',
        '{"lookups": [9]}',
        "{" * 100_000,
        '{"a":' * 50_000,
        '{"lookups": [1',
    ],
)
def test_what_is_no_plan_is_refused(said: str) -> None:
    with pytest.raises(ModelFailed, match="its plan could not be read"):
        read_plan(said, OFFERED)


@pytest.mark.parametrize("make", [lambda: refusing(429, Retry_After="0"), lambda: refusing(500)])
def test_a_call_ends_by_itself_whatever_the_server_repeats(make: Callable[[], Play]) -> None:
    assert asked_of(make(), timeout=60.0)[2] is not None

"""How often a key or an address may ask."""

from __future__ import annotations

import math

import pytest
from attrs import define
from hypothesis import given
from hypothesis import strategies as st
from support.http import Client, Reply, client_of
from support.service import Backend, Running

from casenotes.entrypoints.http import rates
from casenotes.entrypoints.http.addresses import caller
from casenotes.entrypoints.http.rates import Rates
from casenotes.entrypoints.settings import Settings

SECOND = 1_000_000_000
SLOWEST = 0.001
"""At this rate no token comes back while a test runs."""


@define
class Clock:
    now: int = 7 * SECOND

    def __call__(self) -> int:
        return self.now


def taken(bucket: Rates, caller: str, times: int) -> list[int]:
    return [bucket.take(caller) for _ in range(times)]


def test_a_caller_has_a_burst_and_then_his_rate() -> None:
    clock = Clock()
    bucket = Rates(2, burst=3, clock=clock)
    assert taken(bucket, "a", 5) == [0, 0, 0, 1, 1]
    assert taken(bucket, "b", 1) == [0]
    clock.now += SECOND // 2
    assert taken(bucket, "a", 2) == [0, 1]
    clock.now += 3600 * SECOND
    assert taken(bucket, "a", 4) == [0, 0, 0, 1]


@given(
    rate=st.floats(0.001, 10_000),
    burst=st.integers(1, 50),
    steps=st.lists(st.integers(0, 5 * SECOND), max_size=100),
)
def test_no_caller_gets_more_than_his_burst_and_rate_and_waiting_as_told_is_enough(
    rate: float, burst: int, steps: list[int]
) -> None:
    clock = Clock()
    bucket = Rates(rate, burst, clock)
    start, admitted = clock.now, 0
    for step in steps:
        clock.now += step
        foretold, wait = bucket.wait("a"), bucket.take("a")
        assert foretold == wait
        admitted += wait == 0
        assert admitted <= burst + math.ceil((clock.now - start) / SECOND * rate * 1.001)
        if wait:
            clock.now += wait * SECOND
            assert bucket.take("a") == 0
            admitted += 1


def test_many_callers_take_no_more_room_than_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "CAPACITY", 5)
    clock = Clock()
    bucket = Rates(1, burst=2, clock=clock)
    for number in range(100):
        clock.now += 1
        taken(bucket, "who floods", 3)
        bucket.take(f"passer-by {number}")
        assert len(bucket._full_at) <= 5
    assert bucket.wait("who floods") == 1
    clock.now += 60 * SECOND
    bucket.take("the next")
    assert list(bucket._full_at) == ["the next"]


@pytest.mark.parametrize(
    ("peer", "forwarded", "found"),
    [
        ("192.0.2.1", [], "192.0.2.1"),
        ("192.0.2.1", ["198.51.100.9"], "192.0.2.1"),  # anybody can write that
        ("10.0.0.1", ["198.51.100.9"], "198.51.100.9"),
        ("10.0.0.1", ["203.0.113.7, 198.51.100.9"], "198.51.100.9"),
        ("10.0.0.1", ["203.0.113.7", "198.51.100.9, 10.0.0.2"], "198.51.100.9"),
        ("10.0.0.1", ["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        ("10.0.0.1", ["198.51.100.9, nonsense"], "10.0.0.1"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("::ffff:192.0.2.1", [], "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", [], "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::1", [], "2001:db8:1:2::/64"),
        (None, ["198.51.100.9"], "None"),
    ],
)
def test_the_caller_is_the_peer_or_whom_a_trusted_proxy_names(
    peer: str | None, forwarded: list[str], found: str
) -> None:
    proxies = Settings.from_environ({"CASENOTES_TRUSTED_PROXIES": "10.0.0.0/8, ::1"}).trusted_proxies
    assert caller(peer, forwarded, proxies) == found


async def statuses(client: Client, times: int, path: str = "/api/sessions", **headers: str) -> list[int]:
    return [(await client.get(path, **headers)).status for _ in range(times)]


def is_told_to_wait(reply: Reply) -> bool:
    return reply.status == 429 and int(reply.headers["Retry-After"]) >= 1 and reply.data is None


def test_without_a_limit_there_is_none(memory: Backend) -> None:
    async def scenario(here: Running) -> None:
        assert set(await statuses(here.client, 50)) == {200}

    memory.run(scenario)


def test_without_keys_an_address_is_limited_and_nothing_is_started_beyond(memory: Backend) -> None:
    async def scenario(here: Running) -> None:
        assert await statuses(here.client, 3) == [200, 200, 200]
        for path in ("/api/chat", "/api/chat_stream", "/api/ai_ops", "/api/feedback"):
            assert is_told_to_wait(await here.client.post(path, {"question": "q"}))
        assert is_told_to_wait(await here.client.get("/api/nothing"))
        assert is_told_to_wait(await here.client.get("/api/sessions", **{"X-Forwarded-For": "192.0.2.1"}))
        assert (await here.client.get("/metrics")).status == 429
        assert not here.service.executions.running()
        for path in ("/healthz", "/readyz", "/", "/trace", "/cases"):
            assert set(await statuses(here.client, 4, path)) == {200}

    memory.run(scenario, rate_limit=SLOWEST, rate_burst=3)


def test_each_key_has_a_rate_of_its_own(memory: Backend) -> None:
    async def scenario(here: Running) -> None:
        async with client_of(here.client.url, key="k-two") as two:
            assert await statuses(here.client, 4) == [200, 200, 200, 429]
            assert await statuses(two, 4) == [200, 200, 200, 429]

    keys = frozenset({"k-one", "k-two"})
    memory.run(scenario, key="k-one", api_keys=keys, rate_limit=SLOWEST, rate_burst=3)


def test_keys_cannot_be_guessed_fast(memory: Backend) -> None:
    """A right guess is answered like a wrong one once an address has guessed too often; other addresses go on."""

    async def scenario(here: Running) -> None:
        async with client_of(here.client.url) as guesser:
            for number in range(3):
                header = {"Authorization": f"Bearer guess-{number}", "X-Forwarded-For": "192.0.2.1"}
                assert (await guesser.get("/api/sessions", **header)).status == 401
            for guess in ("wrong", "k-one"):
                header = {"Authorization": f"Bearer {guess}", "X-Forwarded-For": "192.0.2.1"}
                assert is_told_to_wait(await guesser.get("/api/sessions", **header))
        assert (await here.client.get("/api/sessions", **{"X-Forwarded-For": "192.0.2.2"})).status == 200

    networks = Settings.from_environ({"CASENOTES_TRUSTED_PROXIES": "127.0.0.1"}).trusted_proxies
    memory.run(
        scenario,
        key="k-one",
        api_keys=frozenset({"k-one"}),
        rate_limit=SLOWEST,
        rate_burst=3,
        trusted_proxies=networks,
    )

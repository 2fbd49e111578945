"""Failures of a server, told apart in words that may be shown."""

from __future__ import annotations

import asyncio
import socket

import pytest
from aiohttp import web
from evidence_live.answering import Answer, answering, silence, success, vector

from casenotes.adapters.evidence.live import AlertmanagerSource, LokiSource, PrometheusSource, Upstream
from casenotes.adapters.evidence.live.upstream import MAX_BYTES
from casenotes.ports.agent import ALERTS_TOOL, EvidenceSource, Lookup, Observation, ObservationStatus

QUERY = Lookup("metrics.query", {"query": "up"})


def observed(answer: Answer, timeout: float = 5) -> Observation:
    async def scene() -> Observation:
        async with answering(answer) as server:
            source = PrometheusSource(server.upstream(timeout=timeout))
            try:
                return await source.look(QUERY)
            finally:
                await source.close()

    return asyncio.run(scene())


def answer(status: int, body: object = None, **more: str) -> Answer:
    return lambda _: web.json_response(body, status=status, headers=more)


def html(status: int) -> Answer:
    return lambda _: web.Response(status=status, text="<html>s3cret</html>", content_type="text/html")


ERROR = {"status": "error", "errorType": "bad_data", "error": "1:3: parse error: password=s3cret"}
SAID = "bad_data: 1:3: parse error: password=[redacted:password]"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (answer(400, ERROR), f"Prometheus answered 400: {SAID}"),
        (answer(200, ERROR), f"Prometheus answered an error: {SAID}"),
        (answer(422, {"status": "error"}), "Prometheus answered 422"),
        (answer(503), "Prometheus answered 503"),
        (html(500), "Prometheus answered 500"),
        (html(200), "Prometheus answered 200 with text/html that is no JSON"),
        (answer(401), "Prometheus answered 401: it refuses these credentials"),
        (
            answer(302, Location="/login?s3cret"),
            "Prometheus answered 302: it sends elsewhere, to a login perhaps",
        ),
        (answer(200, []), "Prometheus answered JSON of another form"),
        (answer(200, {"status": "success"}), "Prometheus answered JSON of another form"),
        (answer(200, success({"resultType": "new"})), "Prometheus answered JSON of another form"),
        (answer(200, success(None)), "Prometheus answered JSON of another form"),
        (
            lambda _: web.Response(text="[" * 100_000),
            "Prometheus answered 200 with text/plain that is no JSON",
        ),
        (lambda _: web.Response(body=b" " * (MAX_BYTES + 1)), "Prometheus answered with more than 16 MiB"),
    ],
)
def test_a_server_that_fails_is_an_error_in_safe_words(given: Answer, words: str) -> None:
    seen = observed(given)
    assert (seen.status, seen.error_message) == (ObservationStatus.ERROR, words)
    assert "s3cret" not in repr(seen)


def test_a_silent_server_is_given_up_and_said_so() -> None:
    assert observed(silence, timeout=0.1).error_message == "Prometheus did not answer within 0.1 s"


def test_an_answer_that_breaks_off_is_an_error() -> None:
    async def broken(_: object) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "100"})
        raise ConnectionResetError(response)

    assert observed(broken).status is ObservationStatus.ERROR


@pytest.mark.parametrize("kind", [PrometheusSource, AlertmanagerSource, LokiSource])
def test_a_server_that_is_not_there_is_named_and_its_address_is_not(
    kind: type[PrometheusSource | AlertmanagerSource | LokiSource],
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://user:s3cret@127.0.0.1:{taken.getsockname()[1]}"
        source: EvidenceSource = kind(Upstream("The server", url))

        async def scene() -> Observation:
            tool = next(iter(sorted(source.tools)))
            try:
                return await source.look(Lookup(tool, {"query": '{a="b"}'}))
            finally:
                await source.close()  # type: ignore[attr-defined]

        seen = asyncio.run(scene())
    assert (seen.status, seen.error_message) == (ObservationStatus.ERROR, "The server could not be reached")


def test_credentials_of_the_url_are_sent_and_a_prefix_is_kept() -> None:
    async def scene() -> None:
        async with answering(lambda _: vector()) as server:
            url = server.url.replace("://", "://us%40er:p%3Ass@") + "/prefix"
            source = PrometheusSource(Upstream("Prometheus", url))
            assert (await source.look(QUERY)).status is ObservationStatus.NO_DATA
            await source.close()
            await source.close()
            (asked,) = server.asked
            assert asked.path == "/prefix/api/v1/query"
            assert asked.authorization == "Basic dXNAZXI6cDpzcw=="

    asyncio.run(scene())


def test_a_source_closed_after_no_lookup_opened_nothing() -> None:
    asyncio.run(AlertmanagerSource(Upstream("x", "http://127.0.0.1:1")).close())


def test_an_unknown_tool_is_an_error() -> None:
    for source in (PrometheusSource, AlertmanagerSource, LokiSource):
        seen = asyncio.run(source(Upstream("x", "http://127.0.0.1:1")).look(Lookup("no.such.tool")))
        assert seen.error_message == "unknown tool: no.such.tool"
    assert ALERTS_TOOL in AlertmanagerSource.tools

"""The demo: it drives a service through everything, and notices each promise that is not kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve
from demo.liar import SETTINGS, Lie, lying
from support.cli import CommandLine
from support.scripted import Scripted, raising, usual
from support.service import Backend

from casenotes.entrypoints.demo import demonstrate
from casenotes.entrypoints.demo.client import PromiseBroken, ServiceUnreachable
from casenotes.entrypoints.http.server import listening


def test_it_starts_a_service_of_its_own(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CASENOTES_API_KEYS", "first-key,second-key")
    done = cli("demo")
    assert (done.status, done.err) == (0, "")
    assert "Every promise was kept." in done.out
    assert done.out.count("/trace?sessionId=") == 3
    assert "first-key" not in done.out
    assert list(cli.folder.iterdir()) == []


def test_json_names_the_runs_and_their_pages(cli: CommandLine) -> None:
    done = cli("demo", "--json")
    assert done.status == 0
    first, second, report = done.json
    assert first["sessionId"] == second["sessionId"] != report["sessionId"]
    assert all(run["runId"] in run["page"] for run in (first, second, report))


def test_it_drives_a_service_that_runs(backend: Backend, cli: CommandLine) -> None:
    async def scenario() -> None:
        async with listening(backend.settings, diagnostician=Scripted(usual)) as here:
            await demonstrate(here.url + "/")
            sessions = await here.service.reading.sessions()
            assert sorted(one.run_count for one in sessions) == [1, 2]
            assert len(await here.service.reading.cases()) == 2

    asyncio.run(scenario())


def test_it_brings_the_key(memory: Backend, cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    guarded = evolve(memory.settings, api_keys=frozenset({"k1"}))

    async def scenario() -> None:
        async with listening(guarded, diagnostician=Scripted(usual)) as here:
            with pytest.raises(ServiceUnreachable, match="CASENOTES_API_KEYS"):
                await demonstrate(here.url)
            monkeypatch.setenv("CASENOTES_API_KEYS", "k1, k2")
            await demonstrate(here.url)

    asyncio.run(scenario())


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "nonsense", "http://", "ftp://127.0.0.1"])
def test_nobody_there_is_told_in_one_line(cli: CommandLine, url: str) -> None:
    done = cli("demo", "--url", url)
    assert done.status == 1
    assert url.rstrip("/") in done.err
    assert done.err.count("\n") == 1


def test_a_password_in_the_url_is_not_repeated(cli: CommandLine) -> None:
    done = cli("demo", "--url", "http://user:hunter2@127.0.0.1:9")
    assert done.status == 1
    assert "hunter2" not in done.out + done.err


def test_a_run_that_fails_is_told_with_its_reason(memory: Backend, cli: CommandLine) -> None:
    async def scenario() -> None:
        async with listening(memory.settings, diagnostician=Scripted(raising(RuntimeError("no")))) as here:
            with pytest.raises(PromiseBroken, match=r"the run run-\S+ failed: "):
                await demonstrate(here.url)

    asyncio.run(scenario())


def data(change: Callable[[Any], object]) -> Callable[[Any], Any]:
    """A change of an answer's data, where there is some."""

    def changed(envelope: Any) -> Any:
        if envelope["data"] is not None:
            change(envelope["data"])
        return envelope

    return changed


def told(*messages: str) -> Callable[[str], str]:
    return lambda _: "".join(f"event: message\ndata: {message}\n\n" for message in messages)


IDS = '{"type":"metadata","data":{"sessionId":"s","runId":"r"}}'
DONE = '{"type":"done","data":null}'
LIES = {
    "the latest run's trace for any": (Lie("/trace", query=lambda _: {}), "traces are mixed"),
    "another answer": (Lie("/trace", answer=data(lambda d: d.update(answer="x"))), "traces are mixed"),
    "another question": (
        Lie("/trace", answer=data(lambda d: d["run"].update(query="x"))),
        "traces are mixed",
    ),
    "another session": (Lie("/trace", answer=data(lambda d: d.update(sessionId="x"))), "traces are mixed"),
    "a step too many": (
        Lie("/trace", answer=data(lambda d: d["agentSteps"].extend(d["agentSteps"]))),
        "exactly its own steps",
    ),
    "a tool call too few": (
        Lie("/trace", answer=data(lambda d: d["toolInvocations"].pop())),
        "exactly its own tool calls",
    ),
    "foreign runs are shown": (Lie("/trace", status=lambda _: 200), "answered 200 instead of 404"),
    "one runId for all": (Lie("/api/chat", answer=data(lambda d: d.update(runId="r"))), "same runId"),
    "oldest run first": (Lie("/runs", answer=lambda e: {**e, "data": e["data"][::-1]}), "newest first"),
    "feedback on another run": (
        Lie("/feedback", answer=data(lambda d: d.update(runId="r"))),
        "bound to another run",
    ),
    "a hidden fallback": (
        Lie("/feedback", answer=data(lambda d: d.update(fallbackToLatestRun=False))),
        "fell back",
    ),
    "feedback that is forgotten": (
        Lie("/trace", answer=data(lambda d: d.update(feedback=None))),
        "not in its trace",
    ),
    "no envelope": (Lie("/api/chat", answer=lambda e: e["data"]), "without code, message and data"),
    "no JSON": (Lie("/api/chat", text=lambda _: "<html>"), "not JSON"),
    "an error's status": (Lie("/api/chat", status=lambda _: 500), "answered 500 instead of 200"),
    "a key is missing": (Lie("/api/chat", answer=data(lambda d: d.pop("runId"))), "lacks 'runId'"),
    "a shape is wrong": (Lie("/trace", answer=data(lambda d: d.update(run=[]))), "not of the shape"),
    "no evaluation": (
        Lie("/trace", answer=data(lambda d: d.update(selfEvaluation=None))),
        "no rule evaluation",
    ),
    "no metadata": (Lie("/ai_ops", text=told(DONE)), "begin with its one metadata"),
    "metadata twice": (Lie("/ai_ops", text=told(IDS, IDS, DONE)), "begin with its one metadata"),
    "metadata without ids": (
        Lie("/ai_ops", text=told('{"type":"metadata","data":{}}')),
        "names no sessionId",
    ),
    "an unknown type": (Lie("/ai_ops", text=told(IDS, '{"type":"x","data":1}')), "unknown type 'x'"),
    "content that is no text": (Lie("/ai_ops", text=told(IDS, '{"type":"content","data":1}')), "no text"),
    "no end": (Lie("/ai_ops", text=told(IDS)), "broke off"),
    "more after the end": (Lie("/ai_ops", text=told(IDS, DONE, DONE)), "goes on"),
    "an error": (Lie("/ai_ops", text=told(IDS, '{"type":"error","data":"why"}')), "the run failed: why"),
    "data before type": (Lie("/ai_ops", text=told('{"data":null,"type":"done"}')), "type and data"),
    "another event's name": (
        Lie("/ai_ops", text=lambda t: t.replace("message", "event", 1)),
        "instead of 'message'",
    ),
    "a torn stream": (Lie("/ai_ops", text=lambda t: t[:-3]), "inside an? "),
    "a stream of other text": (
        Lie("/ai_ops", text=lambda t: t.replace("drain", "drown")),
        "traces are mixed",
    ),
}


@pytest.mark.parametrize(("lie", "complaint"), LIES.values(), ids=LIES)
def test_a_promise_that_is_not_kept_is_noticed(cli: CommandLine, lie: Lie, complaint: str) -> None:
    async def scenario() -> None:
        async with lying(lie) as url:
            with pytest.raises(PromiseBroken, match=complaint):
                await demonstrate(url)

    asyncio.run(scenario())


def test_the_proxy_itself_is_honest(cli: CommandLine) -> None:
    async def scenario() -> None:
        async with lying(Lie("nowhere")) as url:
            await demonstrate(url)

    assert SETTINGS.api_keys == frozenset()
    asyncio.run(scenario())

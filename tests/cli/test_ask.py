"""``casenotes ask``: answered here, kept on record, and gone on with."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import AsyncIterator

import pytest
from support.cli import CommandLine
from support.scripted import Scripted, playing, usual

from casenotes.entrypoints import bootstrap
from casenotes.ports.agent import AgentEvent, Chunk, Enquiry


@pytest.fixture
def diagnostician(monkeypatch: pytest.MonkeyPatch) -> Scripted:
    return scripted(monkeypatch, Scripted(usual))


def scripted(monkeypatch: pytest.MonkeyPatch, chosen: Scripted) -> Scripted:
    monkeypatch.setattr(bootstrap, "embedded_diagnostician", lambda _settings: chosen)
    return chosen


def test_an_answer_comes_with_the_way_to_its_trace(cli: CommandLine, diagnostician: Scripted) -> None:
    done = cli("ask", "where is it?")
    assert (done.status, done.err) == (0, "")
    answer, _, ids = done.out.partition("\n\n")
    assert answer == "Found it:\nthree lines [T1] for where is it?"
    found = re.fullmatch(
        r"session   (\S+)\nrun       (run-\S+)\ntrace     casenotes (trace \S+ run-\S+)\n", ids
    )
    assert found is not None
    trace = cli(*found[3].split(), "--json").json
    assert (trace["sessionId"], trace["runId"]) == (found[1], found[2])


def test_a_conversation_goes_on_in_its_session(cli: CommandLine, diagnostician: Scripted) -> None:
    cli("ask", "q1", "--session", "s-1", "--flow", "chat")
    cli("ask", "q2", "--session", "s-1", "--flow", "chat")
    assert [pair.question for pair in diagnostician.enquiries[1].conversation] == ["q1"]
    assert len(cli("runs", "s-1", "--json").json) == 2
    cli("erase", "s-1")
    cli("ask", "q3", "--session", "s-1", "--flow", "chat")
    assert diagnostician.enquiries[2].conversation == ()


def test_json_is_the_shape_of_the_chat_api(cli: CommandLine, diagnostician: Scripted) -> None:
    done = cli("ask", "q", "--session", "s-1", "--flow", "graph", "--json")
    assert done.status == 0
    answer = done.json
    assert list(answer) == [
        "success",
        "answer",
        "errorMessage",
        "sessionId",
        "runId",
        "status",
        "agentFlow",
        "degraded",
        "contextDegraded",
    ]
    assert (answer["success"], answer["sessionId"], answer["agentFlow"]) == (True, "s-1", "STATE_GRAPH")


def test_a_failed_run_is_status_one_with_its_reason_and_its_ids(
    cli: CommandLine, diagnostician: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hanging(_enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
        await asyncio.Event().wait()
        yield Chunk("never")

    scripted(monkeypatch, Scripted(hanging))
    monkeypatch.setenv("CASENOTES_RUN_TIMEOUT", "0.05")
    done = cli("ask", "q", "--session", "s-1")
    assert done.status == 1
    assert done.err == "casenotes ask: the run failed: the run took longer than 0.05 s\n"
    assert "run       run-" in done.out
    as_json = cli("ask", "q", "--session", "s-1", "--json")
    assert (as_json.status, as_json.json["success"]) == (1, False)


def test_ctrl_c_ends_the_run_as_interrupted_and_is_quiet(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def interrupted(_enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
        signal.raise_signal(signal.SIGINT)
        await asyncio.Event().wait()
        yield Chunk("never")

    scripted(monkeypatch, Scripted(interrupted))
    done = cli("ask", "q", "--session", "s-1")
    assert (done.status, done.out, done.err) == (130, "", "")
    (run,) = cli("runs", "s-1", "--json").json
    assert run["status"] == "FAILED"


def test_an_answer_cannot_steer_the_terminal(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    scripted(monkeypatch, Scripted(playing(Chunk("a\x1b[2J\n"), Chunk("b\u202e"))))
    assert cli("ask", "q").out.startswith("a\\x1b[2J\nb\\u202e\n\nsession")


def test_a_record_in_memory_will_do_for_one_answer(
    cli: CommandLine, diagnostician: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CASENOTES_DATABASE_URL", "memory://")
    assert cli("ask", "q").status == 0
    assert "memory://" in cli("trace", "s-1").refused(2)

"""From production back into the suite: a recorded run becomes a pack that gives the same tool results."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from baseline.making import embedded, run
from support.cli import CommandLine
from support.scripted import Scripted

from casenotes.adapters.evidence import SHIPPED, load_pack, read_incident, reproduces
from casenotes.core.model import ToolInvocation
from casenotes.core.service.stream import Order
from casenotes.core.text import JsonObject
from casenotes.core.views import RunTrace
from casenotes.core.words import AgentFlow, StepStatus
from casenotes.entrypoints import bootstrap
from casenotes.entrypoints.observing import LoggingObserver
from casenotes.entrypoints.settings import Settings
from casenotes.ports.agent import AgentEvent, Answered, Chunk, Diagnostician, Enquiry, Lookup, ToolCalled


def record(
    cli: CommandLine, diagnostician: Diagnostician, flow: AgentFlow = AgentFlow.STATE_GRAPH
) -> RunTrace:
    """Have a question answered and kept on record in the command line's database."""

    async def answered() -> RunTrace:
        settings = Settings(database_url=cli.url, context_url="memory://")
        async with bootstrap.open_service(
            settings, LoggingObserver(), diagnostician=diagnostician
        ) as service:
            execution = await service.executions.submit(Order("s-1", "Why is checkout slow?", flow))
            ended = (await execution.outcome()).run
            return await service.reading.trace("s-1", ended.run_id)

    return asyncio.run(answered())


def captured(cli: CommandLine, trace: RunTrace, name: str = "pack") -> Any:
    done = cli("baseline", "capture", "s-1", str(trace.run_id), "--out", name, "--json")
    assert done.status == 0, done
    return done.json


def require_same_results(folder: Path, trace: RunTrace) -> None:
    pack = load_pack(folder)
    for tool in trace.tool_invocations:
        seen = asyncio.run(pack.look(Lookup(tool.tool_name, arguments(tool))))
        assert reproduces(seen, tool), (tool, seen)


@pytest.mark.parametrize("flow", [AgentFlow.STATE_GRAPH, AgentFlow.CHAT, AgentFlow.AI_OPS])
def test_a_run_of_the_shipped_pack_is_reproduced(cli: CommandLine, flow: AgentFlow) -> None:
    trace = record(cli, embedded(Settings(evidence=SHIPPED)), flow)
    told = captured(cli, trace)
    assert told["calls"] == len(trace.tool_invocations) > 3
    assert (told["leftOut"], told["repeated"], told["truncated"], told["facts"]) == ([], [], [], 0)
    require_same_results(cli.folder / "pack", trace)
    incident = read_incident(cli.folder / "pack")
    assert (incident.id, incident.question, incident.facts) == ("pack", "Why is checkout slow?", ())
    assert incident.alerts == read_incident(SHIPPED).alerts
    again = record(cli, embedded(Settings(evidence=cli.folder / "pack")), flow)
    assert {call(tool) for tool in again.tool_invocations} <= {call(tool) for tool in trace.tool_invocations}


def arguments(tool: ToolInvocation) -> JsonObject:
    assert isinstance(tool.arguments, dict)
    return tool.arguments


def call(tool: ToolInvocation) -> str:
    return json.dumps([tool.tool_name, tool.arguments, tool.result, tool.status], sort_keys=True)


def test_the_facts_of_a_useful_run_are_filled_in_and_hold(cli: CommandLine) -> None:
    trace = record(cli, embedded(Settings(evidence=SHIPPED)))
    assert cli("feedback", "s-1", "useful", "--comment", "it was the pool").status == 0
    assert captured(cli, trace)["facts"] == 3
    head = json.loads((cli.folder / "pack/incident.json").read_text())
    assert head["feedback"] == {"rating": "useful", "comment": "it was the pool"}
    assert head["facts"][0]["terms"][0] == "DB_POOL_MAX_SIZE"
    assert all(not {"[T", "**", "`"} & set(fact["text"]) for fact in head["facts"])
    made = run(cli.folder / "pack", cli.folder / "a.json").report
    assert (made.incidents[0].stated, made.incidents[0].missed) == (3, ())


def test_what_no_part_can_hold_is_kept_as_an_exact_call(cli: CommandLine) -> None:
    alerts = [{"labels": {"alertname": "A"}, "annotations": {}}]
    down = partial(ToolCalled, status=StepStatus.FAILED, error_message="the source is down")
    script: list[AgentEvent] = [
        down("alerts.firing", {}, None),
        ToolCalled("alerts.firing", {"filter": "x"}, alerts),
        ToolCalled("metrics.query_range", {"query": "up[5m]"}, {"status": "success"}),
        ToolCalled("metrics.query_range", {"metric": "../../etc"}, {"status": "success"}),
        ToolCalled("metrics.query_range", {"metric": "gone"}, None),
        ToolCalled("logs.search", {"service": "a", "contains": "x"}, "one x"),
        ToolCalled("logs.search", {"service": "plain"}, "no JSON names its service"),
        ToolCalled("logs.search", {"file": "b"}, "(2 earlier lines left out)\nline"),
        ToolCalled("logs.search", {"file": "c"}, "line\n\nline"),
        down("logs.search", {"file": "down"}, None),
        ToolCalled("runbooks.find", {"alertname": "A"}, "# A\n\ndo it"),
        ToolCalled("runbooks.find", {"alertname": "B"}, None),
        ToolCalled("runbooks.find", {"text": "do what"}, "# C\n\ndo that"),
        ToolCalled("kubectl get", {"kind": "pod"}, {"items": [1, None, "ü"]}),
        down("kubectl get", {"kind": "node"}, None),
        down("kubectl get", {"kind": "job"}, "partial"),
        ToolCalled("kubectl get", {"kind": "none"}, ""),
        ToolCalled("kubectl get", {"kind": "secret"}, "password=hunter2"),
        ToolCalled("kubectl get", {"kind": "huge"}, "x" * 100_000),
        ToolCalled("kubectl get", {"kind": "pod"}, "another answer to the same call"),
        ToolCalled("", {}, "nameless"),
    ]

    async def play(enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
        for event in script:
            yield event
        yield Chunk("It is `so` [T2].\n")
        yield Answered()

    trace = record(cli, Scripted(play))
    told = captured(cli, trace)
    assert told == {"calls": 19, "leftOut": [21], "repeated": [20], "truncated": [19], "facts": 0}
    kept = [tool for tool in trace.tool_invocations if tool.sequence < 20]
    pack = load_pack(cli.folder / "pack")
    for tool in kept:
        assert reproduces(asyncio.run(pack.look(Lookup(tool.tool_name, arguments(tool)))), tool), tool
    offered = asyncio.run(pack.offer())
    assert {tool.sequence for tool in kept if Lookup(tool.tool_name, arguments(tool)) not in offered} <= {
        2,
        12,
        13,
    }
    text = "".join(path.read_text() for path in (cli.folder / "pack").rglob("*.json"))
    assert "hunter2" not in text and "[redacted:" in text
    assert {path.name for path in (cli.folder / "pack/metrics").glob("*")} == set()


def test_it_never_writes_over_what_is_there(cli: CommandLine) -> None:
    cli.record("q")
    (run_id,) = [one["runId"] for one in cli("runs", "s-1", "--json").json]
    (cli.folder / "pack").mkdir()
    (cli.folder / "gone").symlink_to("nowhere")
    for name in ("pack", "gone"):
        assert "is there already" in cli("baseline", "capture", "s-1", run_id, "--out", name).refused(2)
    assert "no folder can be made" in cli(
        "baseline", "capture", "s-1", run_id, "--out", "no/where/pack"
    ).refused(2)
    assert list((cli.folder / "pack").iterdir()) == []
    assert sorted(path.name for path in cli.folder.iterdir() if path.is_dir()) == ["pack"]


def test_a_run_that_is_not_there_is_told(cli: CommandLine) -> None:
    cli.record("q")
    assert "run not found" in cli("baseline", "capture", "s-1", "run-0", "--out", "pack").refused(1)
    assert "session not found" in cli("baseline", "capture", "s-2", "run-0", "--out", "pack").refused(1)


def test_for_people_it_says_what_to_do_next(cli: CommandLine) -> None:
    cli.record("q")
    (run_id,) = [one["runId"] for one in cli("runs", "s-1", "--json").json]
    done = cli("baseline", "capture", "s-1", run_id, "--out", "pack")
    assert "1 tool call kept in pack" in done.out and "edit pack/incident.json" in done.out

"""Running a suite: through the service, some at once, each in its time, and on from where it was interrupted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from attrs import evolve
from baseline.making import but_for_times_and_ids, make_pack, run, scripted
from support.scripted import Script, usual

from casenotes.core.baseline.report import Unreadable
from casenotes.core.errors import InvalidEvidence, InvalidInput
from casenotes.core.rules import MAX_QUESTION
from casenotes.core.text import JsonObject
from casenotes.entrypoints import bootstrap
from casenotes.entrypoints.ambient import utc_now
from casenotes.entrypoints.baseline.files import read_report
from casenotes.entrypoints.baseline.running import Plan, run_suite
from casenotes.entrypoints.baseline.suite import read_suite
from casenotes.entrypoints.observing import LoggingObserver
from casenotes.entrypoints.settings import Settings
from casenotes.ports.agent import AgentEvent, Answered, Chunk, Enquiry, StepTaken, ToolCalled


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    for name in ("alpha", "beta", "gamma"):
        make_pack(tmp_path / "suite", name)
    return tmp_path / "suite"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "a.json"


async def counting(enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
    yield StepTaken("planner", model="m", input_tokens=70, output_tokens=7)
    yield ToolCalled("logs.search", {"file": "a"}, "timeout")
    yield StepTaken("planner", model="m", input_tokens=30, output_tokens=3)
    yield Chunk("The pool is exhausted [T1].\nIt is DNS [T9].\nIt is the moon.\n")
    yield Answered(degraded=True)


def test_each_incident_is_a_run_whose_trace_is_measured(suite: Path, out: Path) -> None:
    made = run(suite, out, scripted(counting)).report
    assert read_report(out) == made
    assert made.by_id.keys() == {"alpha", "beta", "gamma"}
    one = made.by_id["alpha"]
    found = one.measures
    assert (one.stated, one.missed, one.error) == (1, (), None)
    assert (found.steps, found.tools, found.input_tokens, found.output_tokens) == (2, 1, 100, 10)
    assert (found.cited, found.unsupported, found.citations_valid) == (1, 1, False)
    assert (found.statements, found.uncited, found.degraded) == (3, 2, True)
    assert found.rules["citations_exist"] is False
    assert one.evidence.keys() == {"logs/alpha.log"}
    assert made.is_whole


def test_the_same_suite_gives_the_same_file_but_for_times_and_ids(suite: Path, tmp_path: Path) -> None:
    run(suite, tmp_path / "a.json", plan=Plan(concurrency=1))
    run(suite, tmp_path / "b.json", plan=Plan(concurrency=3))
    first, second = (read_report(tmp_path / name) for name in ("a.json", "b.json"))
    assert but_for_times_and_ids(first) == but_for_times_and_ids(second)
    assert {one.run_id for one in first.incidents}.isdisjoint(one.run_id for one in second.incidents)


@pytest.mark.parametrize(
    ("flow", "taken"),
    [("auto", "STATE_GRAPH"), ("chat", "CHAT"), ("graph", "STATE_GRAPH"), ("aiops", "AI_OPS")],
)
def test_the_flow_can_be_chosen(suite: Path, out: Path, flow: str, taken: str) -> None:
    made = run(suite, out, scripted(usual), Plan(flow=flow)).report
    assert {one.flow for one in made.incidents} == {taken}
    assert all(one.measures.rules for one in made.incidents)


def test_no_more_than_so_many_are_run_at_once(suite: Path, out: Path) -> None:
    at_once = [0, 0]

    async def counted(enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
        at_once[0] += 1
        at_once[1] = max(at_once)
        await asyncio.sleep(0.02)
        at_once[0] -= 1
        yield Answered("done")

    run(suite, out, scripted(counted), Plan(concurrency=2))
    assert at_once == [0, 2]


def test_an_incident_that_takes_too_long_fails_and_the_others_are_run(suite: Path, out: Path) -> None:
    async def slow(enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
        if "beta" in enquiry.question:
            await asyncio.Event().wait()
        yield Answered("the pool is exhausted")

    made = run(suite, out, scripted(slow), Plan(timeout=timedelta(seconds=0.2))).report
    assert {one.id: one.error for one in made.incidents} == {
        "alpha": None,
        "beta": "the run took longer than 0.2 s",
        "gamma": None,
    }
    assert made.by_id["beta"].missed == ("the pool is exhausted",)
    assert not made.is_whole


def test_a_diagnostician_that_breaks_fails_its_incident_only(suite: Path, out: Path) -> None:
    async def breaking(enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
        if "beta" in enquiry.question:
            raise RuntimeError("password=hunter2")
        yield Answered("x")

    made = run(suite, out, scripted(breaking)).report
    assert {one.id for one in made.incidents if one.error} == {"beta"}
    assert "hunter2" not in out.read_text()


def test_an_interrupted_run_goes_on_from_what_is_done(suite: Path, out: Path) -> None:
    asked: list[str] = []

    async def interrupted() -> None:
        ready = asyncio.Event()

        async def waiting(enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
            asked.append(enquiry.question)
            if len(asked) == 2:
                ready.set()
                await asyncio.Event().wait()
            yield Answered("the pool is exhausted")

        task = asyncio.create_task(
            run_suite(read_suite(suite), out, Plan(concurrency=1), Settings(), make=scripted(waiting))
        )
        await ready.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(interrupted())
    partial = out.with_name("a.json.partial")
    assert not out.exists()
    (done,) = read_report(partial).incidents
    asked.clear()
    ran = run(suite, out, scripted(remembering(asked)))
    assert ran.resumed == 1
    assert len(asked) == 2 and not any(done.id in question for question in asked)
    assert ran.report.by_id[done.id] == done
    assert not partial.exists()


def remembering(asked: list[str]) -> Script:
    async def script(enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
        asked.append(enquiry.question)
        yield Answered("the pool is exhausted")

    return script


@pytest.mark.parametrize("change", ["settings", "question", "evidence", "anew", "failed", "spoiled"])
def test_what_is_not_the_same_is_run_anew(suite: Path, out: Path, change: str) -> None:
    ran = run(suite, out, scripted(usual))
    partial = out.with_name("a.json.partial")
    done = ran.report.as_json()
    plan = Plan()
    left = 2
    match change:
        case "settings":
            plan, left = Plan(flow="chat"), 0
        case "question":
            (suite / "beta/incident.json").write_text(
                (suite / "beta/incident.json").read_text().replace("slow", "down")
            )
        case "evidence":
            (suite / "beta/logs/beta.log").write_text("another line")
        case "anew":
            plan, left = Plan(anew=True), 0
        case "failed":
            done = evolve(
                ran.report,
                incidents=tuple(
                    evolve(one, error="x" if one.id == "beta" else None) for one in ran.report.incidents
                ),
            ).as_json()
    partial.write_text("{" if change == "spoiled" else json.dumps(done))
    again = run(suite, out, scripted(usual), plan)
    assert again.resumed == (0 if change == "spoiled" else left)
    assert len(again.report.incidents) == 3


def test_a_pack_that_is_malformed_is_named_and_the_rest_is_run(suite: Path, out: Path) -> None:
    (suite / "alpha/incident.json").unlink()
    (suite / "beta/observations").mkdir()
    (suite / "beta/observations/1.json").write_text('{"tool": "x", "arguments": 3}')
    (suite / "LICENSE").write_text("a file is passed over")
    (suite / ".hidden").mkdir()
    made = run(suite, out).report
    assert [one.id for one in made.incidents] == ["gamma"]
    assert made.unreadable == (
        Unreadable("alpha", "incident.json: missing"),
        Unreadable("beta", "observations/1.json: arguments: must be an object"),
    )
    assert not made.is_whole


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"id": "beta"}, "incident.json: id: beta is that of alpha too"),
        ({"question": "x" * (MAX_QUESTION + 1)}, "incident.json: question: must have at most"),
        ({"facts": [{"text": "a", "terms": []}]}, "incident.json: facts[0].terms: must name"),
        ({"decoys": [{"text": "a", "terms": ["b|"]}]}, "incident.json: decoys[0].terms: must name"),
        ({"decoys": {}}, "incident.json: decoys: must be an array"),
        (
            {"facts": [{"text": "a", "terms": ["b"]}, {"text": "a", "terms": ["c"]}]},
            "incident.json: facts[1].text: is that of an earlier one too",
        ),
    ],
)
def test_a_head_that_cannot_be_judged_by_is_named(tmp_path: Path, other: JsonObject, told: str) -> None:
    make_pack(tmp_path, "alpha", **({"id": "beta"} if "id" in other else {}))
    make_pack(tmp_path, "beta", **other)
    (bad,) = read_suite(tmp_path).unreadable
    assert bad.folder == "beta"
    assert bad.reason.startswith(told)


def test_a_folder_without_packs_is_no_suite(tmp_path: Path) -> None:
    with pytest.raises(InvalidEvidence, match="holds no folder"):
        read_suite(tmp_path)
    with pytest.raises(InvalidEvidence, match="must be an existing folder"):
        read_suite(tmp_path / "nowhere")


def test_a_pack_is_a_suite_of_one(tmp_path: Path) -> None:
    assert [one.incident.id for one in read_suite(make_pack(tmp_path, "alpha")).incidents] == ["alpha"]


def test_nothing_is_run_when_there_is_no_place_for_the_file(suite: Path, tmp_path: Path) -> None:
    asked: list[str] = []
    with pytest.raises(InvalidInput, match="--out"):
        run(suite, tmp_path / "nowhere" / "a.json", scripted(remembering(asked)))
    assert asked == []


def test_the_runs_can_be_kept_in_a_database(suite: Path, out: Path, tmp_path: Path) -> None:
    url = f"sqlite+aiosqlite:///{tmp_path / 'runs.db'}"
    made = run(suite, out, plan=Plan(database_url=url)).report

    async def traces() -> None:
        settings = Settings(database_url=url, context_url="memory://")
        async with bootstrap.assemble(settings, LoggingObserver(), clock=utc_now) as service:
            for one in made.incidents:
                trace = await service.reading.trace(one.session_id, one.run_id)
                assert len(trace.tool_invocations) == one.measures.tools

    asyncio.run(traces())


@pytest.mark.parametrize("interrupt", [False, True])
def test_what_a_diagnostician_holds_is_let_go_of_when_no_run_needs_it(
    suite: Path, out: Path, interrupt: bool
) -> None:
    held: list[Holding] = []
    everybody = asyncio.Barrier(4)

    def make(settings: Settings) -> Holding:
        held.append(Holding(everybody if interrupt else None))
        return held[-1]

    async def interrupted() -> None:
        task = asyncio.create_task(
            run_suite(read_suite(suite), out, Plan(concurrency=3), Settings(), make=make)
        )
        await everybody.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    if interrupt:
        asyncio.run(interrupted())
    else:
        run(suite, out, make)
    assert [(one.working, one.closed) for one in held] == [(False, True)] * 3


class Holding:
    """A diagnostician that holds connections, and must not lose them while it works."""

    def __init__(self, begun: asyncio.Barrier | None) -> None:
        self.working = self.closed = False
        self._begun = begun

    async def diagnose(self, enquiry: Enquiry) -> AsyncIterator[AgentEvent]:
        self.working = True
        try:
            if self._begun is not None:
                await self._begun.wait()
                await asyncio.Event().wait()
            yield Answered("done")
        finally:
            assert not self.closed
            self.working = False

    async def close(self) -> None:
        assert not self.working
        self.closed = True


def test_progress_is_told(suite: Path, out: Path) -> None:
    told: list[tuple[int, int]] = []
    run(suite, out, scripted(usual), tell=lambda done, of, name: told.append((done, of)))
    assert told == [(1, 3), (2, 3), (3, 3)]

"""The moves of a STATE_GRAPH run: recorded by name, and nothing but names."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import casenotes
from casenotes.core.text import Json


def graph_of(url: str, moves: Callable[[casenotes.Run], None]) -> tuple[Json, bool, str]:
    """What is on record of a run that makes these moves, and is answered if it does not raise."""

    async def scenario() -> tuple[Json, bool, str]:
        async with casenotes.open(url) as notes:
            try:
                async with notes.run("q", flow="STATE_GRAPH") as run:
                    moves(run)
                    run.answer("a")
            except (TimeoutError, ArithmeticError):
                pass
            trace = await notes.trace(run.session_id)
            assert trace.run is not None
            return trace.run.orchestration_trace, trace.run.degraded, trace.run.status

    return asyncio.run(scenario())


def moved(*nodes: str) -> list[dict[str, str]]:
    return [{"from": a, "to": b} for a, b in zip(("START", *nodes), nodes, strict=False)]


def test_moves_are_folded_into_the_compact_trace(url: str) -> None:
    def moves(run: casenotes.Run) -> None:
        run.graph.entered("planner")
        run.graph.entered(casenotes.Node.EXECUTOR)
        run.graph.entered("evidence_check")
        run.graph.retried()
        run.graph.entered("executor")
        run.graph.entered("composer")
        run.graph.ended("COMPOSED")
        run.graph.entered("fallback")  # after the end: nothing

    assert graph_of(url, moves) == (
        {
            "version": 1,
            "transitions": moved("planner", "executor", "evidence_check", "executor", "composer"),
            "finalNode": "composer",
            "terminationReason": "COMPOSED",
            "degraded": False,
            "evidenceRetryCount": 1,
        },
        False,
        "SUCCESS",
    )


def test_a_composer_that_is_answered_has_composed() -> None:
    graph, _, _ = graph_of("memory://", lambda run: run.graph.entered("composer"))
    assert isinstance(graph, dict)
    assert graph["terminationReason"] == "COMPOSED"


def test_an_end_in_the_fallback_degrades_the_run(url: str) -> None:
    def moves(run: casenotes.Run) -> None:
        run.graph.entered("fallback")
        run.graph.ended(casenotes.TerminationReason.EVIDENCE_EXHAUSTED)

    graph, degraded, status = graph_of(url, moves)
    assert isinstance(graph, dict)
    assert (graph["terminationReason"], graph["degraded"], degraded, status) == (
        "EVIDENCE_EXHAUSTED",
        True,
        True,
        "SUCCESS",
    )


@pytest.mark.parametrize(("fault", "reason"), [(TimeoutError, "TIMEOUT"), (ZeroDivisionError, "ERROR")])
def test_a_run_that_fails_keeps_its_moves_and_has_its_own_reason(
    url: str, fault: type[Exception], reason: str
) -> None:
    def moves(run: casenotes.Run) -> None:
        run.graph.entered("planner")
        run.graph.entered("composer")
        run.graph.ended("COMPOSED")
        raise fault

    graph, degraded, status = graph_of(url, moves)
    assert isinstance(graph, dict)
    assert graph["transitions"] == moved("planner", "composer")
    assert (graph["terminationReason"], degraded, status) == (reason, False, "FAILED")


def test_without_a_move_there_is_no_trace() -> None:
    assert graph_of("memory://", lambda run: None)[0] is None


@pytest.mark.parametrize(
    "move",
    [
        lambda graph: graph.entered("my prompt was ..."),
        lambda graph: graph.ended("it went well"),
        lambda graph: graph.ended("TIMEOUT"),
    ],
)
def test_a_word_that_is_not_known_is_refused(move: Callable[[Any], None]) -> None:
    def moves(run: casenotes.Run) -> None:
        with pytest.raises(casenotes.InvalidInput):
            move(run.graph)

    assert graph_of("memory://", moves)[0] is None


@pytest.mark.parametrize(
    "move",
    [
        lambda graph: graph.entered("planner"),
        lambda graph: graph.retried(),
        lambda graph: graph.ended("COMPOSED"),
    ],
)
def test_a_run_of_another_flow_has_no_graph(move: Callable[[Any], None]) -> None:
    async def scenario() -> None:
        async with casenotes.open("memory://") as notes, notes.run("q") as run:
            with pytest.raises(casenotes.InvalidInput, match="STATE_GRAPH"):
                move(run.graph)
            run.answer("a")

    asyncio.run(scenario())

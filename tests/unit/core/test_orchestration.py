"""The orchestration trace: a fold that can hold nothing but what happened."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casenotes.core.errors import ForeignEvent
from casenotes.core.orchestration import (
    MAX_TRANSITIONS,
    EvidenceRetried,
    GraphEnded,
    GraphEvent,
    Node,
    NodeEntered,
    TerminationReason,
    fold,
)

events = st.lists(
    st.one_of(
        st.sampled_from(Node).map(lambda node: NodeEntered("r", node)),
        st.just(EvidenceRetried("r")),
        st.sampled_from(TerminationReason).map(lambda reason: GraphEnded("r", reason)),
    ),
    max_size=90,
)


def test_a_run_through_the_composer_is_told_as_it_happened() -> None:
    happened: list[GraphEvent] = [
        NodeEntered("r", Node.PLANNER),
        NodeEntered("r", Node.EXECUTOR),
        NodeEntered("r", Node.EVIDENCE_CHECK),
        EvidenceRetried("r"),
        NodeEntered("r", Node.EXECUTOR),
        NodeEntered("r", Node.EVIDENCE_CHECK),
        NodeEntered("r", Node.COMPOSER),
        GraphEnded("r", TerminationReason.COMPOSED),
    ]
    trace = fold("r", happened)
    assert trace is not None
    assert trace.as_json() == {
        "version": 1,
        "transitions": [
            {"from": "START", "to": "planner"},
            {"from": "planner", "to": "executor"},
            {"from": "executor", "to": "evidence_check"},
            {"from": "evidence_check", "to": "executor"},
            {"from": "executor", "to": "evidence_check"},
            {"from": "evidence_check", "to": "composer"},
        ],
        "finalNode": "composer",
        "terminationReason": "COMPOSED",
        "degraded": False,
        "evidenceRetryCount": 1,
    }


@pytest.mark.parametrize(
    ("reason", "degraded"),
    [
        (TerminationReason.COMPOSED, False),
        (TerminationReason.EVIDENCE_EXHAUSTED, True),
        (TerminationReason.STEP_LIMIT, True),
        (TerminationReason.MODEL_FAILED, True),
        (TerminationReason.TIMEOUT, False),
        (TerminationReason.ERROR, False),
        (TerminationReason.INTERRUPTED, False),
    ],
)
def test_a_graph_is_degraded_when_it_ended_in_the_fallback(reason: TerminationReason, degraded: bool) -> None:
    trace = fold("r", [NodeEntered("r", Node.PLANNER), GraphEnded("r", reason)])
    assert trace is not None
    assert trace.degraded is degraded


def test_no_node_is_made_up() -> None:
    assert fold("r", []) is None
    assert fold("r", [GraphEnded("r", TerminationReason.ERROR)]) is None


def test_an_event_of_another_run_is_refused() -> None:
    with pytest.raises(ForeignEvent):
        fold("r", [NodeEntered("other", Node.PLANNER)])


@given(events)
def test_transitions_form_one_path_from_the_start_within_the_bound(happened: list[GraphEvent]) -> None:
    trace = fold("r", happened)
    if trace is None:
        return
    moves = trace.transitions
    assert 1 <= len(moves) <= MAX_TRANSITIONS
    assert moves[0].source == "START"
    assert all(a.target == b.source for a, b in itertools.pairwise(moves))
    if len(moves) < MAX_TRANSITIONS:
        assert trace.final_node == moves[-1].target


@given(events)
def test_nothing_happens_after_the_end(happened: list[GraphEvent]) -> None:
    ended = [*happened, GraphEnded("r", TerminationReason.COMPOSED)]
    assert fold("r", [*ended, NodeEntered("r", Node.FALLBACK), EvidenceRetried("r")]) == fold("r", ended)


@given(events)
def test_the_stored_form_has_exactly_the_fields_of_the_contract(happened: list[GraphEvent]) -> None:
    trace = fold("r", happened)
    if trace is None:
        return
    stored = json.loads(json.dumps(trace.as_json()))
    assert list(stored) == [
        "version", "transitions", "finalNode", "terminationReason", "degraded", "evidenceRetryCount",
    ]  # fmt: skip
    assert all(list(move) == ["from", "to"] for move in stored["transitions"])

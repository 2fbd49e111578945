"""The digest of a run: the same for the same record, another for any other, on every store."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.service import Backend

import casenotes
from casenotes.adapters.rows import ending_row, run_seal
from casenotes.core import seal as seals
from casenotes.core.model import AgentStep, DiagnosisRun, ToolInvocation
from casenotes.core.seal import ChainHead, Differences, RunSeal, differences, seal, step_digest, tool_digest
from casenotes.core.words import RunStatus, StepStatus

AT = datetime(2026, 12, 1, 1, 2, 3, 4, tzinfo=UTC)
RUN = DiagnosisRun(
    run_id="r",
    session_id="s",
    query="q",
    status=RunStatus.SUCCESS,
    agent_flow="CHAT",
    created_at=AT,
    updated_at=AT,
    finished_at=AT,
    answer="a",
    step_count=1,
    tool_call_count=1,
)
STEP = AgentStep("r", "s", 1, "planner", "model", StepStatus.SUCCESS, AT)
TOOL = ToolInvocation("r", "s", 1, "logs", {"a": 1, "b": 2}, None, StepStatus.SUCCESS, AT)

OUTSIDE = {
    DiagnosisRun: {
        "id",
        "updated_at",
        "feedback",
        "feedback_comment",
        "feedback_at",
        "context_degraded",
        "lease_owner",
        "lease_expires_at",
        "digest",
    },
    AgentStep: {"id"},
    ToolInvocation: {"id"},
}
"""What may change after the end, and what a store assigns."""

SEALED = {DiagnosisRun: seals._RUN, AgentStep: seals._STEP, ToolInvocation: seals._TOOL}


def digest_of(record: Any) -> str:
    match record:
        case DiagnosisRun():
            return seal(record, [STEP], [TOOL], ChainHead()).digest
        case AgentStep():
            return step_digest(record)
        case _:
            return tool_digest(record)


def another(value: object) -> object:
    match value:
        case datetime():
            return value + timedelta(microseconds=1)
        case bool():
            return not value
        case int():
            return value + 1
        case RunStatus():
            return RunStatus.FAILED
        case StepStatus():
            return StepStatus.FAILED
        case str():
            return value + " "
        case _:
            return 7


@pytest.mark.parametrize("record", [RUN, STEP, TOOL], ids=lambda record: type(record).__name__)
def test_digest_is_over_every_field_but_those_that_may_change(record: Any) -> None:
    kind = type(record)
    fields = {one.name for one in attrs.fields(kind)}
    assert set(SEALED[kind]) | OUTSIDE[kind] == fields
    for name in fields:
        changed = attrs.evolve(record, **{name: another(getattr(record, name))})
        assert (digest_of(changed) != digest_of(record)) == (name in SEALED[kind]), name


def test_digest_is_over_the_place_in_the_chain_and_the_entries() -> None:
    digest = digest_of(RUN)
    others = (
        seal(RUN, [STEP], [TOOL], ChainHead(1, "d")),
        seal(RUN, [STEP], [TOOL], ChainHead(0, "d")),
        seal(RUN, [], [TOOL], ChainHead()),
        seal(RUN, [STEP], [], ChainHead()),
        seal(RUN, [attrs.evolve(STEP, output="x")], [TOOL], ChainHead()),
        seal(RUN, [STEP], [attrs.evolve(TOOL, result="x")], ChainHead()),
    )
    assert len({digest, *(one.digest for one in others)}) == 1 + len(others)


def test_same_moment_in_another_zone_has_the_same_digest() -> None:
    elsewhere = AT.astimezone(datetime.fromisoformat("2026-01-01T00:00:00+05:30").tzinfo)
    assert step_digest(attrs.evolve(STEP, created_at=elsewhere)) == step_digest(STEP)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.sampled_from([-0.0, 5.0, 1e16, 1e15, 123456789.125, 5e-324, 1e-7, 1.7976931348623157e308])
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=4), st.integers() | st.text(max_size=3), max_size=6), st.randoms())
def test_order_of_keys_changes_nothing(arguments: dict[str, Any], random: Any) -> None:
    items = list(arguments.items())
    random.shuffle(items)
    shuffled = attrs.evolve(TOOL, arguments=dict(items))
    assert tool_digest(shuffled) == tool_digest(attrs.evolve(TOOL, arguments=arguments))


DIGESTS = st.dictionaries(
    st.integers(-(2**31), 2**31 - 1), st.binary(min_size=32, max_size=32).map(bytes.hex), max_size=5
)


@given(DIGESTS, DIGESTS, st.integers(1, 2**31 - 1), st.none() | st.just("ab" * 32))
def test_seal_comes_back_from_its_columns(
    steps: dict[int, str], tools: dict[int, str], position: int, previous: str | None
) -> None:
    made = RunSeal(position, previous, steps, tools, "cd" * 32)
    assert run_seal(ending_row(RUN, made)) == made


@pytest.mark.parametrize("cut", [1, 3, 5, 39, 41])
def test_seal_whose_entries_are_cut_is_refused(cut: int) -> None:
    row = ending_row(RUN, seal(RUN, [STEP], [TOOL], ChainHead()))
    with pytest.raises(ValueError, match="cut"):
        run_seal({**row, "entry_digests": row["entry_digests"][:cut]})


def test_row_without_a_seal_has_none() -> None:
    names = ("digest", "previous_digest", "chain_position", "entry_digests")
    assert run_seal(dict.fromkeys(names)) is None


def test_differences_name_what_was_altered_removed_and_added() -> None:
    def step(sequence: int, output: str = "o") -> AgentStep:
        return attrs.evolve(STEP, sequence=sequence, output=output)

    sealed = {n: step_digest(step(n)) for n in (1, 2, 3, 4)}
    stored = [step(1), step(2, "x"), step(4), step(4, "again"), step(9)]
    assert differences(sealed, stored, step_digest) == Differences((2,), (3,), (4, 9))
    assert differences(sealed, [step(n) for n in (4, 3, 2, 1)], step_digest) == Differences((), (), ())


@settings(
    max_examples=6,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    values=st.lists(JSON, min_size=4, max_size=12), words=st.text(max_size=40), count=st.integers(0, 2**62)
)
def test_whatever_is_recorded_verifies_as_it_was_sealed(
    backend: Backend, values: list[Any], words: str, count: int
) -> None:
    """A store may write numbers and text in a form of its own, such as jsonb: what it gives back is the same."""

    async def scenario() -> None:
        async with casenotes.open(backend.settings.database_url) as notes:
            async with notes.run(f"Why? {words}") as run:
                async with run.step(f"s {words}", model=words, input=words) as step:
                    step.output, step.input_tokens = words, count
                    for value in values:
                        await run.tool(f"t {words}", {words: value}, result=value, duration_ms=count)
                run.answer(f"{words} [T1] [T99]")
            found = await notes.verify(run.session_id)
            assert found.is_clean, found.breaches

    asyncio.run(scenario())

"""The example that is documented, as it is documented."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import casenotes


def test_the_documented_example_works(url: str) -> None:
    async def scenario() -> None:
        async with casenotes.open(url) as notes:
            async with notes.run("Why is checkout slow?") as run:
                async with run.step("planner", model="...") as step:
                    step.output = "..."
                await run.tool("logs.search", {"q": "timeout"}, result="312 hits")
                run.answer("Pool exhausted after deploy 481.")
            trace = await notes.trace(run.session_id)
            receipt = await notes.feedback(run.session_id, "useful")

        assert trace.run is not None
        assert (trace.run_id, trace.run.status, trace.answer) == (
            run.run_id,
            casenotes.RunStatus.SUCCESS,
            "Pool exhausted after deploy 481.",
        )
        (step_row,), (tool_row,) = trace.agent_steps, trace.tool_invocations
        assert (step_row.agent_name, step_row.model, step_row.output) == ("planner", "...", "...")
        assert (tool_row.tool_name, tool_row.arguments, tool_row.result) == (
            "logs.search",
            {"q": "timeout"},
            "312 hits",
        )
        assert (receipt.run_id, receipt.fallback_to_latest_run) == (run.run_id, True)
        assert receipt.case_id is not None

    asyncio.run(scenario())


def test_a_record_in_a_file_is_there_when_it_is_opened_again(file_url: str) -> None:
    async def scenario() -> None:
        async with casenotes.open(file_url) as notes, notes.run("q", session="s-1") as run:
            run.answer("a")
        async with casenotes.open(file_url) as notes:
            assert (await notes.trace("s-1", run.run_id)).answer == "a"

    asyncio.run(scenario())


def test_a_relative_path_is_one_of_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    async def scenario() -> None:
        async with casenotes.open("sqlite:///runs.db") as notes, notes.run("q") as run:
            run.answer("a")

    asyncio.run(scenario())
    assert (tmp_path / "runs.db").exists()


def test_the_environment_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CASENOTES_DATABASE_URL", "sqlite:///elsewhere.db")
    monkeypatch.setenv("CASENOTES_RUN_LEASE", "not a number")

    async def scenario() -> None:
        async with casenotes.open("memory://") as notes, notes.run("q") as run:
            run.answer("a")

    asyncio.run(scenario())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("wrong", ["", " ", "runs.db", "mysql://user:hunter2@host/db"])
def test_a_url_that_is_none_is_refused_at_once_and_never_repeated(wrong: str) -> None:
    with pytest.raises(casenotes.InvalidSettings) as refused:
        casenotes.open(wrong)
    assert "hunter2" not in str(refused.value)


def test_a_folder_that_is_not_there_is_told_with_what_to_do(tmp_path: Path) -> None:
    async def scenario() -> None:
        with pytest.raises(casenotes.LedgerUnavailable, match="folder must exist"):
            async with casenotes.open(f"sqlite:///{tmp_path}/nowhere/runs.db"):
                pass

    asyncio.run(scenario())

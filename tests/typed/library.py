"""What a type checker sees of the library. Never run: mypy reads it with everything else in ``tests``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_type

import casenotes


async def library() -> None:
    async with casenotes.open("memory://", migrate=True) as notes:
        assert_type(notes, casenotes.Notes)
        async with notes.run("q", session="s-1", flow="STATE_GRAPH") as run:
            assert_type(run, casenotes.Run)
            assert_type(run.run_id, str)
            assert_type(run.session_id, str)
            async with run.step("planner", model="m") as step:
                assert_type(step, casenotes.Step)
                step.output, step.input_tokens, step.error_message = {"any": "value"}, 7, None
                step.input_tokens = "7"  # type: ignore[assignment]
            call = await run.tool("logs.search", {"q": "x"}, result=[1], status="FAILED", error="no")
            assert_type(call, casenotes.ToolInvocation)
            await run.tool("logs.search", status="DONE")  # type: ignore[arg-type]
            run.graph.entered("planner")
            run.graph.entered(casenotes.Node.COMPOSER)
            run.graph.entered("router")  # type: ignore[arg-type]
            run.graph.ended("COMPOSED")
            assert_type(run.answer("a", degraded=True), None)
        trace = await notes.trace(run.session_id, run.run_id)
        assert_type(trace, casenotes.RunTrace)
        assert_type(trace.agent_steps, tuple[casenotes.AgentStep, ...])
        assert_type(trace.tool_invocations, tuple[casenotes.ToolInvocation, ...])
        receipt = await notes.feedback(run.session_id, "useful", comment="yes")
        assert_type(receipt, casenotes.FeedbackReceipt)
        assert_type(receipt.case_id, int | None)
        await notes.feedback(run.session_id, "great")  # type: ignore[arg-type]
        assert_type(await notes.runs("s-1", limit=1), Sequence[casenotes.RunSummary])
        assert_type(await notes.sessions(), Sequence[casenotes.SessionOverview])
        assert_type(await notes.cases(), Sequence[casenotes.Case])
        assert_type(await notes.erase("s-1"), casenotes.Erasure)
        assert_type(await notes.ask("q"), casenotes.DiagnosisRun)
    notes.run("q", flow="chat")  # type: ignore[arg-type]

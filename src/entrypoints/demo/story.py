"""What the demo does with a service: two chats, their traces, feedback, and the AIOps report."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NoReturn
from urllib.parse import quote

from attrs import frozen

from casenotes.entrypoints.cli.terminal import counted, one_line, visible
from casenotes.entrypoints.demo.client import Api, Data, PromiseBroken, promise
from casenotes.entrypoints.demo.report_stream import read_report

FIRST_QUESTION = "Why is checkout slow?"
SECOND_QUESTION = "What changed in payment?"
_CITATION = re.compile(r"\[T(\d+)\]")


@frozen
class Answered:
    """A run that the demo caused: what was asked, and what was answered when it was asked."""

    session_id: str
    run_id: str
    question: str | None
    answer: str


@frozen
class Story:
    """The demo's doings with one service; ``say`` is told each of them."""

    api: Api
    say: Callable[[str], None]

    async def tell(self) -> tuple[Answered, ...]:
        """Drive the service through it all; the runs that it has executed.

        Raises ``PromiseBroken`` at the first promise that is not kept, and ``ServiceUnreachable``.
        """
        try:
            return await self._tell()
        except KeyError as missing:
            raise PromiseBroken(f"an answer lacks {missing}") from None
        except (AttributeError, IndexError, TypeError, ValueError):
            raise PromiseBroken("an answer is not of the shape that the contract gives it") from None

    async def _tell(self) -> tuple[Answered, ...]:
        self.say("\n1. A question, then another one in the same session")
        first = await self._chat(FIRST_QUESTION)
        second = await self._chat(SECOND_QUESTION, first.session_id)
        promise(second.session_id == first.session_id, "the second chat was answered in another session")
        promise(second.run_id != first.run_id, "two chats have the same runId")

        self.say("\n2. The trace of each run, by its runId")
        for run in (first, second):
            await self._trace(run)
        latest = await self._trace_data(first.session_id)
        promise(latest["runId"] == second.run_id, "a trace without runId is not that of the latest run")
        self.say("   without a runId: the latest run")
        await self._runs(first, second)

        self.say("\n3. Feedback, with a runId and without")
        await self._feedback(first, second)

        self.say("\n4. The AIOps report, as it is streamed")
        report = await self._report(first)

        self.say("\n5. The page of each run")
        for run in (first, second, report):
            self.say(f"   {visible(self.api.page(run.session_id, run.run_id))}")
        self.say("\nEvery promise was kept.")
        return first, second, report

    async def _chat(self, question: str, session_id: str | None = None) -> Answered:
        body = (
            {"question": question} if session_id is None else {"question": question, "sessionId": session_id}
        )
        data = await self.api.post("/api/chat", body)
        if data["success"] is not True:
            _failed(data)
        run = Answered(data["sessionId"], data["runId"], question, data["answer"])
        self.say(f"   Q {one_line(question, 70)}")
        self.say(f"   A {one_line(run.answer, 70)}")
        self.say(f"     session {visible(run.session_id)}")
        self.say(f"     run     {visible(run.run_id)} ({visible(data['agentFlow'])})")
        return run

    async def _trace_data(self, session_id: str, run_id: str | None = None, *, status: int = 200) -> Data:
        query = None if run_id is None else {"runId": run_id}
        return await self.api.get(f"/api/diagnosis/{quote(session_id, safe='')}/trace", query, status=status)

    async def _trace(self, run: Answered) -> Data:
        """The run's trace, once it is sure that it is this run's and nothing else's."""
        trace = await self._trace_data(run.session_id, run.run_id)
        mixed = f"traces are mixed: that of {run.run_id}"
        promise(trace["sessionId"] == run.session_id, f"{mixed} names another session")
        promise(trace["runId"] == run.run_id == trace["run"]["runId"], f"{mixed} names another run")
        if run.question is not None:
            promise(trace["run"]["query"] == run.question, f"{mixed} holds another question")
        promise(trace["answer"] == run.answer, f"{mixed} holds another answer than was given")
        steps, tools = trace["agentSteps"], trace["toolInvocations"]
        for rows, count, name in ((steps, "stepCount", "steps"), (tools, "toolCallCount", "tool calls")):
            due = list(range(1, trace["run"][count] + 1))
            promise([row["sequence"] for row in rows] == due, f"{mixed} does not hold exactly its own {name}")
        calls = {row["sequence"] for row in tools}
        cited = {int(number) for number in _CITATION.findall(run.answer)}
        promise(cited <= calls, f"the answer of {run.run_id} cites a tool call that it did not make")
        counts = f"{counted(len(steps), 'step')}, {counted(len(tools), 'tool call')}, {len(cited)} cited"
        self.say(f"   {visible(run.run_id)}: {counts}")
        return trace

    async def _runs(self, first: Answered, second: Answered) -> None:
        runs = await self.api.get(f"/api/chat/session/{quote(first.session_id, safe='')}/runs")
        promise(
            [run["runId"] for run in runs] == [second.run_id, first.run_id],
            "the list of runs is not the session's two runs, newest first",
        )
        self.say("   the list of runs: both, newest first")

    async def _feedback(self, first: Answered, second: Answered) -> None:
        for run, named in ((first, True), (second, False)):
            body = {"sessionId": run.session_id, "feedback": "useful"} | (
                {"runId": run.run_id} if named else {}
            )
            receipt = await self.api.post("/api/feedback", body)
            promise(receipt["runId"] == run.run_id, f"feedback on {run.run_id} was bound to another run")
            promise(
                receipt["fallbackToLatestRun"] is not named,
                "feedback does not say truly whether it fell back to the latest run",
            )
            trace = await self._trace_data(run.session_id, run.run_id)
            promise(
                trace["feedback"] is not None and trace["feedback"]["rating"] == "useful",
                f"the feedback on {run.run_id} is not in its trace",
            )
            how = "with its runId" if named else "without a runId, so on the latest run"
            self.say(f"   useful, {how}: {visible(receipt['runId'])}, case {receipt['caseId']}")

    async def _report(self, chat: Answered) -> Answered:
        streamed = await read_report(self.api.stream("/api/ai_ops"))
        promise(streamed.session_id != chat.session_id, "the AIOps run was put into the chat's session")
        run = Answered(streamed.session_id, streamed.run_id, None, streamed.text)
        self.say(f"   {one_line(run.answer, 74)}")
        trace = await self._trace(run)
        promise(trace["run"]["agentFlow"] == "AI_OPS", "the AIOps run does not say that it is one")
        promise(
            isinstance(trace["selfEvaluation"], dict) and "aiops_rule_evaluation" in trace["selfEvaluation"],
            "the AIOps run has no rule evaluation",
        )
        self.say(f"   {one_line(trace['selfEvaluation']['aiops_rule_evaluation']['summary'], 74)}")
        refused = await self._trace_data(chat.session_id, run.run_id, status=404)
        promise(refused is None, "a run of another session is answered with data")
        self.say("   asked for in the chat's session, this run is not found: as it should be")
        return run


def _failed(data: Data) -> NoReturn:
    raise PromiseBroken(f"the run {data['runId']} failed: {data['errorMessage']}")

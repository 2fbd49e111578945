"""Mixed traffic: what people and their tools do all day, by so many clients at once, for so many requests."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from itertools import count
from random import Random
from typing import Any

from attrs import define, field

from bench.soaking.calls import Answer, Fleet, Request
from bench.soaking.faults import Progress
from bench.soaking.remembered import Asked, Conversation, Memory

MOST_RUNS = 40
"""A conversation that has so many is left alone."""

GRAPHS = 0.01
"""The share of chats that are investigated through the graph, which takes a processor for a tenth of a second."""

WITH_A_TOOL = 0.25
"""The share of chats that make a tool call."""


@define
class Traffic:
    """Makes requests, and holds each answer to what it remembers."""

    fleet: Fleet
    memory: Memory
    progress: Progress
    choice: Random
    open_at_once: int = 24
    """Conversations that go on at the same time."""

    degraded_contexts: Counter[str] = field(factory=Counter, init=False)
    """Answers that were made without their earlier turns, by the fault during which they were asked for."""

    _open: list[Conversation] = field(factory=list, init=False)
    _numbers: Iterator[int] = field(factory=count, init=False)

    async def client(self) -> None:
        """Make one request after the other until all were made."""
        kinds = self._kinds()
        acts, weights = list(kinds), list(kinds.values())
        while await self.progress.take():
            (act,) = self.choice.choices(acts, weights)
            conversation = self._conversation()
            conversation.in_flight += 1
            try:
                await act(conversation)
            finally:
                conversation.in_flight -= 1

    def _kinds(self) -> dict[Callable[[Conversation], Awaitable[None]], float]:
        return {
            self.chat: 40,
            self.chat_stream: 8,
            self.ai_ops: 1,
            self.latest_trace: 12,
            self.exact_trace: 12,
            self.run_list: 10,
            self.session_list: 2,
            self.feedback: 6,
            self.feedback_to_latest: 6,
            self.clear: 2,
            self.erase: 1,
        }

    def _conversation(self) -> Conversation:
        self._open = [one for one in self._open if one.erased is None and len(one.asked) < MOST_RUNS]
        if len(self._open) < self.open_at_once:
            self._open.append(self.memory.add(f"soak-{next(self._numbers)}"))
            return self._open[-1]
        return self.choice.choice(self._open)

    async def chat(self, conversation: Conversation) -> None:
        await self._ask(conversation, "chat", "/api/chat")

    async def chat_stream(self, conversation: Conversation) -> None:
        await self._ask(conversation, "chat stream", "/api/chat_stream")

    async def _ask(self, conversation: Conversation, kind: str, path: str) -> None:
        nonce = f"q{next(self._numbers)}q"
        drawn = self.choice.random()
        quoted = drawn >= WITH_A_TOOL
        if drawn < GRAPHS:
            question, flow = f"Why is checkout slow? {nonce}", "graph"
        elif drawn < WITH_A_TOOL:
            question, flow = f"Which alerts of {nonce} are firing?", "chat"
        else:
            question, flow = f"Anything new on {nonce}?", "chat"
        body = {"sessionId": conversation.session_id, "question": question, "flow": flow}
        await self._answered(conversation, Asked(question, nonce, kind, quoted), path, body)

    async def ai_ops(self, _: Conversation) -> None:
        """A report on an alert of a name of its own, in a session of its own, in which people then chat."""
        conversation = self.memory.add(f"soak-{next(self._numbers)}")
        nonce = f"q{next(self._numbers)}q"
        alert = {"labels": {"alertname": nonce, "severity": "warning"}, "status": {"state": "active"}}
        body = {"sessionId": conversation.session_id, "alerts": [alert]}
        asked = Asked("Diagnose the firing alerts", nonce, "AIOps stream", quoted=True)
        await self._answered(conversation, asked, "/api/ai_ops", body)
        self._open.append(conversation)

    async def _answered(
        self, conversation: Conversation, asked: Asked, path: str, body: dict[str, Any]
    ) -> None:
        conversation.asked[asked.question] = asked
        streamed = path != "/api/chat"
        answer = await self._send(
            Request(asked.kind, "POST", path, body, key=f"key-{asked.nonce}", streamed=streamed)
        )
        if answer is None:
            return
        self.memory.answered(conversation, asked, answer)
        if answer.status == 200 and answer.data.get("contextDegraded"):
            self.degraded_contexts[self.fleet.faulty.during(answer.first_sent, answer.received)] += 1

    async def latest_trace(self, conversation: Conversation) -> None:
        answer = await self._send(Request("latest trace", "GET", trace_path(conversation)))
        if answer is None:
            return
        told = [told for told in conversation.told if told.received < answer.first_sent]
        where = f"the latest trace of {conversation.session_id}"
        run = None if answer.status == 404 else answer.data["run"]
        if run is None:
            self.memory.require(not told, f"{where}: there is none, and {len(told)} runs were told")
            return
        asked = self.memory.traced(conversation, answer.data, answer.first_sent)
        if asked is not None:
            later = conversation.later_told(asked.question, answer.first_sent)
            self.memory.require(not later, f"{where}: is {run['runId']}, which was not the latest")

    async def exact_trace(self, conversation: Conversation) -> None:
        if not conversation.told:
            return await self.chat(conversation)
        told = self.choice.choice(conversation.told)
        answer = await self._send(Request("exact trace", "GET", trace_path(conversation, told.run_id)))
        if answer is not None and self._is_there(answer, f"the run {told.run_id}"):
            self.memory.traced(conversation, answer.data, answer.first_sent)

    async def run_list(self, conversation: Conversation) -> None:
        if not conversation.told:
            return await self.chat(conversation)
        answer = await self._send(Request("run list", "GET", run_list_path(conversation)))
        if answer is not None and self._is_there(answer, f"the run list of {conversation.session_id}"):
            self.memory.listed(conversation, answer.data, answer.first_sent)

    async def session_list(self, _: Conversation) -> None:
        answer = await self._send(Request("session list", "GET", "/api/sessions?limit=50"))
        if answer is None or not self._is_there(answer, "the list of sessions"):
            return
        for session_id in (row["sessionId"] for row in answer.data):
            known = self.memory.conversations.get(session_id)
            if self.memory.require(known is not None, f"the list of sessions: {session_id} is nobody's"):
                assert known is not None
                gone = known.erased is not None and known.erased < answer.first_sent
                self.memory.require(not gone, f"the list of sessions: {session_id} was erased")

    async def feedback(self, conversation: Conversation) -> None:
        if not conversation.told:
            return await self.chat(conversation)
        await self._rate(conversation, self.choice.choice(conversation.told))

    async def feedback_to_latest(self, conversation: Conversation) -> None:
        if not conversation.told:
            return await self.chat(conversation)
        await self._rate(conversation, None)

    async def _rate(self, conversation: Conversation, named: Asked | None) -> None:
        rating = self.choice.choice(("useful", "useful", "not_useful"))
        comment = f"comment {next(self._numbers)}"
        body: dict[str, Any] = {"sessionId": conversation.session_id, "feedback": rating, "comment": comment}
        if named is not None:
            body["runId"] = named.run_id
        kind = "feedback" if named is None else "feedback to a run"
        answer = await self._send(Request(kind, "POST", "/api/feedback", body))
        if answer is not None:
            self.memory.rated(conversation, named, rating, comment, answer)

    async def clear(self, conversation: Conversation) -> None:
        if not conversation.told:
            return await self.chat(conversation)
        body = {"sessionId": conversation.session_id}
        answer = await self._send(Request("clear context", "POST", "/api/chat/clear", body))
        if answer is not None:
            self._is_there(answer, f"the context of {conversation.session_id}")

    async def erase(self, conversation: Conversation) -> None:
        """Only where nothing else is under way, so that what must be gone afterwards is certain."""
        if not conversation.told or conversation.in_flight > 1:
            return await self.chat(conversation)
        conversation.erased = float("inf")  # nobody comes to it any more
        answer = await self._send(Request("erase", "DELETE", session_path(conversation)))
        if answer is None:
            return
        if answer.status == 404:
            self.memory.require(answer.uncertain, f"{conversation.session_id} was gone before it was erased")
        elif self._is_there(answer, conversation.session_id):
            removed, known = answer.data["runs"], len(conversation.told)
            self.memory.require(
                removed == known, f"{conversation.session_id}: {removed} runs were erased, {known} were told"
            )
        conversation.erased = answer.received

    def _is_there(self, answer: Answer, what: str) -> bool:
        return self.memory.require(answer.status == 200, f"{what}: answered {answer.status}")

    async def _send(self, request: Request) -> Answer | None:
        answer = await self.fleet.send(request)
        self.memory.require(answer is not None, f"{request.kind} {request.path}: nobody answered it in time")
        return answer


def session_path(conversation: Conversation) -> str:
    return f"/api/chat/session/{conversation.session_id}"


def run_list_path(conversation: Conversation) -> str:
    return f"{session_path(conversation)}/runs?limit=500"


def trace_path(conversation: Conversation, run_id: str | None = None) -> str:
    path = f"/api/diagnosis/{conversation.session_id}/trace"
    return path if run_id is None else f"{path}?runId={run_id}"


async def drive(traffic: Traffic, clients: int) -> None:
    """So many clients at once, until all requests were made."""
    async with asyncio.TaskGroup() as group:
        for _ in range(clients):
            group.create_task(traffic.client())

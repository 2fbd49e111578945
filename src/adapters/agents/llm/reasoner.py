"""The ``Reasoner`` that asks a model; on its first failure it is given up for the rest of the run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing

from attrs import define, field

from casenotes.adapters.agents import planning
from casenotes.adapters.agents.focus import Focus
from casenotes.adapters.agents.investigating import Investigation, listed
from casenotes.adapters.agents.llm import evidence, failure, prompts
from casenotes.adapters.agents.llm.allowance import Allowance
from casenotes.adapters.agents.llm.citing import CitedAnswer
from casenotes.adapters.agents.llm.client import ChatModel
from casenotes.adapters.agents.llm.failure import ModelFailed
from casenotes.adapters.agents.llm.plans import MAX_OFFERED, PLAN, numbered, read_plan
from casenotes.adapters.agents.llm.wire import Message, Said
from casenotes.adapters.agents.reasoning import Choice, Draft
from casenotes.core.model import MessagePair
from casenotes.core.text import JsonObject
from casenotes.core.words import AgentFlow, StepStatus
from casenotes.ports.agent import ALERTS_TOOL, AgentEvent, Chunk, Lookup, StepTaken

MAX_PLANS = 3
"""How often a model may choose lookups for one text that it writes."""

_MAX_TURNS = 6_000
"""Characters of earlier turns in a prompt, the latest."""

_CUT = "**The model's answer was cut here; what follows was made without it.**"
_LOST = "The language model could not be used: {why}. What follows was made without it."


@define(eq=False)
class ModelReasoner:
    """Asks the model within its allowance. See ``Reasoner``."""

    model: ChatModel
    allowance: Allowance
    flow: AgentFlow
    conversation: Sequence[MessagePair] = ()
    failed: str | None = field(default=None, init=False)
    _plans: int = field(default=0, init=False)
    _calls: int = field(default=0, init=False)
    _tokens: tuple[int, int] = field(default=(0, 0), init=False)
    _cut: str = field(default="", init=False)
    _told: bool = field(default=False, init=False)

    async def choose(
        self, investigation: Investigation, proposed: list[Lookup], room: int, focus: Focus | None = None
    ) -> Choice:
        """What the model chooses of all that can be looked at; what the rules propose once it has failed."""
        offered = investigation.plan(planning.NOT_ASKED_FOR, focus)[:MAX_OFFERED]
        if self.failed is not None or not offered:
            return Choice(proposed[:room])
        if self._plans == MAX_PLANS:
            return Choice([])
        self._plans += 1
        about = f"{focus.question}, {focus.described}" if focus else investigation.enquiry.question
        calls = investigation.looking.calls
        asked = self._asked(
            about,
            ("What was looked at so far", evidence.shown(calls)),
            (f"Lookups that can be made; choose at most {room}", numbered(offered)),
        )
        started = self.allowance.clock()
        reply = Said("")
        try:
            reply = await self._ask(prompts.PLAN, asked)
            plan = read_plan(reply.text, offered)
            needed = investigation.focus.operational if focus is None else False
            if not plan.lookups and needed and not _looked(investigation):
                raise ModelFailed(failure.EMPTY_PLAN)
        except ModelFailed as fault:
            return Choice(proposed[:room], (self._step("planner", "plan", asked, reply, started, fault),))
        chosen = plan.lookups[:room]
        output = "\n".join(filter(None, [plan.reason, listed(chosen)]))
        return Choice(chosen, (self._step("planner", "plan", asked, Said(output, *_tokens(reply)), started),))

    def can_write(self, investigation: Investigation, found: bool) -> bool:
        """Whether anything was seen: a model may read what the rules cannot."""
        return found or any(
            not call.empty and call.failed is None and call.lookup.tool != ALERTS_TOOL
            for call in investigation.looking.calls
        )

    async def write(self, draft: Draft) -> AsyncIterator[AgentEvent]:
        """The model's pieces as they come, from its first citation on, and its step."""
        self._plans = 0
        if self.failed is not None:
            return
        asked = self._asked(draft.about, ("The evidence", evidence.shown(draft.calls)))
        prompt = prompts.SECTION if self.flow is AgentFlow.AI_OPS else prompts.ANSWER
        answer = CitedAnswer(must_cite=bool(draft.calls))
        started, counted, fault = self.allowance.clock(), Said(""), None
        try:
            self._calls += 1
            pieces = self.model.tell(self._messages(prompt, asked), self.allowance.next_call())
            async with aclosing(pieces):
                async for piece in pieces:
                    counted = counted if piece.input_tokens is None else piece
                    if ready := answer.feed(piece.text):
                        yield Chunk(ready)
            if ready := answer.finish():
                yield Chunk(ready)
        except ModelFailed as failing:
            fault, self._cut = failing, answer.sent
        reply = Said(answer.sent if fault is None else answer.heard, *_tokens(counted))
        yield self._step("composer", "compose", asked, reply, started, fault)
        if fault is None and (ending := self._ending(answer.sent)):
            yield Chunk(ending)

    def notice(self) -> str:
        """That the model's answer was cut, or that it could not be used; told once."""
        if self._told or self.failed is None:
            return ""
        self._told = True
        if not self._cut:
            return _LOST.format(why=self.failed) + "\n\n"
        fence = "\n```" if self._cut.count("```") % 2 else ""
        return f"{fence}\n\n{_CUT}\n\n"

    @property
    def found_of_itself(self) -> JsonObject:
        """The calls of the model, its tokens, and why it was given up."""
        read, written = self._tokens
        return {
            "model": {
                "name": self.model.name,
                "calls": self._calls,
                "inputTokens": read,
                "outputTokens": written,
                "failure": self.failed,
            }
        }

    def _ending(self, text: str) -> str:
        """What is missing for the text to end its line or, in a report that goes on, its paragraph."""
        ends = "\n\n" if self.flow is AgentFlow.AI_OPS else "\n"
        return ends[len(text) - len(text.rstrip("\n")) :]

    async def _ask(self, prompt: str, asked: str) -> Said:
        self._calls += 1
        return await self.model.ask(self._messages(prompt, asked), PLAN, self.allowance.next_call())

    def _messages(self, prompt: str, asked: str) -> list[Message]:
        return [Message("system", prompt), Message("user", asked)]

    def _asked(self, about: str, *parts: tuple[str, str]) -> str:
        turns = "\n\n".join(f"Asked: {pair.question}\nAnswered: {pair.answer}" for pair in self.conversation)
        kind = "The group of alerts" if self.flow is AgentFlow.AI_OPS else "The question"
        titled = [("Earlier turns", turns[-_MAX_TURNS:]), (kind, about), *parts]
        return "\n\n".join(f"# {title}\n\n{text}" for title, text in titled if text)

    def _step(
        self,
        agent: str,
        kind: str,
        asked: str,
        reply: Said,
        started: float,
        fault: ModelFailed | None = None,
    ) -> StepTaken:
        """The step of one call; a fault gives the model up."""
        if fault is not None:
            self.failed = fault.why
        read, written = reply.input_tokens, reply.output_tokens
        self._tokens = (self._tokens[0] + (read or 0), self._tokens[1] + (written or 0))
        return StepTaken(
            agent,
            kind,
            model=self.model.name,
            input=asked,
            output=reply.text or None,
            status=StepStatus.SUCCESS if fault is None else StepStatus.FAILED,
            error_message=None if fault is None else f"the language model could not be used: {fault.why}",
            input_tokens=read,
            output_tokens=written,
            duration_ms=round((self.allowance.clock() - started) * 1000),
        )


def _looked(investigation: Investigation) -> bool:
    return any(call.lookup.tool != ALERTS_TOOL for call in investigation.looking.calls)


def _tokens(said: Said) -> tuple[int | None, int | None]:
    return said.input_tokens, said.output_tokens

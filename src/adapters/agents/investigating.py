"""A run of one question: what is known, what was looked at, and what it comes to. Shared by every flow."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing

from casenotes.adapters.agents import planning
from casenotes.adapters.agents.alerts import Alert, firing, read_alerts
from casenotes.adapters.agents.findings.extract import subject_of
from casenotes.adapters.agents.findings.names import same_thing
from casenotes.adapters.agents.focus import Focus, concerns, understand
from casenotes.adapters.agents.linking import Picture, links_from, picture
from casenotes.adapters.agents.looking import Call, Looking, Monotonic, describe
from casenotes.adapters.agents.sections import Case
from casenotes.ports.agent import (
    ALERTS_TOOL,
    About,
    AgentEvent,
    Enquiry,
    EvidenceSource,
    Lookup,
    ObservationStatus,
    OpenEnded,
    StepTaken,
)
from casenotes.ports.ambient import Clock


class Investigation:
    """The state of one run. Made anew for each enquiry; nothing of it outlives the run."""

    def __init__(self, enquiry: Enquiry, source: EvidenceSource, clock: Monotonic, now: Clock) -> None:
        self.enquiry = enquiry
        self.looking = Looking(source, clock)
        self.source = source
        self.offered: tuple[Lookup, ...] = ()
        self.alerts: tuple[Alert, ...] = ()
        self.focus = Focus(enquiry.question)
        self._now = now

    @property
    def names(self) -> tuple[str, ...]:
        """The names of everything that can be looked at or was seen."""
        offered = (subject_of(lookup) for lookup in self.offered)
        seen = (cited.finding.subject for cited in self.looking.found)
        alerted = (subject for alert in self.alerts for subject in alert.subjects)
        return tuple(dict.fromkeys(name for name in (*offered, *alerted, *seen) if name))

    @property
    def alerts_call(self) -> Call | None:
        """The call that read the alerts, if it was made."""
        return self.looking.made(Lookup(ALERTS_TOOL))

    async def open(self) -> AsyncIterator[AgentEvent]:
        """Learn what can be looked at, read the alerts, and settle what the question is about."""
        self.offered = tuple(await self.source.offer())
        self.refocus()
        if not self.focus.operational:  # it may name what only an open-ended source knows of
            await self.learn(self.enquiry.question)
            self.refocus()
        asks_alerts = self.focus.operational and ALERTS_TOOL in self.source.tools
        first = "the firing alerts first" if asks_alerts else "nothing"
        about = self.focus.described if self.focus.operational else "about nothing that can be looked at here"
        yield StepTaken(
            "planner", "plan", input=self.enquiry.question, output=f"{about}; to look at: {first}"
        )
        if asks_alerts:
            yield await self.looking.look(Lookup(ALERTS_TOOL))
            self.read_alerts()
            self.refocus()
        if self.focus.operational:
            await self.learn(self.enquiry.question)
            self.refocus()

    async def learn(self, question: str) -> None:
        """Take up what the sources offer for this question and the alerts that were read."""
        if not isinstance(self.source, OpenEnded):
            return
        call = self.alerts_call
        shown = call.observation.result if call is not None else None
        alerts = tuple(item for item in shown if isinstance(item, dict)) if isinstance(shown, list) else ()
        offered = await self.source.offer_for(About(question, alerts))
        self.offered = (*self.offered, *(lookup for lookup in offered if lookup not in self.offered))

    def read_alerts(self) -> None:
        """Take up what the call for alerts brought."""
        call = self.alerts_call
        if call is not None and call.observation.status is ObservationStatus.SUCCESS:
            self.alerts = read_alerts(call.observation.result, self._now())

    def refocus(self) -> None:
        """Settle anew what the question is about: names seen by now may be named in it."""
        self.focus = understand(
            self.enquiry.question, self.enquiry.conversation, self.names, firing(self.alerts)
        )

    def aim(self, focus: Focus | None = None) -> planning.Aim:
        """What to choose lookups for: the focus, and what the errors seen by now lead to."""
        about = focus or self.focus
        links = tuple(links_from(about, self.looking.found, self.names))
        return planning.Aim(
            about, links, tuple(alert for alert in firing(self.alerts) if concerns(alert, links))
        )

    def plan(self, least: int, focus: Focus | None = None) -> list[Lookup]:
        """The lookups worth making now, the most telling first."""
        made = [call.lookup for call in self.looking.calls]
        return planning.order(self.offered, self.aim(focus), least=least, made=made)

    @property
    def trail(self) -> list[Lookup]:
        """Lookups on what the errors lead to that were not made yet and promise much."""
        aim = self.aim()
        return [
            lookup
            for lookup in self.plan(planning.ON_LINKED)
            if any(same_thing(subject_of(lookup), name) for name in aim.linked)
        ]

    async def look(self, lookups: Sequence[Lookup]) -> AsyncIterator[AgentEvent]:
        """Make these lookups, each once, several at a time; they are told in their order."""
        async with aclosing(self.looking.look_at_all(lookups)) as events:
            async for event in events:
                yield event

    def picture(self, focus: Focus | None = None) -> Picture:
        """What is known by now, in its place."""
        return picture(focus or self.focus, self.looking.found, self.names)

    def case(self, left_out: int = 0) -> Case:
        """What the answer to the question is composed from."""
        return Case(
            self.focus,
            self.picture(),
            self.looking.calls,
            firing(self.alerts),
            self.alerts_call,
            left_out,
        )


def listed(lookups: Sequence[Lookup]) -> str:
    """Lookups as a step's text."""
    return "\n".join(describe(lookup) for lookup in lookups) or "nothing"

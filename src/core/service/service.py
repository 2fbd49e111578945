"""The use cases of one process, put together over its ports. Entry points hold this and nothing below it."""

from __future__ import annotations

from datetime import timedelta

from attrs import frozen

from casenotes.core.service.bounded_context import BoundedContext
from casenotes.core.service.conducting import Conductor, Limits
from casenotes.core.service.conversations import Conversations
from casenotes.core.service.executions import Executions
from casenotes.core.service.feedback import FeedbackDesk
from casenotes.core.service.leases import LeaseKeeper
from casenotes.core.service.reading import Reading
from casenotes.core.service.recording import Recorder
from casenotes.ports.agent import Diagnostician
from casenotes.ports.ambient import Clock, NewId, RunObserver
from casenotes.ports.context import ContextStore
from casenotes.ports.ledger import Ledger


@frozen
class Service:
    """All that can be asked of casenotes."""

    ledger: Ledger
    context: ContextStore
    recorder: Recorder
    executions: Executions
    reading: Reading
    feedback: FeedbackDesk
    conversations: Conversations
    leases: LeaseKeeper
    new_id: NewId

    @classmethod
    def over(
        cls,
        *,
        ledger: Ledger,
        context: ContextStore,
        diagnostician: Diagnostician,
        clock: Clock,
        new_id: NewId,
        observer: RunObserver,
        limits: Limits,
        lease: timedelta,
        context_ttl: timedelta,
    ) -> Service:
        """The service over these ports. ``new_id`` also names this process in its leases."""
        recorder = Recorder(ledger, clock, new_id, observer, new_id(), lease, context_ttl)
        context = BoundedContext(context, limits.context_timeout)
        executions = Executions(recorder, Conductor(diagnostician, context, observer, limits))
        reading = Reading(ledger, clock)
        return cls(
            ledger=ledger,
            context=context,
            recorder=recorder,
            executions=executions,
            reading=reading,
            feedback=FeedbackDesk(ledger, clock),
            conversations=Conversations(ledger, context, clock, reading, executions),
            leases=LeaseKeeper(recorder, executions.running, executions.lost),
            new_id=new_id,
        )

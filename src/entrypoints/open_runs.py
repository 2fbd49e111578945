"""The runs whose blocks are under way in this process: begun, kept, and ended with their blocks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from attrs import define, field

from casenotes.core.model import RunKey
from casenotes.core.orchestration import TerminationReason
from casenotes.core.service.recording import Recording
from casenotes.entrypoints.outlasting import outlasting, reason_of, termination_of, to_its_end
from casenotes.entrypoints.run_block import Remember, Run
from casenotes.ports.ambient import RunObserver

CLOSED = "the record was closed before the run had ended"


@define(eq=False)
class OpenRuns:
    """Begins runs, and knows those that have not ended."""

    _observer: RunObserver
    _remember: Remember
    _runs: dict[str, Run] = field(factory=dict, init=False)

    def running(self) -> frozenset[RunKey]:
        """The runs whose leases are to be kept."""
        return frozenset((run.session_id, run_id) for run_id, run in self._runs.items())

    async def lost(self, runs: Collection[RunKey]) -> None:
        """Let go of runs that somebody else has ended or erased: their blocks meet that at their next record."""
        for _, run_id in runs:
            self._runs.pop(run_id, None)

    @asynccontextmanager
    async def block(self, start: Callable[[], Coroutine[Any, Any, Recording]]) -> AsyncIterator[Run]:
        """A run that begins with the block and ends with it, whichever way that ends."""

        async def begin() -> Run:
            run = Run(await start(), self._observer)
            self._runs[run.run_id] = run
            return run

        run, cancellation = await outlasting(begin)
        try:
            if cancellation is not None:
                raise cancellation
            yield run
        except BaseException as fault:
            end = partial(run.fail, reason_of("the run", fault), termination_of(fault))
            await run.even_so(fault, end, "ending a failed run")
            raise
        else:
            await to_its_end(partial(run.end, self._remember))
        finally:
            self._runs.pop(run.run_id, None)

    async def close(self) -> None:
        """End those that are left as interrupted; one that cannot be ended now is ended by its lease."""
        for run in list(self._runs.values()):
            try:
                await run.fail(CLOSED, TerminationReason.INTERRUPTED)
            except Exception as fault:
                self._observer.faulted(run.session_id, run.run_id, "ending an open run", fault)
        self._runs.clear()

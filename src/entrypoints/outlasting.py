"""Writes that outlast a cancellation, and what may be said of an exception."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from casenotes.core.orchestration import TerminationReason
from casenotes.core.text import clean

T = TypeVar("T")


async def outlasting(act: Callable[[], Coroutine[Any, Any, T]]) -> tuple[T, asyncio.CancelledError | None]:
    """Do it to its end, whoever cancels; give its result, and the cancellation that is to be raised then.

    Raises what ``act`` raises, or the cancellation when there was one.
    """
    task = asyncio.ensure_future(act())
    cancellation = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as came:
            cancellation = came
        except Exception:
            break
    if cancellation is not None and not task.cancelled() and task.exception() is not None:
        raise cancellation from task.exception()
    return task.result(), cancellation


async def to_its_end(act: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Do it to its end, whoever cancels, and only then raise the cancellation."""
    result, cancellation = await outlasting(act)
    if cancellation is not None:
        raise cancellation
    return result


def reason_of(what: str, fault: BaseException) -> str:
    """Why ``what`` failed, in words that may be shown: of an exception its type, never its own words."""
    if not isinstance(fault, Exception):
        return f"{what} was interrupted before it had ended"
    name = type(fault).__name__
    # A type can be made at run time, with any name.
    is_plain = name.isascii() and name.isidentifier() and len(name) <= 100 and clean(name) == name
    return f"{what} raised {name if is_plain else 'an exception'}"


def termination_of(fault: BaseException) -> TerminationReason:
    """What the fault that ended a run is to its graph."""
    if not isinstance(fault, Exception):
        return TerminationReason.INTERRUPTED
    return TerminationReason.TIMEOUT if isinstance(fault, TimeoutError) else TerminationReason.ERROR

"""The chain of a session's ended runs, checked against the links that are there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from attrs import frozen

from casenotes.core.breaches import BreachKind, Fault
from casenotes.core.seal import ChainHead, RunSeal


@frozen
class Link:
    """A run's seal. ``is_sound`` when the run is as it was sealed."""

    run_id: str
    seal: RunSeal
    is_sound: bool


def chain_faults(head: ChainHead | None, links: Sequence[Link]) -> Iterator[Fault]:
    """What is wrong with a chain. Without ``head`` (its session's row is gone) nothing is known of its end."""
    before = ChainHead()
    for place, here in _by_place(links).items():
        link, *others = here
        for other in others:
            yield Fault(
                BreachKind.ADDED, other.run_id, f"there are several runs at place {place} of the chain"
            )
        if place > before.count + 1:
            yield _gap(before.count + 1, place - 1)
        elif link.seal.previous != before.digest:
            yield Fault(
                BreachKind.CHAIN, link.run_id, f"it does not follow the run at place {place - 1} of the chain"
            )
        if head is not None:
            yield from _against(head, place, link)
        before = link.seal.head
    if head is None:
        return
    if head.count > before.count:
        yield _gap(before.count + 1, head.count)
    if head.count == 0 and head.digest is not None:
        yield Fault(BreachKind.CHAIN, None, "the session remembers a last run, and that none has ended")


def _against(head: ChainHead, place: int, link: Link) -> Iterator[Fault]:
    if place > head.count:
        detail = f"the session's chain has {head.count} runs, and this one is at place {place}"
        yield Fault(BreachKind.ADDED, link.run_id, detail)
    if place == head.count and link.seal.digest != head.digest:
        yield Fault(BreachKind.CHAIN, link.run_id, "it is not the run that the session remembers as its last")


def _by_place(links: Sequence[Link]) -> Mapping[int, Sequence[Link]]:
    """The links by place, the sound ones of a place first. A place below 1 is none: its seal says that already."""
    ordered = sorted(links, key=lambda link: (link.seal.position, not link.is_sound))
    grouped = groupby(ordered, key=lambda link: link.seal.position)
    return {place: tuple(here) for place, here in grouped if place > 0}


def _gap(first: int, last: int) -> Fault:
    # One fault, however wide: a number that was altered may be any.
    places = f"place {first}" if first == last else f"places {first} to {last}"
    return Fault(BreachKind.REMOVED, None, f"no run is at {places} of the session's chain")

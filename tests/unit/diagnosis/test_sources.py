"""Many sources as one."""

from __future__ import annotations

import asyncio

from unit.diagnosis.asking import Recorded

from casenotes.adapters.agents.sources import Sources
from casenotes.ports.agent import Lookup, ObservationStatus

HERE = Lookup("logs", {"pod": "a"})


def test_what_two_sources_offer_is_offered_once() -> None:
    one, other = (
        Recorded(("logs", {"pod": "a"}, "x")),
        Recorded(("logs", {"pod": "a"}, "y"), ("top", {}, "z")),
    )
    both = Sources([one, other])
    assert both.tools == {"logs", "top"}
    assert list(asyncio.run(both.offer())) == [HERE, Lookup("top")]


def test_the_first_source_that_shows_something_answers() -> None:
    empty, full, later = (
        Recorded(("logs", {"pod": "a"}, None)),
        Recorded(("logs", {"pod": "a"}, "y")),
        Recorded(),
    )
    assert asyncio.run(Sources([empty, full, later]).look(HERE)).result == "y"


def test_a_failure_is_not_hidden_by_no_data() -> None:
    down, empty = Recorded(failing=["logs"]), Recorded(("logs", {"pod": "a"}, None))
    for order in ([down, empty], [empty, down]):
        assert asyncio.run(Sources(order).look(HERE)).status is ObservationStatus.ERROR


def test_a_tool_of_no_source_is_an_error() -> None:
    assert asyncio.run(Sources([]).look(HERE)).error_message == "no source answers the tool logs"

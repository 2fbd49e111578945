"""Text for a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casenotes.entrypoints.cli.terminal import WIDTH, cells, duration, one_line, size, visible, wrapped

TEXT = st.text(st.characters(codec=None))


@given(TEXT)
def test_what_is_visible_steers_nothing_and_stays_as_it_is(text: str) -> None:
    shown = visible(text)
    assert not {c for c in shown if ord(c) < 32 or 127 <= ord(c) < 160} - {"\t", "\n"}
    assert visible(shown) == shown


@given(TEXT, st.sampled_from(["", "  ", "  1. ", "     [T1] "]))
def test_wrapped_text_keeps_its_words_and_its_width(text: str, first: str) -> None:
    page = wrapped(text, first)
    assert all(cells(line) <= WIDTH for line in page.split("\n"))
    assert "".join(page.split()) == "".join((first + visible(text)).split())


@given(TEXT, st.integers(10, 90))
def test_one_line_is_one_line_of_at_most_its_width(text: str, width: int) -> None:
    line = one_line(text, width)
    assert "\n" not in line
    assert cells(line) <= width


def test_lines_stay_lines_and_items_hang() -> None:
    page = wrapped("one\r\n\n- " + "word " * 20, "> ", "  ")
    assert page == ("> one\n\n  - " + ("word " * 15).rstrip() + "\n    " + ("word " * 5).rstrip())


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1000, "1.0 s"),
        (59_940, "59.9 s"),
        (60_000, "1 min 0 s"),
        (185_000, "3 min 5 s"),
    ],
)
def test_durations(milliseconds: int, shown: str) -> None:
    assert duration(milliseconds) == shown


@pytest.mark.parametrize(
    ("count", "shown"), [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (20 * 1024**2, "20.0 MiB")]
)
def test_sizes(count: int, shown: str) -> None:
    assert size(count) == shown

"""What is answered is JSON of exactly what was given, whatever its numbers and texts."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from casenotes.core.text import Json, clean_json
from casenotes.entrypoints.http.envelope import failure, json_bytes, success
from casenotes.entrypoints.http.shapes import moment

anything = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**1000), 2**1000) | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(anything)
@example([2**63, 2**64, -(2**63) - 1, 2**53 + 1, 2**1000])
@example({"z": 1, "a": [1e-7, 1e15, 5e-324, 1.7e308], "\u2028\x85\x00\\": "\u2029\x7f\U0001f600"})
def test_every_clean_value_comes_out_as_it_went_in_on_one_line(value: object) -> None:
    given_value = clean_json(value)
    written = json_bytes(given_value)
    assert same(json.loads(written), given_value)
    assert b"\n" not in written and b"\r" not in written


def same(one: Json, other: Json) -> bool:
    """Equal, and of the same kinds, keys in the same order."""
    return repr(one) == repr(other)


def test_an_answer_is_bytes_and_says_what_they_are() -> None:
    answer = success({"text": "Köln", "number": 2**70})
    assert (
        answer.body == '{"code":200,"message":"success","data":{"text":"Köln","number":%d}}'.encode() % 2**70
    )
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"


def test_a_message_with_half_a_character_is_answered_all_the_same() -> None:
    answer = failure(400, "field\ud800\x00")
    assert answer.body == '{"code":400,"message":"field\ufffd\ufffd","data":null}'.encode()


def test_what_is_no_json_is_not_answered() -> None:
    with pytest.raises(TypeError):
        json_bytes({"at": datetime.now(UTC)})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("at", "written"),
    [
        (datetime(2026, 12, 1, tzinfo=UTC), "2026-12-01T00:00:00.000000Z"),
        (datetime(2026, 12, 1, 1, 2, 3, 45, timezone(timedelta(hours=2))), "2026-11-30T23:02:03.000045Z"),
        (datetime(33, 1, 1, tzinfo=UTC), "0033-01-01T00:00:00.000000Z"),
    ],
)
def test_a_moment_is_written_in_utc_with_microseconds(at: datetime, written: str) -> None:
    assert moment(at) == written

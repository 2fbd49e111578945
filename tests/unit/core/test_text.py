"""What can be stored: settled, cleaned and bounded text and JSON."""

from __future__ import annotations

import json
import math
import re
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casenotes.core.redaction import Addition, LineRule, added
from casenotes.core.text import (
    LIMIT_BYTES,
    bounded,
    clean,
    clean_json,
    clean_name,
    clean_object,
    cut,
    fold,
    json_text,
    settle,
)

any_text = st.text(st.characters(codec=None, categories=None, exclude_categories=()))
any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_text, inner, max_size=4),
    max_leaves=12,
)


@given(any_text)
def test_settled_text_can_be_encoded_and_has_no_nul(text: str) -> None:
    settled = settle(text)
    settled.encode()
    assert "\x00" not in settled
    assert len(settled) == len(text)


def test_nul_and_lone_surrogates_become_the_replacement_character() -> None:
    assert settle("a\x00b\ud800c\udfffd😀") == "a\ufffdb\ufffdc\ufffdd😀"


@given(any_text)
def test_cleaning_twice_changes_nothing(text: str) -> None:
    assert clean(clean(text)) == clean(text)


@given(any_json)
def test_clean_json_is_strict_json_and_cleaning_it_again_changes_nothing(value: Any) -> None:
    cleaned = clean_json(value)
    assert json.loads(json_text(cleaned)) == cleaned
    json_text(cleaned).encode()
    assert clean_json(cleaned) == cleaned


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (b"ab\xff", "ab\ufffd"),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00+00:00"),
        ((1, 2), [1, 2]),
        ({3}, [3]),
        ({1: "a"}, {"1": "a"}),
        ("[1]", "[1]"),
        (True, True),
        (10**30, 10**30),
        (1e16, 10**16),
        (-0.0, 0.0),
        (0.1, 0.1),
        ({"a": {"password": "x", "user": "y"}}, {"a": {"password": "[redacted:password]", "user": "y"}}),
        ({"Authorization": "Basic eA=="}, {"Authorization": "[redacted:authorization]"}),
        ({"password": ""}, {"password": ""}),
        ({"password": None}, {"password": None}),
        ({"max_tokens": 5}, {"max_tokens": 5}),
    ],
)
def test_what_json_cannot_hold_becomes_its_text(value: object, stored: object) -> None:
    cleaned = clean_json(value)
    assert cleaned == stored
    assert type(cleaned) is type(stored)


def test_a_cycle_ends_and_deep_nesting_is_cut() -> None:
    cyclic: list[object] = []
    cyclic.append(cyclic)
    assert clean_json(cyclic) == ["[cyclic]"]
    deep: object = "x"
    for _ in range(10_000):
        deep = [deep]
    assert "[nested too deep]" in json_text(clean_json(deep))


def test_an_object_whose_text_cannot_be_had_is_named_by_its_type() -> None:
    class Broken:
        def __str__(self) -> str:
            raise RuntimeError("no")

    assert clean_json(Broken()) == "<Broken>"


def test_a_number_of_many_digits_is_kept_as_text() -> None:
    assert isinstance(clean_json(10**5000), str)


def test_clean_object_of_none_is_empty() -> None:
    assert clean_object(None) == {}


def test_within_the_limit_a_string_stays_a_string_and_an_object_an_object() -> None:
    assert bounded("[1]").value == "[1]"
    assert bounded([1]).value == [1]
    assert bounded({"a": 1}).size == len('{"a":1}')
    assert bounded(None).size == 0
    exact = bounded("é" * (LIMIT_BYTES // 2))
    assert (exact.truncated, exact.size) == (False, LIMIT_BYTES)


def test_over_the_limit_text_is_cut_at_a_character_and_its_true_size_kept() -> None:
    kept = bounded("€" * 40_000)
    assert kept.truncated
    assert kept.size == 120_000
    assert isinstance(kept.value, str)
    assert len(kept.value.encode()) == LIMIT_BYTES - LIMIT_BYTES % 3
    assert set(kept.value) == {"€"}


def test_over_the_limit_an_object_is_stored_as_its_json_text_cut() -> None:
    value = {"rows": list(range(20_000))}
    kept = bounded(value)
    assert kept.truncated
    assert kept.value == json_text(clean_json(value))[:LIMIT_BYTES]
    assert kept.size == len(json_text(clean_json(value)))


def test_a_secret_across_the_cut_is_redacted_first() -> None:
    secret = "hunter2hunter2"
    kept = bounded("x" * (LIMIT_BYTES - 14) + " password=" + secret)
    assert isinstance(kept.value, str)
    assert "hunter" not in kept.value


@given(any_text, st.integers(0, 50))
def test_a_cut_is_the_longest_start_that_fits(text: str, limit: int) -> None:
    settled = settle(text)
    kept = cut(settled, limit)
    assert settled.startswith(kept)
    assert len(kept.encode()) <= limit
    if kept != settled:
        assert len(settled[: len(kept) + 1].encode()) > limit


@given(st.text(), st.integers(2, 30))
def test_folded_text_fits_and_leaves_no_mark_without_its_base(text: str, limit: int) -> None:
    folded = fold(text, limit)
    assert len(folded) <= limit
    whole = " ".join(text.split())
    assert folded == whole or (folded.endswith("…") and whole.startswith(folded[:-1]))


def test_a_fold_does_not_cut_a_combining_sequence() -> None:
    assert fold("abe\u0301\u0301x", 5) == "ab…"


def test_a_name_is_judged_by_the_rules_in_force() -> None:
    name = "agent emp-123456"
    badge = Addition((LineRule("badge", "badge", (), (re.compile(r"emp-\d+"),)),))
    for _ in range(2):
        assert clean_name(name) == name
        with added(badge):
            assert [clean_name(name), clean_name(name)] == ["agent [redacted:badge]"] * 2
            assert clean_name("executor") == "executor"


def test_a_name_of_another_kind_of_text_becomes_plain_text() -> None:
    class Tool(StrEnum):
        LOGS = "logs.search"

    for _ in range(2):
        assert type(clean_name(Tool.LOGS)) is str
        assert type(settle(Tool.LOGS)) is str

"""No rule is skipped that would have changed the text: what is looked for beforehand is found wherever it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from attrs import frozen
from hypothesis import example, given
from hypothesis import strategies as st

from casenotes.core.redaction import RULES, Addition, FieldNames, Redaction, added, redact
from casenotes.core.redaction.hints import HintSearch, lowered

OWN_FIELDS = ("x-internal-key", "badge_number", "Quux.Zed", "kk")
EXAMPLES = re.findall(
    r"^\| `[a-z0-9-]+` \| `([^`]+)` \|",
    (Path(__file__).parents[3] / "docs/redaction.md").read_text("utf-8"),
    re.MULTILINE,
)
HINTS = sorted({hint for rule in RULES for hint in rule.hints} | set(FieldNames(frozenset(OWN_FIELDS)).hints))

few_letters = st.text(alphabet="abkz.-_: \n\\", min_size=1, max_size=5)
examples = st.sampled_from([example.replace("\\n", "\n") for example in EXAMPLES])
hints = st.sampled_from([*HINTS, *map(str.upper, HINTS), *map(str.title, HINTS)])
signs = st.sampled_from(["=", ":", '": "', '\\": \\"', "=>", " ", "\t", "\n", "\\n", "</a>"])
others = st.sampled_from(["\u017f", "\u212a", "\ud800", "é", "09:14:07"])
values = st.sampled_from(["hunter2", "Qz7aB3xyz0123456789abc", "YXBwOmh1bnRlcjI=", "1234"])
own = st.sampled_from(["X-Internal-Key: a", "badgeNumber=7", '{"quux_zed":"b"}', "KK=c"])
pieces = examples | hints | signs | others | values | own | st.text(max_size=3)
texts = st.lists(pieces, max_size=10).map("".join)


@frozen(eq=False)
class UnhurriedNames(FieldNames):
    """Names that are looked up wherever one may stand."""

    def may_say(self, name: str) -> bool:
        return True

    def may_stand_in(self, text: str) -> bool:
        return True


def each_hint_by_itself(text: str, names: FieldNames) -> str:
    """The text redacted by each rule of which it holds a hint, and by none for another reason."""
    low = lowered(text)
    holds_name = any(hint in low for hint in names.hints)
    for rule in Redaction(names=names).rules:
        names_fields = rule.name in ("field", "name-and-value", "element", "option")
        if any(hint in low for hint in rule.hints) and (holds_name or not names_fields):
            text = rule.apply(text)
    return text


@given(st.frozensets(few_letters | st.just(""), min_size=1, max_size=8), st.data())
def test_exactly_the_hints_that_a_text_holds_are_found(hints: frozenset[str], data: st.DataObject) -> None:
    parts = st.sampled_from(sorted(hints)) | few_letters
    text = "".join(data.draw(st.lists(parts, max_size=8)))
    assert HintSearch(hints).held_by(text) == {hint for hint in hints if hint in text}


@pytest.mark.parametrize("hint", HINTS)
def test_each_hint_of_a_rule_is_found_in_any_spelling(hint: str) -> None:
    search = HintSearch(frozenset(HINTS))
    for around in ("", "a", "é", "\n", hint[:-1], hint[-1]):
        assert hint in search.held_by(lowered(around + hint.upper() + around))


@given(texts)
@example('{"key": "a", "side": 1}')
@example("TOKEN=hunter2hunter2")
@example('token\\\\" \t: hunter2hunter2')
@example("\\npassword=hunter2")
@example("API key: abc")
def test_a_rule_is_tried_wherever_a_text_holds_a_hint_of_it(text: str) -> None:
    assert redact(text) == each_hint_by_itself(text, UnhurriedNames())


@given(texts)
@example("kk=1 zed.quux.zed:2")
def test_so_are_the_fields_that_a_team_adds(text: str) -> None:
    with added(Addition(fields=OWN_FIELDS)):
        assert redact(text) == each_hint_by_itself(text, UnhurriedNames(frozenset(OWN_FIELDS)))


@given(
    st.sampled_from(HINTS),
    st.integers(0, 110),
    st.sampled_from(["", '"', "\\\\'"]),
    st.sampled_from(["", " \t"]),
)
def test_a_name_is_seen_from_its_hint_to_its_sign(hint: str, more: int, quote: str, gap: str) -> None:
    text = f"a {hint}{'_' * more}1{quote}{gap}=Qz7aB3xyz0123456789abc"
    assert redact(text) == each_hint_by_itself(text, UnhurriedNames())


def test_no_secret_and_no_long_name_is_remembered() -> None:
    rules = Redaction()
    for name in ("password=hunter2", "n" * 65, "é" * 1000):
        assert rules.redact_name(name) == rules.redact_name(name) == rules.redact(name)
    assert not rules._clean_names


def test_few_of_many_names_are_remembered() -> None:
    rules = Redaction()
    for number in range(5000):
        assert rules.redact_name(f"tool-{number}") == f"tool-{number}"
    assert 0 < len(rules._clean_names) <= 1024

"""Secrets are redacted: the table, and the property that a stream is redacted like the whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casenotes.core.redaction import StreamRedaction, redact, redaction_for_key

KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("password=hunter2 ok", "password=[redacted:password] ok"),
        ("pwd=1;db=2", "pwd=[redacted:password];db=2"),
        ("secret=xx&a=b", "secret=[redacted:password]&a=b"),
        ('DB_PASSWORD: "x y"', 'DB_PASSWORD: "[redacted:password]"'),
        ('{"password":"a\\"bc","x":1}', '{"password":"[redacted:password]","x":1}'),
        ('"{\\"pwd\\":\\"abc\\"}"', '"{\\"pwd\\":\\"[redacted:password]\\"}"'),
        ("aws_secret_access_key = AAA/b", "aws_secret_access_key = [redacted:password]"),
        ("Authorization: Bearer abc.def", "Authorization: [redacted:authorization]"),
        ('curl -H "Authorization: Basic aGk6" u', 'curl -H "Authorization: [redacted:authorization]" u'),
        ('{"authorization":"0a1b2c3d4e"}', '{"authorization":"[redacted:authorization]"}'),
        ("sent Bearer abcdef12345 to", "sent Bearer [redacted:bearer-token] to"),
        ("postgres://u:p@ss/w@h/db", "postgres://u:[redacted:url-password]@h/db"),
        ("redis://:pw@h:6379/0", "redis://:[redacted:url-password]@h:6379/0"),
        ("Set-Cookie: sid=1; Path=/", "Set-Cookie: [redacted:cookie]"),
        (f"key:\n{KEY}\nend", "key:\n[redacted:private-key]\nend"),
        (KEY.partition("-----END")[0], "[redacted:private-key]"),
        ("id AKIAABCDEFGHIJKLMNOP.", "id [redacted:aws-key]."),
        ("ghp_" + "a1" * 18, "[redacted:api-key]"),
        ("sk-proj-abcdefghijklmnopqrstuv", "[redacted:api-key]"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-_", "[redacted:jwt]"),
        ("tool --password hunter2", "tool --password [redacted:password]"),
    ],
)
def test_a_secret_is_replaced_by_its_kind(text: str, redacted: str) -> None:
    assert redact(text) == redacted
    assert redact(redacted) == redacted


@pytest.mark.parametrize(
    "text",
    [
        "the secret is out",
        "SecretName: foo",
        "inputTokens: 5",
        "http://h:8080/x?e=a@b",
        "needs bearer authentication",
        "kubernetes.io/serviceaccount from kube-api-access-2vlp9 (ro)",
        "no-token-here",
        "may require authorization: server message: insufficient_scope",
        "Why is checkout slow?",
    ],
)
def test_what_is_no_secret_is_left_alone(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("dbPassword", "password"),
        ("apiKey", "api-key"),
        ("AWS_SECRET_ACCESS_KEY", "api-key"),
        ("X-Authorization", "authorization"),
        ("Set-Cookie", "cookie"),
        ("private_key", "private-key"),
        ("token", "password"),
    ],
)
def test_a_field_is_secret_by_its_name(name: str, kind: str) -> None:
    assert redaction_for_key(name) == f"[redacted:{kind}]"


@pytest.mark.parametrize("name", ["inputTokens", "secretName", "bypass", "monkey", "key", "tokenizer"])
def test_a_field_of_another_name_is_not(name: str) -> None:
    assert redaction_for_key(name) is None


lines = st.sampled_from(
    ["ok\n", "password=a b\n", KEY, KEY + "\n", "Bearer abcdefghij", "\n", "\r", "x", "-----END PRIVATE KEY-----",
     "-----BEGIN PRIVATE KEY-----\n", "-----BEGIN CERTIFICATE-----\n", "secret=", "'\"",
     "token: ", "pa\u017f\u017fword=x ",
     "cookie: a\n", "u://a:b@c "]
)  # fmt: skip


@given(st.lists(lines | st.text(max_size=5), max_size=12), st.data())
def test_a_stream_is_redacted_exactly_like_the_whole(parts: list[str], data: st.DataObject) -> None:
    whole = "".join(parts)
    stream, sent = StreamRedaction(), []
    rest = whole
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        sent.append(stream.feed(rest[:size]))
        rest = rest[size:]
    sent.append(stream.finish())
    assert "".join(sent) == redact(whole)
    assert redact(redact(whole)) == redact(whole)


def test_a_stream_lets_go_of_each_whole_line_at_once() -> None:
    stream = StreamRedaction()
    assert stream.feed("one\ntw") == "one\n"
    assert stream.feed("o\n") == "two\n"

"""Secrets are redacted: the table, and the property that a stream is redacted like the whole."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casenotes.core.redaction import (
    RULES,
    Addition,
    LineRule,
    StreamRedaction,
    added,
    redact,
    redaction_for_key,
)
from casenotes.core.text import bounded, clean_json

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
        ("aws_secret_access_key = AAA/b", "aws_secret_access_key = [redacted:api-key]"),
        ("Authorization: Bearer abc.def", "Authorization: [redacted:authorization]"),
        ('curl -H "Authorization: Basic aGk6" u', 'curl -H "Authorization: [redacted:authorization]" u'),
        ('{"authorization":"0a1b2c3d4e"}', '{"authorization":"[redacted:authorization]"}'),
        ("sent Bearer abcdef12345 to", "sent Bearer [redacted:bearer-token] to"),
        ("postgres://u:p@ss/w@h/db", "postgres://u:[redacted:url-password]@h/db"),
        ("redis://:pw@h:6379/0", "redis://:[redacted:url-password]@h:6379/0"),
        ("Set-Cookie: sid=1; Path=/", "Set-Cookie: [redacted:cookie]"),
        (f"key:\n{KEY}\nend", "key:\n[redacted:private-key]\nend"),
        (KEY.partition("-----END")[0] + "after all", "[redacted:private-key]\nafter all"),
        ("id AKIAABCDEFGHIJKLMNOP.", "id [redacted:aws-key]."),
        ("ghp_" + "a1" * 18, "[redacted:api-key]"),
        ("sk-proj-abcdefghijklmnopqrstuv", "[redacted:api-key]"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-_", "[redacted:jwt]"),
        ("tool --password hunter2", "tool --password [redacted:password]"),
        ("AWS_ACCESS_KEY_ID: ASIAABCDEFGHIJKLMNOP", "AWS_ACCESS_KEY_ID: [redacted:api-key]"),
        ('"SecretAccessKey": "wJalr/x+y=",', '"SecretAccessKey": "[redacted:api-key]",'),
        (
            '{"private_key": "-----BEGIN PRIVATE KEY-----\\nMIIE\\nab==\\n-----END PRIVATE KEY-----\\n", "n": 1}',
            '{"private_key": "[redacted:private-key]", "n": 1}',
        ),
        (
            '{"private_key": "-----BEGIN PRIVATE KEY-----\\nMIIEvQIB',
            '{"private_key": "[redacted:private-key]',
        ),
        (
            "AccountName=a;AccountKey=Zm9v+/==;EndpointSuffix=core.windows.net",
            "AccountName=a;AccountKey=[redacted:api-key];EndpointSuffix=core.windows.net",
        ),
        (
            "https://a.blob.core.windows.net/c?sv=2024-01-01&sig=aB3%2Fxyz0123456789abc%3D&se=2026",
            "https://a.blob.core.windows.net/c?sv=2024-01-01&sig=[redacted:password]&se=2026",
        ),
        ("X-Api-Key: k-123\r", "X-Api-Key: [redacted:api-key]\r"),
        ("Proxy-Authorization: Basic YTpi", "Proxy-Authorization: [redacted:authorization]"),
        ("-H 'Cookie: a=b; c=d' http://h", "-H 'Cookie: [redacted:cookie]' http://h"),
        (
            '{"x-api-key":["k1","k2"],"n":1}',
            '{"x-api-key":["[redacted:api-key]","[redacted:api-key]"],"n":1}',
        ),
        ("mongodb+srv://u:p%40ss@h/db?w=1", "mongodb+srv://u:[redacted:url-password]@h/db?w=1"),
        (
            "amqp://u:p:w@h1:5672,amqp://u:q@h2:5672",
            "amqp://u:[redacted:url-password]@h1:5672,amqp://u:[redacted:url-password]@h2:5672",
        ),
        ("redis://:8080@h", "redis://:[redacted:url-password]@h"),
        ("host=db password='a b' user=app", "host=db password='[redacted:password]' user=app"),
        (
            "jdbc:postgresql://db/pay?user=a&password=x&ssl=true",
            "jdbc:postgresql://db/pay?user=a&password=[redacted:password]&ssl=true",
        ),
        ('{"auths":{"r.io":{"auth":"dXNlcjpwYXNz"}}}', '{"auths":{"r.io":{"auth":"[redacted:password]"}}}'),
        ("Conf{user=app, password=hunter2}", "Conf{user=app, password=[redacted:password]}"),
        ("user=a,password=b,db=c", "user=a,password=[redacted:password],db=c"),
        ('{"password": 1234, "n": 1}', '{"password": "[redacted:password]", "n": 1}'),
        (
            '{"m":"{\\"password\\":\\"a\\\\\\"b\\",\\"n\\":1}"}',
            '{"m":"{\\"password\\":\\"[redacted:password]\\",\\"n\\":1}"}',
        ),
        ('{"m":"a\\npassword=x\\nb"}', '{"m":"a\\npassword=[redacted:password]\\nb"}'),
        ("- name: DB_PASSWORD\n  value: hunter2\n", "- name: DB_PASSWORD\n  value: [redacted:password]\n"),
        ("docker login -u a -p hunter2 r.io", "docker login -u a -p [redacted:password] r.io"),
        ("redis-cli -h c -a hunter2 ping", "redis-cli -h c -a [redacted:password] ping"),
        ("//npm.pkg/:_authToken=abcdef", "//npm.pkg/:_authToken=[redacted:password]"),
        ("password=[redacted:hunter2", "password=[redacted:password]"),
        ("API key: abc", "API key: [redacted:api-key]"),
        ("token: 0a1b2c3d4e5f6a7b8c9d", "token: [redacted:password]"),
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
        "token bucket is empty, tokens: 512, max_tokens=100, token=7",
        'password authentication failed for user "app"',
        "secretName: db-credentials",
        "primary key: id, foreign_key=order_id, cache_key=a:b, idempotency_key=7f",
        "image: pay@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "commit 35749ac1b29efe5f20b1f117f2010bb4cea6e4d1",
        "trace_id=4bf92f3577b34da6a3ce929d0e0e4736 id=3f2504e0-4f89-41d3-9a0c-0305e82c3301",
        "payment-7d9f8c6b5d-x2x9k 1/1 Running",
        "syntax error: unexpected token: else",
        "DB_PASSWORD:  <set to the key 'password' in secret 'db'>  Optional: false",
        "password:  8 bytes",
        '{"password":null,"token":"","has_password":true}',
        "password: ${DB_PASSWORD}",
        "PWD=/srv/app",
        'msg="wrong password:" user=app',
        "auth: enabled, auth=scram-sha-256, sig: 9",
        "nextPageToken: abc",
        "mkdir -p /srv && tar -u x",
        "http://10.0.0.1:8080/a@b and http://h:80",
        "Basic understanding of bearer tokens",
        "invalid cookie: expired",
        "bypass=1 monkey=2 tokenizer=bpe",
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


def test_json_text_stays_json_of_the_same_shape() -> None:
    given = {
        "password": ["a\\", 'b"c'],
        "inner": json.dumps({"api_key": 'x\\"y', "deep": json.dumps({"secret": '"q"', "n": 1})}),
        "env": [{"name": "DB_PASSWORD", "value": "hunter2"}],
        "pin": {"passphrase": 12345, "none": None},
    }
    redacted = json.loads(redact(json.dumps(given)))
    inner = json.loads(redacted["inner"])
    assert redacted["password"] == ["[redacted:password]"] * 2
    assert inner["api_key"] == "[redacted:api-key]"
    assert json.loads(inner["deep"]) == {"secret": "[redacted:password]", "n": 1}
    assert redacted["env"] == [{"name": "DB_PASSWORD", "value": "[redacted:password]"}]
    assert redacted["pin"] == {"passphrase": "[redacted:password]", "none": None}


@given(st.text(min_size=1), st.integers(0, 3))
def test_a_password_in_json_at_any_depth_goes_as_a_whole(password: str, depth: int) -> None:
    secret = f"Qz7{password}7zQ"
    text = json.dumps({"password": secret, "n": 1})
    for _ in range(depth):
        text = json.dumps({"m": text})
    redacted = json.loads(redact(text))
    for _ in range(depth):
        redacted = json.loads(redacted["m"])
    assert redacted == {"password": "[redacted:password]", "n": 1}


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"password": ["a", {"user": "u"}]}, {"password": ["[redacted:password]", {"user": "u"}]}),
        ({"name": "DB_PASSWORD", "value": "x"}, {"name": "DB_PASSWORD", "value": "[redacted:password]"}),
        ({"name": "LOG_LEVEL", "value": "x"}, {"name": "LOG_LEVEL", "value": "x"}),
        (
            {"kind": "Secret", "data": {"a": "eA==", "b": ""}},
            {"kind": "Secret", "data": {"a": "[redacted:password]", "b": ""}},
        ),
        ({"auth": "dXNlcjpwYXNz", "token": 512}, {"auth": "[redacted:password]", "token": 512}),
        ({"auth": "none", "password": "${DB_PASSWORD}"}, {"auth": "none", "password": "${DB_PASSWORD}"}),
    ],
)  # fmt: skip
def test_an_object_keeps_its_shape(given: object, kept: object) -> None:
    assert clean_json(given) == kept
    assert clean_json(kept) == kept


def test_the_size_of_an_object_is_that_before_redaction() -> None:
    given = {"password": "x" * 1000, "n": 1}
    kept = bounded(given)
    assert kept.value == {"password": "[redacted:password]", "n": 1}
    assert (kept.size, kept.truncated) == (len(json.dumps(given, separators=(",", ":"))), False)


def test_added_rules_hold_while_they_are_needed_and_no_longer() -> None:
    first = Addition((LineRule("badge", "badge", (), (re.compile(r"B-\d+"),)),), ("x-internal-key",))
    second = Addition((LineRule("door", "door", (), (re.compile(r"door (?P<secret>\d+)"),)),))
    text = 'B-12 door 34 X-Internal-Key: abc {"xInternalKey":"d"}'
    with added(first):
        with added(second):
            everything = redact(text)
        assert redact(text).startswith("[redacted:badge] door 34 X-Internal-Key: [redacted:field] {")
        assert redaction_for_key("xInternalKey") == "[redacted:field]"
    assert everything == (
        '[redacted:badge] door [redacted:door] X-Internal-Key: [redacted:field] {"xInternalKey":"[redacted:field]"}'
    )
    assert redact(text) == text


def test_an_added_pattern_does_not_look_into_marks() -> None:
    with added(Addition((LineRule("word", "word", (), (re.compile(r"\w+"),)),))):
        once = redact("password=hunter2 ok\nok")
        assert once == "[redacted:word]=[redacted:password] [redacted:word]\n[redacted:word]"
        assert redact(once) == once


DOCUMENTED = re.findall(
    r"^\| `([a-z0-9-]+)` \| `([^`]+)` \| `([^`]+)` \|$",
    (Path(__file__).parents[3] / "docs/redaction.md").read_text("utf-8"),
    re.MULTILINE,
)


def test_every_rule_is_documented_in_its_order() -> None:
    assert [name for name, _, _ in DOCUMENTED] == [rule.name for rule in RULES]


@pytest.mark.parametrize(("name", "example", "becomes"), DOCUMENTED)
def test_the_example_of_a_rule_is_found_by_that_rule(name: str, example: str, becomes: str) -> None:
    text = example.replace("\\n", "\n")
    rule = next(rule for rule in RULES if rule.name == name)
    assert rule.apply(text) == becomes
    assert redact(text) == becomes


@pytest.mark.parametrize("name", ["inputTokens", "secretName", "bypass", "monkey", "key", "tokenizer"])
def test_a_field_of_another_name_is_not(name: str) -> None:
    assert redaction_for_key(name) is None


lines = st.sampled_from(
    ["ok\n", "password=a b\n", KEY, KEY + "\n", "Bearer abcdefghij", "\n", "\r", "x", "-----END PRIVATE KEY-----",
     "-----BEGIN PRIVATE KEY-----\n", "-----BEGIN CERTIFICATE-----\n", "secret=", "'\"",
     "token: ", "name: api_key\n", "value: x\n", "- value: y", "pa\u017f\u017fword=x ",
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

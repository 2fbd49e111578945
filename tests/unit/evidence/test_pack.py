"""An incident pack: what it answers, and how it refuses what is malformed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from casenotes.adapters.evidence import load_pack, read_incident, shipped_pack
from casenotes.core.errors import InvalidEvidence
from casenotes.core.text import Json, JsonObject, bounded
from casenotes.ports.agent import ALERTS_TOOL, RUNBOOK_TOOL, Lookup, Observation, ObservationStatus

HEAD: JsonObject = {
    "id": "one",
    "source": "test",
    "question": "Why?",
    "alerts": [{"labels": {"alertname": "DiskFull"}, "annotations": {}}],
    "facts": [{"text": "the disk is full", "terms": ["disk", "full|no space"]}],
}


def write(path: Path, value: Json) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))


def pack(root: Path, files: dict[str, Json] | None = None) -> Path:
    for name, value in {"incident.json": HEAD, **(files or {})}.items():
        write(root / name, value)
    return root


def recording(tool: str, arguments: JsonObject, result: Json, status: str = "success") -> JsonObject:
    return {"tool": tool, "arguments": arguments, "status": status, "invocation": "x", "result": result}


def matrix(*values: tuple[float, str]) -> JsonObject:
    samples: list[Json] = [[time, value] for time, value in values]
    series: JsonObject = {"metric": {"pod": "a"}, "values": samples}
    return {"status": "success", "data": {"resultType": "matrix", "result": [series]}}


def look(root: Path, tool: str, arguments: JsonObject | None = None) -> Observation:
    return asyncio.run(load_pack(root).look(Lookup(tool, arguments or {})))


def offer(root: Path) -> list[Lookup]:
    return list(asyncio.run(load_pack(root).offer()))


def test_a_recorded_call_answers_under_its_tool_and_exact_arguments(tmp_path: Path) -> None:
    pack(tmp_path, {"observations/1.json": recording("describe", {"name": "a"}, "text")})
    assert Lookup("describe", {"name": "a"}) in offer(tmp_path)
    assert look(tmp_path, "describe", {"name": "a"}) == Observation(ObservationStatus.SUCCESS, "text")
    assert look(tmp_path, "describe", {"name": "b"}).status is ObservationStatus.NO_DATA
    assert look(tmp_path, "describe", {"name": "a", "more": 1}).status is ObservationStatus.NO_DATA


def test_nothing_recorded_twice_under_one_call_is_out_of_reach(tmp_path: Path) -> None:
    files: dict[str, Json] = {
        "observations/1.json": recording("logs", {"pod": "a"}, "now"),
        "observations/2.json": recording("logs", {"pod": "a"}, "before"),
        "observations/3.json": recording("logs", {"pod": "a"}, "before"),
        "observations/4.json": recording("logs", {"pod": "a"}, "gone", "error"),
    }
    pack(tmp_path, files)
    seen = [
        look(tmp_path, lookup.tool, lookup.arguments) for lookup in offer(tmp_path) if lookup.tool == "logs"
    ]
    assert [(each.status.value, each.result) for each in seen] == [
        ("success", "now"),
        ("success", "before"),
        ("error", "gone"),
    ]


def test_a_recorded_failure_keeps_its_text(tmp_path: Path) -> None:
    pack(tmp_path, {"observations/1.json": recording("top", {}, "error: no metrics\nmore", "error")})
    assert look(tmp_path, "top") == Observation(
        ObservationStatus.ERROR, "error: no metrics\nmore", "error: no metrics"
    )


@pytest.mark.parametrize("result", [None, "", [], {}])
def test_an_empty_success_is_no_data(tmp_path: Path, result: Json) -> None:
    pack(tmp_path, {"observations/1.json": recording("changes", {}, result)})
    assert look(tmp_path, "changes").status is ObservationStatus.NO_DATA


def test_alerts_are_read_and_facts_are_not(tmp_path: Path) -> None:
    pack(tmp_path)
    assert look(tmp_path, ALERTS_TOOL).result == HEAD["alerts"]
    seen = json.dumps([look(tmp_path, lookup.tool, lookup.arguments).result for lookup in offer(tmp_path)])
    assert "the disk is full" not in seen
    assert "no space" not in seen


def test_a_metric_answers_by_its_file_name(tmp_path: Path) -> None:
    answer = matrix((1.0, "2"), (2.0, "NaN"))
    pack(tmp_path, {"metrics/disk_used_bytes.json": answer})
    assert look(tmp_path, "metrics.query_range", {"metric": "disk_used_bytes"}).result == answer
    assert look(tmp_path, "metrics.query_range", {"metric": "other"}).status is ObservationStatus.NO_DATA


def test_a_long_answer_of_metrics_is_reduced_to_what_the_record_keeps_and_says_so(tmp_path: Path) -> None:
    answer = matrix(*((float(at), "1") for at in range(9000)))
    pack(tmp_path, {"metrics/disk_used_bytes.json": answer})
    seen = look(tmp_path, "metrics.query_range", {"metric": "disk_used_bytes"})
    assert not bounded(seen.result).truncated
    assert seen.left_out == "one of every 3 points kept"


def test_logs_are_searched_by_service_file_and_words(tmp_path: Path) -> None:
    lines = '{"service": "pay", "message": "Refused"}\n{"service": "cart", "message": "ok"}\n'
    pack(tmp_path, {"logs/shop.jsonl": lines, "logs/plain.log": "one\n\ntwo\n"})
    offered = [lookup.arguments for lookup in offer(tmp_path) if lookup.tool == "logs.search"]
    assert offered == [{"service": "pay"}, {"service": "cart"}, {"file": "plain"}]
    assert look(tmp_path, "logs.search", {"file": "plain"}).result == "one\ntwo"
    assert (
        look(tmp_path, "logs.search", {"service": "pay", "contains": "refused"}).status
        is ObservationStatus.SUCCESS
    )
    assert (
        look(tmp_path, "logs.search", {"service": "cart", "contains": "x"}).status
        is ObservationStatus.NO_DATA
    )
    assert look(tmp_path, "logs.search", {"contains": "x"}).status is ObservationStatus.ERROR


def test_a_long_log_keeps_its_latest_lines_and_says_what_it_leaves_out(tmp_path: Path) -> None:
    pack(tmp_path, {"logs/long.log": "".join(f"line {number}\n" for number in range(20_000))})
    result = look(tmp_path, "logs.search", {"file": "long"}).result
    assert isinstance(result, str)
    assert len(result) < 50 * 1024
    assert result.endswith("line 19999")
    left_out = int(result.split()[0].removeprefix("("))
    assert result.splitlines()[1] == f"line {left_out}"
    assert (
        look(tmp_path, "logs.search", {"file": "long", "contains": "line 7"}).status
        is ObservationStatus.SUCCESS
    )


def test_a_runbook_is_found_by_alert_or_by_words(tmp_path: Path) -> None:
    pack(tmp_path, {"runbooks/DiskFull.md": "# Disk full\n\n## Meaning\n\nThe volume has no space.\n"})
    assert str(look(tmp_path, RUNBOOK_TOOL, {"alertname": "diskfull"}).result).startswith("# Disk full")
    assert look(tmp_path, RUNBOOK_TOOL, {"text": "volume without space"}).status is ObservationStatus.SUCCESS
    for miss in ({"alertname": "Other"}, {"text": "what is the capital of France"}, {}):
        assert look(tmp_path, RUNBOOK_TOOL, dict(miss)) == Observation(ObservationStatus.NO_DATA, None)


def test_an_unknown_tool_is_an_error(tmp_path: Path) -> None:
    assert look(pack(tmp_path), "nothing").status is ObservationStatus.ERROR


MALFORMED: list[tuple[dict[str, Json], str]] = [
    ({"incident.json": "{"}, "incident.json: not strict JSON"),
    ({"incident.json": '{"id": NaN}'}, "incident.json: not strict JSON"),
    ({"incident.json": "[" * 100_000}, "incident.json: not strict JSON"),
    ({"incident.json": []}, "incident.json: must be an object"),
    ({"incident.json": {**HEAD, "question": " "}}, "incident.json: question: must be text"),
    ({"incident.json": {**HEAD, "alerts": None}}, "incident.json: alerts: must be an array"),
    ({"incident.json": {**HEAD, "alerts": [{}]}}, "incident.json: alerts[0].labels: must be an object"),
    (
        {"incident.json": {**HEAD, "alerts": [{"labels": {"alertname": 3}}]}},
        "incident.json: alerts[0].labels.alertname: must be text",
    ),
    (
        {"incident.json": {**HEAD, "facts": [{"text": "a", "terms": [1]}]}},
        "incident.json: facts[0].terms[0]: must be text",
    ),
    ({"observations/1.json": recording("", {}, "x")}, "observations/1.json: tool: must be text"),
    (
        {"observations/1.json": {"tool": "a", "arguments": [], "status": "success", "result": 1}},
        "observations/1.json: arguments: must be an object",
    ),
    ({"observations/1.json": recording("a", {}, "x", "fine")}, "observations/1.json: status: must be one of"),
    (
        {"observations/1.json": {"tool": "a", "arguments": {}, "status": "success"}},
        "observations/1.json: result: missing",
    ),
    ({"metrics/m.json": {"status": "error"}}, "metrics/m.json: status: must be"),
    (
        {"metrics/m.json": {"status": "success", "data": {"resultType": "vector", "result": []}}},
        "metrics/m.json: data.resultType: must be",
    ),
    ({"metrics/m.json": matrix((1.0, "two"))}, "metrics/m.json: data.result[0].values[0]: must be"),
    ({"observations/1.json": recording("alerts.firing", {}, [])}, "observations/1.json: tool: must not be"),
    ({"observations": "a file"}, "observations: must be a folder"),
]


@pytest.mark.parametrize(("files", "message"), MALFORMED)
def test_a_malformed_pack_names_file_and_field(tmp_path: Path, files: dict[str, Json], message: str) -> None:
    pack(tmp_path, files)
    with pytest.raises(InvalidEvidence) as refused:
        load_pack(tmp_path)
    assert str(refused.value).startswith(message)
    assert refused.value.__cause__ is None


def test_a_missing_head_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidEvidence, match=r"^incident\.json: missing$"):
        load_pack(tmp_path / "nowhere")


def test_a_refusal_never_quotes_the_file(tmp_path: Path) -> None:
    pack(tmp_path, {"observations/1.json": '{"token": "s3cret" oops'})
    with pytest.raises(InvalidEvidence) as refused:
        load_pack(tmp_path)
    assert "s3cret" not in str(refused.value)


def escape_by_file(root: Path, outside: Path) -> None:
    (root / "observations").mkdir()
    (root / "observations/1.json").symlink_to(outside)


def escape_by_loop(root: Path, outside: Path) -> None:
    (root / "logs").mkdir()
    (root / "logs/a.log").symlink_to(root / "logs/a.log")


def escape_by_folder(root: Path, outside: Path) -> None:
    (root / "logs").symlink_to(outside.parent)


@pytest.mark.parametrize("escape", [escape_by_file, escape_by_folder, escape_by_loop])
def test_a_pack_cannot_lead_out_of_its_folder(tmp_path: Path, escape: Callable[[Path, Path], None]) -> None:
    outside = tmp_path / "outside" / "1.json"
    write(outside, recording("a", {}, "x"))
    root = pack(tmp_path / "pack")
    escape(root, outside)
    with pytest.raises(InvalidEvidence, match=r"leads out of the pack|cannot be read"):
        load_pack(root)


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    pack(tmp_path, {"logs/a.log": "x" * (2 * 1024 * 1024 + 1)})
    with pytest.raises(InvalidEvidence, match=r"^logs/a\.log: larger than"):
        load_pack(tmp_path)


def test_the_shipped_pack_is_sound() -> None:
    offered = asyncio.run(shipped_pack().offer())
    assert {ALERTS_TOOL, RUNBOOK_TOOL, "metrics.query_range", "logs.search"} <= {
        each.tool for each in offered
    }
    assert len(offered) == len({(each.tool, json.dumps(each.arguments)) for each in offered})


def test_a_fact_is_stated_when_every_term_is_there(tmp_path: Path) -> None:
    (fact,) = read_incident(pack(tmp_path)).facts
    assert fact.stated_in("The DISK has No Space left")
    assert not fact.stated_in("The volume has no space left")

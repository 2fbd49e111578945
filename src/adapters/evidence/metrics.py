"""Recorded metrics: Prometheus ``query_range`` answers, by metric name."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from casenotes.adapters.evidence.files import JsonFile
from casenotes.adapters.evidence.recorded import unknown_tool
from casenotes.adapters.evidence.reducing import MAX_BYTES, reduced_matrix
from casenotes.core.text import Json, JsonObject, json_text
from casenotes.ports.agent import Lookup, Observation, ObservationStatus

METRICS_TOOL = "metrics.query_range"


class MetricsSource:
    """``metrics.query_range {"metric": name}`` answers with the recorded matrix, as Prometheus gave it."""

    tools = frozenset({METRICS_TOOL})

    def __init__(self, answers: Mapping[str, JsonObject]) -> None:
        self._answers = dict(answers)

    async def offer(self) -> Sequence[Lookup]:
        """One lookup a metric."""
        return tuple(Lookup(METRICS_TOOL, {"metric": metric}) for metric in self._answers)

    async def look(self, lookup: Lookup) -> Observation:
        """The matrix of the metric; no series in it is "no data"."""
        if lookup.tool != METRICS_TOOL:
            return unknown_tool(lookup)
        metric = lookup.arguments.get("metric")
        answer = self._answers.get(metric) if isinstance(metric, str) else None
        if answer is None or set(lookup.arguments) != {"metric"}:
            return Observation(ObservationStatus.NO_DATA)
        data = answer["data"]
        assert isinstance(data, dict)
        series = data["result"]
        if series == []:
            return Observation(ObservationStatus.NO_DATA, answer)
        if not isinstance(series, list) or len(json_text(answer).encode()) <= MAX_BYTES:
            return Observation(ObservationStatus.SUCCESS, answer)
        kept, said = reduced_matrix([item for item in series if isinstance(item, dict)])
        left_out = "; ".join(said)
        less: JsonObject = {**answer, "data": {**data, "result": list(kept)}, "leftOut": left_out}
        return Observation(ObservationStatus.SUCCESS, less, left_out=left_out)


def matrices(files: Iterable[JsonFile]) -> dict[str, JsonObject]:
    """The answers by metric, named for their files. Raises ``InvalidEvidence``."""
    return {PurePosixPath(file.name).stem: _matrix(file) for file in files}


def _matrix(file: JsonFile) -> JsonObject:
    answer = file.object(file.value)
    if answer.get("status") != "success":
        raise file.fail("status", 'must be "success"')
    data = file.object(answer.get("data"), "data")
    if data.get("resultType") != "matrix":
        raise file.fail("data.resultType", 'must be "matrix"')
    for index, item in enumerate(file.array(data.get("result"), "data.result")):
        where = f"data.result[{index}]"
        series = file.object(item, where)
        for label, value in file.object(series.get("metric"), f"{where}.metric").items():
            if not isinstance(value, str):
                raise file.fail(f"{where}.metric.{label}", "must be text")
        for at, sample in enumerate(file.array(series.get("values"), f"{where}.values")):
            _check_sample(file, sample, f"{where}.values[{at}]")
    return answer


def _check_sample(file: JsonFile, sample: Json, where: str) -> None:
    match sample:
        case [int() | float() as time, str() as value] if math.isfinite(time) and _is_number(value):
            return
    raise file.fail(where, "must be [seconds, number as text]")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True

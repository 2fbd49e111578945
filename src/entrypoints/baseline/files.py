"""The JSON files of baselines: read whole, written whole or not at all."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import cast

from casenotes.core.baseline.expectations import Expectation, expectations_from
from casenotes.core.baseline.reading import report_from
from casenotes.core.baseline.report import BaselineReport, InvalidBaseline
from casenotes.core.errors import InvalidInput
from casenotes.core.text import Json

MAX_BYTES = 64 * 1024 * 1024


def read_report(path: Path) -> BaselineReport:
    """The baseline in this file. Raises ``InvalidBaseline`` naming file and field."""
    try:
        return report_from(_read(path))
    except InvalidBaseline as error:
        raise InvalidBaseline(f"{path}: {error}") from None


def read_expectations(path: Path) -> tuple[Expectation, ...]:
    """The expectations in this file. Raises ``InvalidBaseline`` naming file and field."""
    try:
        return expectations_from(_read(path))
    except InvalidBaseline as error:
        raise InvalidBaseline(f"{path}: {error}") from None


def _read(path: Path) -> Json:
    try:
        with path.open("rb") as opened:
            content = opened.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise InvalidBaseline("there is no such file") from None
    except OSError:
        raise InvalidBaseline("cannot be read") from None
    if len(content) > MAX_BYTES:
        raise InvalidBaseline(f"larger than {MAX_BYTES} bytes")
    try:
        return cast(Json, json.loads(content.decode("utf-8"), parse_constant=_refuse))
    except (ValueError, RecursionError):
        raise InvalidBaseline("not strict JSON in UTF-8") from None


def _refuse(constant: str) -> Json:
    raise ValueError(constant)


def write_report(path: Path, report: BaselineReport) -> None:
    """Write the file, or leave what was there. Raises ``InvalidInput`` naming ``--out``."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("w", encoding="utf-8") as opened:
            json.dump(report.as_json(), opened, ensure_ascii=False, indent=1, allow_nan=False)
            opened.write("\n")
            opened.flush()
            os.fsync(opened.fileno())
        beside.replace(path)
    except OSError:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise InvalidInput("--out", f"{path} cannot be written") from None

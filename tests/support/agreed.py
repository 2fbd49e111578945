"""Holds answers to the contract that ships with the service."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from casenotes.entrypoints.http.pages import CONTRACT

_ROOT = "urn:contract"


@cache
def contract() -> dict[str, Any]:
    document = json.loads(CONTRACT.read_text("utf-8"))
    assert isinstance(document, dict)
    return document


@cache
def _registry() -> Registry[Any]:
    registry: Registry[Any] = Registry().with_resource(_ROOT, DRAFT202012.create_resource(contract()))
    return registry


def check_answer(method: str, path: str, status: int, content_type: str, body: object) -> None:
    """Fail unless the contract knows this answer of this path (still encoded), to the last field.

    Paths and methods that the contract does not have may only be refused.
    """
    operation = _operation(method.lower(), path)
    if operation is None:
        assert status in (400, 401, 404, 405, 429), f"{method} {path} is not in the contract"
        return
    answer = operation["responses"].get(str(status))
    assert answer is not None, f"{method} {path}: {status} is not in the contract"
    if "$ref" in answer:
        answer = contract()["components"]["responses"][answer["$ref"].rpartition("/")[2]]
    media = answer["content"].get(content_type)
    assert media is not None, f"{method} {path}: {content_type} is not in the contract"
    check(media["schema"], body)


def check(schema: dict[str, Any], value: object) -> None:
    """Fail unless the value is as this schema of the contract says."""
    rooted = json.loads(json.dumps(schema).replace('"#/', f'"{_ROOT}#/'))
    validator = Draft202012Validator(rooted, registry=_registry())
    wrong = sorted(validator.iter_errors(value), key=lambda error: error.json_path)
    assert not wrong, "; ".join(f"{error.json_path}: {error.message}" for error in wrong[:5])


def check_stream_event(value: object) -> None:
    """Fail unless the value is the data of one event of a stream."""
    check({"$ref": "#/components/schemas/StreamEvent"}, value)


def _operation(method: str, path: str) -> dict[str, Any] | None:
    for template, operations in contract()["paths"].items():
        pattern = "/".join(
            "[^/]+" if part.startswith("{") else re.escape(part) for part in template.split("/")
        )
        if re.fullmatch(pattern, path.partition("?")[0]) and method in operations:
            found = operations[method]
            assert isinstance(found, dict)
            return found
    return None

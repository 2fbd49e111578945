"""schemathesis asks the running service whatever the OpenAPI description allows, and what it does not allow."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.http import Client, client_of
from support.process import SERVE, TESTS, service_process
from support.service import Backend

SETTINGS = Path(__file__).with_name("schemathesis.toml")
SESSIONS = ("s-1", "s-2", "é文:@+=~._-")
DOOMED = tuple(f"doomed-{number}" for number in range(40))


async def seed(url: str) -> dict[str, list[str]]:
    """Sessions and runs of every kind; what they are called."""
    async with client_of(url) as client:
        runs = [run_id for session_id in SESSIONS for run_id in await _runs_of(client, session_id)]
        for session_id in DOOMED:
            await client.ask("anything new?", session_id)
    return {"sessions": list(SESSIONS), "runs": runs, "doomed": list(DOOMED)}


async def _runs_of(client: Client, session_id: str) -> list[str]:
    for question in ("anything new?", "Why is checkout slow?"):
        assert (await client.ask(question, session_id))["success"]
    assert (await client.rate(session_id)).status == 200
    await client.stream("/api/ai_ops", {"sessionId": session_id})
    return [run["runId"] for run in (await client.runs(session_id)).data]


def holds(backend: Backend, folder: Path, *budget: str) -> None:
    """Let schemathesis ask a service over this backend, and fail with what it found."""
    stores = {"database_url": backend.settings.database_url, "context_url": backend.settings.context_url}
    with service_process(folder, SERVE, **stores) as service:
        known = asyncio.run(seed(service.url))
        settings = folder / "schemathesis.toml"
        dictionaries = [f"[dictionaries.{name}]\nvalues = {json.dumps(ids)}" for name, ids in known.items()]
        settings.write_text("\n".join([SETTINGS.read_text("utf-8"), *dictionaries]), "utf-8")
        command: list[str | Path] = [
            Path(sys.executable).with_name("schemathesis"),
            "--config-file",
            settings,
            "run",
        ]
        asked = subprocess.run(
            [*command, f"{service.url}/api/openapi.json", *budget],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(TESTS), "PYTHONIOENCODING": "utf-8"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
        )
        assert asked.returncode == 0, asked.stdout
        print(asked.stdout)
        assert '"event": "fault"' not in service.log


@pytest.mark.parametrize("backend", ["sqlite", "postgres"], indirect=True)
def test_no_request_makes_the_service_break_its_contract(backend: Backend, tmp_path: Path) -> None:
    holds(backend, tmp_path, "--max-examples", "8", "--seed", "1", "--generation-deterministic")


@pytest.mark.long
@pytest.mark.parametrize("backend", ["sqlite", "postgres"], indirect=True)
def test_none_of_very_many_requests_makes_the_service_break_its_contract(
    backend: Backend, tmp_path: Path
) -> None:
    holds(backend, tmp_path, "--max-examples", "300")

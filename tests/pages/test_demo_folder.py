"""The scripts of ``demo/`` work, and ask for exactly the runs that they caused."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from support.background import in_background
from support.service import Backend

DEMO = Path(__file__).parents[2] / "demo"
KEY = "k-1"


@pytest.mark.parametrize("command", [("sh", str(DEMO / "demo.sh")), (sys.executable, str(DEMO / "demo.py"))])
def test_a_client_passes_the_run_id_on(memory: Backend, command: tuple[str, ...]) -> None:
    if command[0] == "sh" and not shutil.which("curl"):
        pytest.skip("no curl")
    with in_background(memory, key=KEY, api_keys=frozenset({KEY})) as service:
        done = subprocess.run(
            [*command, service.url],
            env={"PATH": "/usr/bin:/bin", "CASENOTES_API_KEY": KEY},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        pages = re.findall(rf"page +({re.escape(service.url)}\S+)", done.stdout)
        client = service.here.client
        found = []
        for page in pages:
            query = parse_qs(urlsplit(page).query)
            trace = service.wait_for(client.trace(query["sessionId"][0], query["runId"][0])).data
            found.append((trace["run"]["agentFlow"], trace["run"]["query"], trace["feedback"] is not None))
        assert found[0] == ("STATE_GRAPH", "Why is checkout slow?", True)
        assert found[-1][0] == "AI_OPS"

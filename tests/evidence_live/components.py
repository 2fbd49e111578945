"""The real Prometheus, Alertmanager and node exporter, on loopback ports of a test's own, with one rule that fires."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

ALERT = "ShopQueueLong"
EXPRESSION = "shop_queue_length > 10"
PATIENCE = 60

_RULES = f"""
groups:
  - name: shop
    rules:
      - alert: {ALERT}
        expr: {EXPRESSION}
        labels: {{severity: page}}
        annotations: {{description: orders wait too long}}
"""
_PROMETHEUS = """
global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}
rule_files: [{folder}/rules.yml]
alerting: {{alertmanagers: [{{static_configs: [{{targets: ['127.0.0.1:{alertmanager}']}}]}}]}}
scrape_configs:
  - job_name: shop
    static_configs: [{{targets: ['127.0.0.1:{exporter}']}}]
"""
_ALERTMANAGER = """
route: {{receiver: casenotes, group_by: [alertname], group_wait: 0s, group_interval: 1s, repeat_interval: 1s}}
receivers:
  - name: casenotes
    webhook_configs: [{{url: '{webhook}', send_resolved: true}}]
"""


def find(program: str) -> str:
    """The path of a program of Debian's; without it the test is skipped, or fails where ``CI`` is set."""
    found = shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if found is None:
        how = f"no {program}: apt-get install {program}"
        if os.environ.get("CI"):
            pytest.fail(how)
        pytest.skip(how)
    return found


@frozen
class Monitoring:
    """What is running, and how long the queue is said to be."""

    prometheus: str
    alertmanager: str
    folder: Path

    def set_queue(self, length: int) -> None:
        """Change what the exporter exposes, in one step."""
        fresh = self.folder / "textfile" / "shop.new"
        fresh.write_text(f"shop_queue_length {length}\n")
        fresh.rename(self.folder / "textfile" / "shop.prom")

    def value(self, query: str) -> str | None:
        """What Prometheus answers to a query of one value."""
        result = _fetch(f"{self.prometheus}/api/v1/query?query={query}")["data"]["result"]
        return str(result[0]["value"][1]) if result else None

    def alerts(self) -> list[Any]:
        """What Alertmanager holds."""
        answer: list[Any] = _fetch(f"{self.alertmanager}/api/v2/alerts")
        return answer

    def wait_until_it_fires(self) -> None:
        """Return once Alertmanager has the alert."""
        until(lambda: bool(self.alerts()))


@contextmanager
def monitoring(folder: Path, queue: int, webhook: str = "http://127.0.0.1:9/") -> Iterator[Monitoring]:
    """Start them; they are gone when the block is left."""
    programs = [find(name) for name in ("prometheus", "prometheus-alertmanager", "prometheus-node-exporter")]
    prometheus, alertmanager, exporter = _free_ports(3)
    (folder / "textfile").mkdir()
    here = Monitoring(f"http://127.0.0.1:{prometheus}", f"http://127.0.0.1:{alertmanager}", folder)
    here.set_queue(queue)
    (folder / "rules.yml").write_text(_RULES)
    (folder / "prometheus.yml").write_text(
        _PROMETHEUS.format(folder=folder, alertmanager=alertmanager, exporter=exporter)
    )
    (folder / "alertmanager.yml").write_text(_ALERTMANAGER.format(webhook=webhook))
    commands = [
        [
            programs[0],
            f"--config.file={folder}/prometheus.yml",
            f"--storage.tsdb.path={folder}/tsdb",
            f"--web.listen-address=127.0.0.1:{prometheus}",
        ],
        [
            programs[1],
            f"--config.file={folder}/alertmanager.yml",
            f"--storage.path={folder}/alertmanager",
            f"--web.listen-address=127.0.0.1:{alertmanager}",
            "--cluster.listen-address=",
        ],
        [
            programs[2],
            f"--web.listen-address=127.0.0.1:{exporter}",
            "--collector.disable-defaults",
            "--collector.textfile",
            f"--collector.textfile.directory={folder}/textfile",
        ],
    ]
    with ExitStack() as stack:
        for command in commands:
            stack.enter_context(_running(command, folder))
        until(lambda: here.value("shop_queue_length") is not None, folder)
        yield here


@contextmanager
def _running(command: list[str], folder: Path) -> Iterator[None]:
    log = folder / f"{Path(command[0]).name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd=folder)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(20)


def until(holds: Callable[[], bool], folder: Path | None = None) -> None:
    """Return once it holds; a server that is not up yet answers nothing."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            if holds():
                return
        except OSError:
            pass
        time.sleep(0.1)
    logs = (
        []
        if folder is None
        else [path.read_text("utf-8", "replace")[-2000:] for path in folder.glob("*.log")]
    )
    raise RuntimeError("\n".join(["it did not come to be", *logs]))


def _fetch(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]

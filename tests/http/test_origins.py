"""What a browser may be made to ask of the service by somebody else's page."""

from __future__ import annotations

import pytest
from support.service import Backend, Running

from casenotes.entrypoints.settings import Settings

KEYS = frozenset({"k-one"})
ASKED = (
    ("POST", "/api/ai_ops"),
    ("POST", "/api/chat"),
    ("DELETE", "/api/chat/session/s-1"),
    ("GET", "/api/sessions"),
    ("GET", "/%61pi/sessions"),
)


async def refused(here: Running, name: str, **headers: str) -> None:
    """Each of what a page could ask for is refused by the name of a header, and starts nothing."""
    for method, path in ASKED:
        reply = await here.client.send(method, path, headers=headers)
        assert (reply.status, reply.message.partition(":")[0]) == (400, name), (path, headers)
    assert not here.service.executions.running()
    assert (await here.client.get("/api/sessions")).data == []


async def answered(here: Running, **headers: str) -> None:
    assert (await here.client.get("/api/sessions", **headers)).status == 200
    reply = await here.client.post("/api/chat/clear", {"sessionId": "s-1"}, headers=headers)
    assert reply.status == 404, headers


def authority(here: Running) -> str:
    return here.client.url.removeprefix("http://")


def test_another_pages_requests_are_refused(memory: Backend) -> None:
    async def scenario(here: Running) -> None:
        ours = here.client.url
        await refused(here, "Sec-Fetch-Site", **{"Sec-Fetch-Site": "cross-site"})
        await refused(here, "Sec-Fetch-Site", **{"Sec-Fetch-Site": "same-site"})
        await refused(here, "Sec-Fetch-Site", **{"Sec-Fetch-Site": "cross-site", "Origin": ours})
        for origin in (
            "https://evil.invalid",
            "null",
            "",
            "http://127.0.0.1:1",
            "http://localhost",
            f"{ours}@e",
        ):
            await refused(here, "Origin", Origin=origin)
        await refused(here, "Origin", Origin=ours.replace("http", "chrome-extension"))

    memory.run(scenario)
    memory.run(scenario, key="k-one", api_keys=KEYS)


def test_its_own_pages_the_address_bar_and_clients_that_are_no_browsers_are_answered(memory: Backend) -> None:
    async def scenario(here: Running) -> None:
        await answered(here)
        await answered(here, **{"Sec-Fetch-Site": "none"})
        await answered(here, **{"Sec-Fetch-Site": "same-origin", "Origin": here.client.url})
        await answered(here, Origin=here.client.url)
        await answered(here, Origin=here.client.url.replace("http:", "https:"))  # a proxy may end TLS

    memory.run(scenario)


def test_a_link_from_elsewhere_leads_to_the_pages(memory: Backend) -> None:
    async def scenario(here: Running) -> None:
        for path in ("/", "/trace?sessionId=s-1", "/cases"):
            reply = await here.client.get(
                path, **{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
            )
            assert reply.status == 200

    memory.run(scenario)


def test_behind_a_proxy_pages_go_by_its_public_name(memory: Backend) -> None:
    async def scenario(here: Running) -> None:
        public = "https://notes.example.org"
        await answered(here, Host="notes.example.org", Origin=public)
        await answered(here, Host="notes.example.org:443", Origin=public)
        await answered(here, Host="Notes.Example.Org.", Origin=public)
        await answered(here, Host="notes.example.org", **{"Sec-Fetch-Site": "same-origin"})
        await refused(here, "Origin", Host="notes.example.org", Origin="https://evil.invalid")
        await refused(here, "Origin", Host="notes.example.org", Origin="http://notes.example.org:8080")
        forged = {"X-Forwarded-Host": "evil.invalid", "Origin": "https://evil.invalid"}
        await refused(here, "Origin", Host="notes.example.org", **forged)

    memory.run(scenario, key="k-one", api_keys=KEYS)
    memory.run(scenario, allowed_hosts=frozenset({"notes.example.org"}))


def test_on_loopback_without_keys_no_other_name_leads_here(memory: Backend) -> None:
    """A name that somebody points at 127.0.0.1 makes his page one of the service's own origin."""

    async def scenario(here: Running) -> None:
        port = authority(here).rpartition(":")[2]
        for host in (
            f"evil.invalid:{port}",
            "evil.invalid",
            "127.0.0.1.evil.invalid",
            "localhost.evil.invalid",
            "localhost@evil.invalid",
            "evil.invalid#localhost",
            "192.0.2.1",
            "0.0.0.0",
            "[::]",
            "",
        ):
            same = {"Sec-Fetch-Site": "same-origin", "Origin": f"http://{host}"}
            await refused(here, "Host", Host=host, **same)
            assert (await here.client.get("/", Host=host)).status == 400
            assert (await here.client.get("/healthz", Host=host)).status == 200
            assert (await here.client.get("/readyz", Host=host)).status == 200
        for host in (
            f"localhost:{port}",
            "LOCALHOST",
            "localhost.",
            "127.0.0.1:1",
            "127.9.9.9",
            f"[::1]:{port}",
        ):
            await answered(here, Host=host, Origin=f"http://{host}")

    memory.run(scenario)


def test_allowed_hosts_hold_where_keys_are_set_too(memory: Backend) -> None:
    async def scenario(here: Running) -> None:
        await answered(here, Host="a.example:9900")
        await answered(here, Host="localhost")
        await refused(here, "Host", Host="b.example")

    named = Settings.from_environ({"CASENOTES_ALLOWED_HOSTS": "A.example., 192.0.2.7"}).allowed_hosts
    memory.run(scenario, key="k-one", api_keys=KEYS, allowed_hosts=named)


@pytest.mark.parametrize("origin", ["https://evil.invalid", "null", "http://127.0.0.1"])
def test_no_other_origin_is_ever_permitted_anything(memory: Backend, origin: str) -> None:
    async def scenario(here: Running) -> None:
        asking = {
            "Origin": origin,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "content-type,authorization",
            "Access-Control-Request-Private-Network": "true",
        }
        for path in ("/api/chat", "/api/ai_ops", "/api/sessions", "/", "/healthz", "/metrics", "/nothing"):
            for method in ("OPTIONS", "GET", "POST"):
                reply = await here.client.send(method, path, headers=asking)
                assert not [name for name in reply.headers if name.lower().startswith("access-control")]
                assert method != "OPTIONS" or reply.status >= 400
        async with here.client.http.post(f"{here.client.url}/api/ai_ops") as stream:
            assert stream.status == 200
            assert not [name for name in stream.headers if name.lower().startswith("access-control")]

    memory.run(scenario)

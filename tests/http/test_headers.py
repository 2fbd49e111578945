"""The headers that hold a browser back, on every answer there is."""

from __future__ import annotations

from collections.abc import Mapping

from support.http import JSON
from support.raw import say
from support.scripted import Scripted, raising
from support.service import Backend, Running

from casenotes.entrypoints.http.app import make_app

EVERYWHERE = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Server": "casenotes",
}
BODIES = (None, b"{}", b'{"question": "q", "sessionId": "s-2", "feedback": "useful"}')


def check(headers: Mapping[str, str], what: str) -> None:
    lowered = {name.lower(): value for name, value in headers.items()}
    for name, value in EVERYWHERE.items():
        assert lowered.get(name.lower()) == value, (what, name)
    policy = lowered["content-security-policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
    assert lowered["cache-control"] in ("no-store", "no-cache"), what
    assert not [name for name in lowered if name.startswith("access-control")], what


async def check_every_route(here: Running, statuses: set[int]) -> None:
    routes = [
        (route.method, route.resource.canonical.replace("{sessionId}", "s-1"))
        for route in make_app(here.service, here.settings).router.routes()
        if route.resource is not None
    ]
    assert len(routes) > 20
    for method, path in [
        *routes,
        ("GET", "/nothing"),
        ("PUT", "/api/chat"),
        ("OPTIONS", "/"),
        ("TRACE", "/"),
    ]:
        for raw in BODIES if method == "POST" else (None,):
            headers = {} if raw is None else {"Content-Type": JSON}
            url = here.client.url + path
            async with here.client.http.request(method, url, data=raw, headers=headers) as answer:
                await answer.read()
            statuses.add(answer.status)
            check(answer.headers, f"{method} {path}: {answer.status}")


def test_every_route_sends_them_whatever_it_answers(memory: Backend) -> None:
    statuses = set[int]()

    async def scenario(here: Running) -> None:
        await check_every_route(here, statuses)
        tag = (await here.client.get("/")).headers["ETag"]
        unchanged = await here.client.get("/", **{"If-None-Match": tag})
        assert unchanged.status == 304
        check(unchanged.headers, "304")
        check((await say(here.client.url, b"nonsense\r\n\r\n")).headers, "what is no HTTP")

    async def closed(here: Running) -> None:
        await check_every_route(here, statuses)

    memory.run(scenario)
    memory.run(closed, Scripted(raising(ValueError("x"))))
    memory.run(closed, api_keys=frozenset({"k-one"}))
    memory.run(closed, rate_limit=0.001, rate_burst=1)
    memory.run(closed, allowed_hosts=frozenset())
    assert statuses >= {200, 400, 401, 404, 405, 415, 429}

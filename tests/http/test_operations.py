from __future__ import annotations

import asyncio
import json
from typing import Any

from attrs import evolve
from openapi_spec_validator import validate
from prometheus_client.parser import text_string_to_metric_families
from support.agreed import contract
from support.http import JSON
from support.scripted import Scripted, raising, usual
from support.service import Backend, Running, listening_app

from casenotes.core.errors import LedgerUnavailable, SchemaOutOfDate
from casenotes.core.views import RunTrace
from casenotes.entrypoints.http.app import make_app


def broken(fault: Exception) -> Any:
    """Stands in for a ledger, or for what reads it: all that is asked of it fails."""

    class Broken:
        async def check(self) -> None:
            raise fault

        async def trace(self, session_id: str, run_id: str | None = None) -> RunTrace:
            raise fault

    return Broken()


def test_a_fault_of_ours_is_answered_without_its_words(memory: Backend) -> None:
    async def scenario(here: Running) -> None:
        faulty = evolve(here.service, reading=broken(RuntimeError("password=hunter2 in /etc/x.py")))
        async with listening_app(make_app(faulty, here.settings)) as client:
            reply = await client.trace("s-1")
        assert (
            reply.status == 500 and "hunter2" not in reply.body.decode() and "/etc" not in reply.body.decode()
        )
        assert reply.data["requestId"] in reply.message

    memory.run(scenario)


def test_a_ledger_that_cannot_be_reached_is_told_as_such(memory: Backend) -> None:
    async def scenario(here: Running) -> None:
        for fault in (
            LedgerUnavailable("the database cannot be reached"),
            SchemaOutOfDate("run the migrations"),
        ):
            faulty = evolve(here.service, reading=broken(fault), ledger=broken(fault))
            async with listening_app(make_app(faulty, here.settings)) as client:
                reply = await client.trace("s-1")
                assert reply.status == 503 and int(reply.headers["Retry-After"]) > 0
                ready = await client.get("/readyz")
                assert ready.status == 503 and ready.data["context"] == "ready"
                assert (await client.get("/healthz")).status == 200

    memory.run(scenario)


def test_unknown_paths_and_methods_are_refused_in_the_envelope(memory: Backend) -> None:
    async def scenario(here: Running) -> None:
        for method, path, status in (
            ("GET", "/api/nothing", 404),
            ("GET", "/nothing", 404),
            ("GET", "/api/diagnosis//trace", 404),
            ("GET", "/static/../app.py", 404),
            ("PUT", "/api/chat", 405),
            ("GET", "/api/chat", 405),
            ("DELETE", "/api/feedback", 405),
        ):
            reply = await here.client.send(method, path)
            assert reply.status == status and reply.json["code"] == status, path
            assert ("Allow" in reply.headers) == (status == 405)

    memory.run(scenario)


def test_the_service_is_alive_and_ready(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        assert (await here.client.get("/healthz")).data == {"status": "alive"}
        assert (await here.client.get("/readyz")).data == {"ledger": "ready", "context": "ready"}

    backend.run(scenario)


def test_runs_and_requests_are_counted(memory: Backend) -> None:
    async def scenario(here: Running) -> None:
        await here.client.ask("hello", "s-1")
        await here.client.ask("why", "s-1")
        await here.client.stream("/api/ai_ops", {"sessionId": "s-1"})
        await here.client.get("/api/nothing/at/all")
        text = (await here.client.get("/metrics")).body.decode()
        numbers = {
            (sample.name, *sorted(sample.labels.values())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }
        for flow in ("CHAT", "STATE_GRAPH", "AI_OPS"):
            assert numbers["casenotes_runs_started_total", flow] == 1
            assert numbers["casenotes_runs_ended_total", flow, "SUCCESS"] == 1
            assert numbers["casenotes_run_duration_seconds_count", flow] == 1
        assert numbers[("casenotes_runs_running",)] == 0
        assert numbers["casenotes_http_requests_total", "/api/chat", "200", "POST"] == 2
        assert numbers["casenotes_http_requests_total", "404", "GET", "unknown"] == 1
        assert "s-1" not in text and "nothing" not in text

    memory.run(scenario, Scripted(usual))


def test_faults_are_counted(memory: Backend) -> None:
    async def scenario(here: Running) -> None:
        await here.client.ask("hello", "s-1")
        text = (await here.client.get("/metrics")).body.decode()
        assert "casenotes_faults_total 1.0" in text
        assert 'casenotes_runs_ended_total{flow="CHAT",status="FAILED"} 1.0' in text

    memory.run(scenario, Scripted(raising(ValueError("x"))))


def test_the_contract_is_valid_and_served_as_it_ships(memory: Backend) -> None:
    async def scenario(here: Running) -> None:
        reply = await here.client.get("/api/openapi.json")
        assert reply.headers["Content-Type"] == "application/json; charset=utf-8"
        assert json.loads(reply.body) == contract()

    validate(contract())
    memory.run(scenario)


def test_the_contract_has_every_path_of_the_service_and_no_other(memory: Backend) -> None:
    async def scenario(here: Running) -> None:
        app = make_app(here.service, here.settings)
        served = {
            (route.method, route.resource.canonical)
            for route in app.router.routes()
            if route.resource is not None and route.method != "HEAD"
        }
        pages = {
            path for _, path in served if path in ("/", "/trace", "/cases") or path.startswith("/static/")
        }
        agreed = {
            (method.upper(), path) for path, methods in contract()["paths"].items() for method in methods
        }
        assert {one for one in served if one[1] not in pages} == agreed

    memory.run(scenario)


def test_pages_hold_a_browser_back(memory: Backend) -> None:
    async def scenario(here: Running) -> None:
        for path in ("/", "/trace", "/cases"):
            reply = await here.client.get(path)
            assert reply.status == 200 and reply.headers["Content-Type"] == "text/html; charset=utf-8"
            policy = reply.headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            page = reply.body.decode()
            assert (
                "<script>" not in page
                and "<style" not in page
                and " style=" not in page
                and "onclick" not in page
            )

    memory.run(scenario)


def test_a_body_that_cannot_be_read_is_no_fault_of_ours(memory: Backend) -> None:
    async def scenario(here: Running) -> None:
        headers = {"Content-Type": JSON, "Content-Encoding": "gzip"}
        reply = await here.client.send("POST", "/api/chat", b"this is not gzip", headers=headers)
        assert reply.status == 400 and reply.message == "body: could not be read to its end"
        port = int(here.client.url.rpartition(":")[2])
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Type: {JSON}\r\nContent-Length: 99\r\n\r\n{{"
        writer.write(head.encode())
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        assert "casenotes_faults_total 0.0" in (await here.client.get("/metrics")).body.decode()

    memory.run(scenario)

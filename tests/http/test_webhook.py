from __future__ import annotations

import pytest
from support.scripted import Scripted, usual
from support.service import Backend, Running

from casenotes.core.rules import is_new_session_id
from casenotes.entrypoints.http.alerts import session_of

PATH = "/api/alerts/alertmanager"


def notification(**changed: object) -> dict[str, object]:
    firing = {"status": "firing", "labels": {"alertname": "HighLatency"}, "startsAt": "2026-12-01T00:00:00Z"}
    resolved = {"status": "resolved", "labels": {"alertname": "DiskFull"}}
    return {
        "version": "4",
        "groupKey": '{}:{alertname="HighLatency"}',
        "status": "firing",
        "receiver": "casenotes",
        "alerts": [firing, resolved],
        **changed,
    }


def test_a_firing_group_is_diagnosed_in_its_own_session(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        replies = [await here.client.post(PATH, notification()) for _ in range(2)]
        assert [reply.status for reply in replies] == [202, 202]
        (first,), (again,) = (reply.data for reply in replies)
        assert first["groupKey"] == '{}:{alertname="HighLatency"}'
        assert first["sessionId"] == again["sessionId"] and first["runId"] != again["runId"]
        await here.quiet()
        run = (await here.client.trace(first["sessionId"], first["runId"])).data["run"]
        assert (run["status"], run["agentFlow"]) == ("SUCCESS", "AI_OPS")
        alerts = asked.enquiries[0].alerts
        assert alerts is not None and [alert["labels"] for alert in alerts] == [{"alertname": "HighLatency"}]
        assert alerts[0]["status"] == {"state": "active", "silencedBy": [], "inhibitedBy": []}

    asked = Scripted(usual)
    backend.run(scenario, asked)


def test_a_resolved_group_starts_nothing(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        reply = await here.client.post(PATH, notification(status="resolved"))
        assert reply.status == 202 and reply.data == []
        assert (await here.client.get("/api/sessions")).data == []

    backend.run(scenario)


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"version": "3"}, "version"),
        ({"version": None}, "version"),
        ({"status": "odd"}, "status"),
        ({"groupKey": ""}, "groupKey"),
        ({"groupKey": 7}, "groupKey"),
        ({"alerts": {}}, "alerts"),
    ],
)
def test_another_body_is_refused(memory: Backend, changed: dict[str, object], field: str) -> None:
    async def scenario(here: Running) -> None:
        reply = await here.client.post(PATH, notification(**changed))
        assert reply.status == 400 and reply.message.startswith(f"{field}: ")

    memory.run(scenario)


@pytest.mark.parametrize("group_key", ["x", '{}/{a="b"}:{c="\N{SNOWMAN}"}', "\ud800", "k" * 10_000])
def test_any_group_key_gives_an_id_that_a_session_may_have(group_key: str) -> None:
    assert is_new_session_id(session_of(group_key))
    assert session_of(group_key) == session_of(group_key) != session_of(group_key + "x")

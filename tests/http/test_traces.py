from __future__ import annotations

from support.scripted import Gate, Scripted, playing
from support.service import Backend, Running

from casenotes.core.text import LIMIT_BYTES
from casenotes.ports.agent import StepTaken, ToolCalled


def test_a_trace_has_exactly_the_agreed_parts(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        made = await here.client.ask("why is checkout slow", "s-1")
        trace = (await here.client.trace("s-1", made["runId"])).data
        assert list(trace) == [
            "sessionId",
            "runId",
            "session",
            "run",
            "agentSteps",
            "toolInvocations",
            "selfEvaluation",
            "answer",
            "feedback",
        ]
        assert trace["runId"] == made["runId"] and trace["answer"] == made["answer"]
        assert trace["session"]["source"] == "chat_session"
        assert trace["run"]["durationMs"] >= 0 and trace["run"]["finishedAt"] == trace["run"]["updatedAt"]
        assert [tool["stepSequence"] for tool in trace["toolInvocations"]] == [1, 1]
        assert [tool["sequence"] for tool in trace["toolInvocations"]] == [1, 2]

    backend.run(scenario)


def test_a_missing_run_and_a_run_of_another_session_look_the_same(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        mine = await here.client.ask("mine", "s-1")
        theirs = await here.client.ask("theirs", "s-2")
        nobodys = "run-" + "0" * (len(theirs["runId"]) - 4)
        foreign = await here.client.trace("s-1", theirs["runId"])
        missing = await here.client.trace("s-1", nobodys)
        assert foreign.status == missing.status == 404
        assert foreign.body.replace(theirs["runId"].encode(), b"?") == missing.body.replace(
            nobodys.encode(), b"?"
        )
        for one in (theirs["runId"], nobodys):
            assert (await here.client.runs("s-1", f"?before={one}")).status == 404
        rated = [await here.client.rate("s-1", runId=one) for one in (theirs["runId"], nobodys)]
        assert rated[0].body.replace(theirs["runId"].encode(), b"?") == rated[1].body.replace(
            nobodys.encode(), b"?"
        )
        assert (await here.client.trace("s-1", mine["runId"])).status == 200

    backend.run(scenario)


def test_a_running_run_is_shown_as_far_as_it_is(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        async with here.client.streaming("/api/ai_ops", {"sessionId": "s-1"}) as (_, events):
            run_id = (await anext(events)).payload["runId"]
            await gate.reached.wait()
            trace = (await here.client.trace("s-1")).data
            assert trace["runId"] == run_id and trace["run"]["status"] == "RUNNING"
            assert trace["run"]["finishedAt"] is None and trace["run"]["durationMs"] is None
            assert trace["answer"] is None and len(trace["toolInvocations"]) == 1
            gate.opened.set()

    gate = Gate(StepTaken("operator"), ToolCalled("logs.search"))
    backend.run(scenario, Scripted(gate))


def test_a_session_without_a_run_has_an_empty_trace(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        await here.seed_session("s-empty")
        trace = (await here.client.trace("s-empty")).data
        assert trace["runId"] is None and trace["run"] is None and trace["answer"] is None
        assert trace["agentSteps"] == [] and trace["toolInvocations"] == []
        assert (await here.client.runs("s-empty")).data == []

    backend.run(scenario)


def test_history_without_a_run_is_shown_from_the_old_row(backend: Backend) -> None:
    async def scenario(here: Running) -> None:
        await here.seed_history("s-old")
        trace = (await here.client.trace("s-old")).data
        assert trace["runId"] is None and trace["run"] is None and trace["answer"] == "an old answer"
        assert trace["session"]["source"] == "diagnosis_session"
        assert (await here.client.runs("s-old")).status == 404
        assert (await here.client.get("/api/chat/session/s-old")).data["source"] == "diagnosis_session"

    backend.run(scenario)


def test_values_keep_their_kind(backend: Backend) -> None:
    values: list[object] = [
        "[1]",
        [1],
        {"a": [None, True, 1.5]},
        "null",
        None,
        0,
        False,
        2**60,
        float("nan"),
        float("-inf"),
        b"\xffbytes",
    ]
    shown = [*values[:-3], "NaN", "-Infinity", "\ufffdbytes"]

    async def scenario(here: Running) -> None:
        await here.client.ask("x", "s-1")
        tools = (await here.client.trace("s-1")).data["toolInvocations"]
        assert [(type(tool["result"]), tool["result"]) for tool in tools] == [(type(v), v) for v in shown]

    backend.run(scenario, Scripted(playing(*(ToolCalled("t", result=value) for value in values))))


def test_a_large_result_is_cut_and_says_so(backend: Backend) -> None:
    large = "\N{SNOWMAN}" * 1_000_000

    async def scenario(here: Running) -> None:
        await here.client.ask("x", "s-1")
        text, listed = (await here.client.trace("s-1")).data["toolInvocations"]
        assert text["resultTruncated"] and text["resultSize"] == 3_000_000
        assert len(text["result"].encode()) <= LIMIT_BYTES and set(text["result"]) == {"\N{SNOWMAN}"}
        assert listed["resultTruncated"] and isinstance(listed["result"], str)

    backend.run(scenario, Scripted(playing(ToolCalled("t", result=large), ToolCalled("t", result=[large]))))

"""Values: text, JSON and numbers come back as they were, whatever they look like."""

from __future__ import annotations

from attrs import evolve

from casenotes.core.model import RunMetrics
from casenotes.core.text import Json, JsonObject
from casenotes.ports.contract.stage import (
    add_run,
    at,
    case_of,
    committed,
    end,
    end_run,
    holder_of,
    key_named,
    on_fresh_ledger,
    only,
    put_cases,
    read_run,
    same_json,
    started,
    useful,
)
from casenotes.ports.ledger import Ledger

TEXTS = (
    "",
    " ",
    "  padded \t\n",
    "line one\nline two\r\nline three\rline four\u2028line five\u2029\u0085",
    "[1]",
    "null",
    '"quoted"',
    "{}",
    "\\u0000 \\ \\\\ \\n",
    "'; DROP TABLE diagnosis_run; -- %s %(x)s :name ? $1",
    "障害の原因は何ですか",
    "e\N{COMBINING ACUTE ACCENT} \u00e9",
    "\U0001f680 \U0001f469\u200d\U0001f4bb \uffff \ufffd \U0010ffff",
    "\N{RIGHT-TO-LEFT OVERRIDE}abc\N{ZERO WIDTH SPACE}",
    "\x01\x02\x1b[31m\x7f",
    "long " * 12_000,
)

BIG = 2**63 - 1
"""The largest count: a token sum, a size or a duration may need 64 bits."""

JSON_VALUES: tuple[Json, ...] = (
    None,
    "null",
    "",
    "[1]",
    [1],
    "[]",
    [],
    "{}",
    {},
    "1",
    1,
    1.0,
    "true",
    True,
    False,
    0,
    '"quoted"',
    '{"a": 1}',
    {"a": 1},
    {"": {"": []}},
    {"a": None, "b": [None, {}, [], "", "null", False, 0]},
    [[[[1]]], {"a": {"b": {"c": "d"}}}],
    {"A": 1, "a": 2, "a ": 3, "é": 4, "\U0001f680": 5, "$.a": 6, "a.b": 7},
    ["\\u0000", "\\", '"', "\u2028", "\U0001f680", "\x01"],
    [2**31, 2**53 + 1, 2**63, -(2**63) - 1, 2**200, 10**300],
    [0.1, 1.5, -2.25, 5.0, 1e-7, 123456.789],
)

EXTREME_FLOATS: tuple[Json, ...] = (1e16, 1e22, 1e100, 1.7976931348623157e308, 5e-324, -1e23)
"""A database that keeps numbers as decimals gives some of them back as integers, and as other ones at that."""


class ValuesContract:
    @on_fresh_ledger
    async def test_text_comes_back_equal_wherever_it_is_stored(self, ledger: Ledger) -> None:
        for n, text in enumerate(TEXTS):
            session_id, run_id = f"s-{n}", f"r-{n}"
            run = await add_run(ledger, started(run_id, session_id, query=text))
            step = run.step(
                1, text, at(1), step_type=text, model=text, input=text, output=text, error_message=text
            )
            tool = run.tool_call(1, text, at(1), arguments={text: text}, result=text, error_message=text)
            case = case_of(run_id, query=text, answer=text, session_id=session_id)
            ended = run.succeed(text, at(2), RunMetrics(1, 1), self_evaluation={text: text})
            async with committed(ledger) as work:
                await work.journal.add_step(step)
                await work.journal.add_tool(tool)
                ended = await end(work, ended)
                await work.runs.set_feedback(session_id, run_id, useful(text))
                await work.cases.put(case)
                await work.keys.claim(key_named(run_id, digest=text))
            assert await read_run(ledger, session_id, run_id) == ended.rated(useful(text))
            async with ledger.view() as view:
                stored_step = only(await view.journal.steps(session_id, run_id))
                stored_tool = only(await view.journal.tools(session_id, run_id))
                stored_case = await view.cases.of_run(run_id)
                [overview, *_] = await view.sessions.page(query=session_id, before=None, limit=9)
            assert stored_case is not None
            assert evolve(stored_step, id=None) == step
            assert evolve(stored_tool, id=None) == tool
            assert evolve(stored_case, id=None) == case
            assert overview.last_query == text
            assert await holder_of(ledger, run_id) == key_named(run_id, digest=text)

    @on_fresh_ledger
    async def test_failed_runs_reason_comes_back_equal(self, ledger: Ledger) -> None:
        for n, text in enumerate(TEXTS):
            failed = (await add_run(ledger, started(f"r-{n}"))).fail(text, at(1), RunMetrics(0, 0))
            sealed = await end_run(ledger, failed)
            assert await read_run(ledger, "s", f"r-{n}") == sealed

    @on_fresh_ledger
    async def test_absent_text_is_not_empty_text(self, ledger: Ledger) -> None:
        run = await add_run(ledger, started())
        async with committed(ledger) as work:
            await work.journal.add_step(run.step(1, "a", at(1), output="", input=None))
            await work.journal.add_step(run.step(2, "a", at(1), output=None, input=""))
        async with ledger.view() as view:
            steps = await view.journal.steps("s", "r")
        assert [(step.input, step.output) for step in steps] == [(None, ""), ("", None)]

    @on_fresh_ledger
    async def test_what_no_store_can_hold_was_settled_by_the_model_and_is_stored(
        self, ledger: Ledger
    ) -> None:
        bad, good = "a\x00b\ud800c\udfff", "a\ufffdb\ufffdc\ufffd"
        run = await add_run(ledger, started(query=bad))
        step = run.step(1, bad, at(1), input=bad, output=bad, error_message=bad)
        tool = run.tool_call(
            1,
            bad,
            at(1),
            arguments={bad: [bad, float("nan"), float("-inf")]},
            result={"bytes": b"\x00\xff", "when": at(0), "set": {1}, "nul": bad},
        )
        async with committed(ledger) as work:
            await work.journal.add_step(step)
            await work.journal.add_tool(tool)
            await end(work, run.succeed(bad, at(2), RunMetrics(1, 1), self_evaluation={bad: bad}))
        stored = await read_run(ledger, "s", "r")
        assert (stored.query, stored.answer, stored.self_evaluation) == (good, good, {good: good})
        async with ledger.view() as view:
            stored_step = only(await view.journal.steps("s", "r"))
            stored_tool = only(await view.journal.tools("s", "r"))
        assert (stored_step.agent_name, stored_step.output) == (good, good)
        assert evolve(stored_step, id=None) == step
        assert stored_tool.arguments == {good: [good, "NaN", "-Infinity"]}
        assert evolve(stored_tool, id=None) == tool

    @on_fresh_ledger
    async def test_tool_result_comes_back_equal_and_of_the_same_type(self, ledger: Ledger) -> None:
        run = await add_run(ledger, started())
        async with committed(ledger) as work:
            for n, value in enumerate(JSON_VALUES):
                await work.journal.add_tool(run.tool_call(n, "logs.search", at(1), result=value))
        async with ledger.view() as view:
            stored = await view.journal.tools("s", "r")
        for tool, value in zip(stored, JSON_VALUES, strict=True):
            assert same_json(tool.result, value), f"{value!r} came back as {tool.result!r}"

    @on_fresh_ledger
    async def test_arguments_come_back_equal_and_of_the_same_type(self, ledger: Ledger) -> None:
        run = await add_run(ledger, started())
        async with committed(ledger) as work:
            for n, value in enumerate(JSON_VALUES):
                await work.journal.add_tool(run.tool_call(n, "logs.search", at(1), arguments={"v": value}))
        async with ledger.view() as view:
            stored = await view.journal.tools("s", "r")
        for tool, value in zip(stored, JSON_VALUES, strict=True):
            assert same_json(tool.arguments, {"v": value}), f"{value!r} came back in {tool.arguments!r}"

    @on_fresh_ledger
    async def test_json_of_a_run_comes_back_equal_and_of_the_same_type(self, ledger: Ledger) -> None:
        for n, value in enumerate(JSON_VALUES):
            run = await add_run(ledger, started(f"r-{n}"))
            document: JsonObject = {"v": value, "again": [value]}
            ended = run.succeed(
                "a", at(2), RunMetrics(0, 0), self_evaluation=document, orchestration_trace=document
            )
            await end_run(ledger, ended)
            stored = await read_run(ledger, "s", f"r-{n}")
            for json_value in (stored.self_evaluation, stored.orchestration_trace):
                assert same_json(json_value, document), f"{value!r} came back in {json_value!r}"

    @on_fresh_ledger
    async def test_numbers_of_any_size_come_back_equal_and_of_the_same_type(self, ledger: Ledger) -> None:
        run = await add_run(ledger, started())
        calls = [
            run.tool_call(n, "metrics.query", at(1), arguments={"v": value}, result=value)
            for n, value in enumerate(EXTREME_FLOATS)
        ]
        async with committed(ledger) as work:
            for call in calls:
                await work.journal.add_tool(call)
        async with ledger.view() as view:
            stored = await view.journal.tools("s", "r")
        for tool, call in zip(stored, calls, strict=True):
            assert same_json(tool.arguments, call.arguments), f"{call.arguments} became {tool.arguments}"
            assert same_json(tool.result, call.result), f"{call.result!r} became {tool.result!r}"

    @on_fresh_ledger
    async def test_arguments_that_were_cut_to_text_stay_text(self, ledger: Ledger) -> None:
        run = await add_run(ledger, started())
        tool = run.tool_call(1, "logs.search", at(1), arguments={"q": ["x" * 1000] * 100})
        assert isinstance(tool.arguments, str), "the stage means to store arguments past the limit"
        async with committed(ledger) as work:
            await work.journal.add_tool(tool)
        async with ledger.view() as view:
            stored = only(await view.journal.tools("s", "r"))
        assert stored.arguments == tool.arguments

    @on_fresh_ledger
    async def test_counts_and_sizes_past_32_bits_are_kept(self, ledger: Ledger) -> None:
        run = await add_run(ledger, started())
        step = run.step(1, "planner", at(1), input_tokens=BIG, output_tokens=2**31, duration_ms=2**32)
        tool = evolve(run.tool_call(1, "logs.search", at(1), duration_ms=BIG), result_size=BIG)
        async with committed(ledger) as work:
            await work.journal.add_step(step)
            await work.journal.add_tool(tool)
        async with ledger.view() as view:
            assert [evolve(s, id=None) for s in await view.journal.steps("s", "r")] == [step]
            assert [evolve(t, id=None) for t in await view.journal.tools("s", "r")] == [tool]

    @on_fresh_ledger
    async def test_zero_is_not_unknown(self, ledger: Ledger) -> None:
        run = await add_run(ledger, started())
        zero = run.step(1, "planner", at(1), input_tokens=0, output_tokens=0, duration_ms=0)
        async with committed(ledger) as work:
            await work.journal.add_step(zero)
        async with ledger.view() as view:
            assert [evolve(s, id=None) for s in await view.journal.steps("s", "r")] == [zero]

    @on_fresh_ledger
    async def test_texts_do_not_run_into_one_another(self, ledger: Ledger) -> None:
        await put_cases(ledger, *(case_of(f"r-{n}", query=t, answer=t) for n, t in enumerate(TEXTS)))
        async with ledger.view() as view:
            page = await view.cases.page(query=None, before=None, limit=99)
        assert [(case.query, case.answer) for case in reversed(page)] == [(t, t) for t in TEXTS]

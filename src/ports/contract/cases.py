"""The case library: one automatic case for a run, found again by its words."""

from __future__ import annotations

import pytest
from attrs import evolve

from casenotes.core.model import Case
from casenotes.core.words import CaseStatus
from casenotes.ports.contract.overviews import LITERAL_QUERIES
from casenotes.ports.contract.stage import at, case_of, committed, on_fresh_ledger, only, put_cases
from casenotes.ports.ledger import Ledger


async def of_run(ledger: Ledger, run_id: str) -> Case | None:
    async with ledger.view() as view:
        return await view.cases.of_run(run_id)


async def found(
    ledger: Ledger, query: str | None = None, before: int | None = None, limit: int = 100
) -> list[str]:
    """The run ids of a page's cases, in its order."""
    async with ledger.view() as view:
        page = await view.cases.page(query=query, before=before, limit=limit)
    return [case.diagnosis_id for case in page]


async def withdraw(ledger: Ledger, run_id: str) -> None:
    async with committed(ledger) as work:
        await work.cases.withdraw(run_id, at=at(50))


class CasesContract:
    @on_fresh_ledger
    async def test_put_case_is_returned_with_its_id_and_read_back_equal(self, ledger: Ledger) -> None:
        stored = only(await put_cases(ledger, case_of("r")))
        assert isinstance(stored.id, int)
        assert evolve(stored, id=None) == case_of("r")
        assert await of_run(ledger, "r") == stored
        async with ledger.view() as view:
            assert list(await view.cases.page(query=None, before=None, limit=9)) == [stored]

    @pytest.mark.parametrize("run_id", ["other", "R", "r ", "%", "_"])
    @on_fresh_ledger
    async def test_case_of_another_run_is_not_of_this_one(self, ledger: Ledger, run_id: str) -> None:
        await put_cases(ledger, case_of("r"))
        assert await of_run(ledger, run_id) is None

    @on_fresh_ledger
    async def test_putting_a_case_again_replaces_its_words_and_keeps_its_id_and_birth(
        self, ledger: Ledger
    ) -> None:
        first = only(await put_cases(ledger, case_of("r")))
        renewed = case_of("r", query="q2", answer="a2", seconds=30)
        second = only(await put_cases(ledger, renewed))
        assert second == evolve(renewed, id=first.id, created_at=first.created_at)
        assert await of_run(ledger, "r") == second

    @on_fresh_ledger
    async def test_run_has_one_case_however_often_it_is_put(self, ledger: Ledger) -> None:
        async with committed(ledger) as work:
            await work.cases.put(case_of("r"))
            await work.cases.put(case_of("r"))
        await put_cases(ledger, case_of("r"), case_of("r-2"))
        assert sorted(await found(ledger)) == ["r", "r-2"]

    @on_fresh_ledger
    async def test_withdrawn_case_leaves_the_library_and_is_still_the_runs(self, ledger: Ledger) -> None:
        [case, _] = await put_cases(ledger, case_of("r"), case_of("r-2"))
        await withdraw(ledger, "r")
        stored = await of_run(ledger, "r")
        assert stored is not None
        assert evolve(stored, updated_at=case.updated_at) == evolve(case, status=CaseStatus.WITHDRAWN)
        assert stored.updated_at == at(50)
        assert stored.status is CaseStatus.WITHDRAWN
        assert await found(ledger) == ["r-2"]

    @on_fresh_ledger
    async def test_withdrawn_case_comes_back_as_the_same_case(self, ledger: Ledger) -> None:
        first = only(await put_cases(ledger, case_of("r")))
        await withdraw(ledger, "r")
        again = only(await put_cases(ledger, case_of("r", seconds=60)))
        assert (again.id, again.status) == (first.id, CaseStatus.ACTIVE)
        assert await found(ledger) == ["r"]

    @on_fresh_ledger
    async def test_withdrawing_touches_no_other_case(self, ledger: Ledger) -> None:
        other = only(await put_cases(ledger, case_of("r-2")))
        await withdraw(ledger, "r")
        await put_cases(ledger, case_of("r"))
        await withdraw(ledger, "r")
        assert await of_run(ledger, "r-2") == other

    @on_fresh_ledger
    async def test_case_page_is_newest_first_by_id_whatever_the_times(self, ledger: Ledger) -> None:
        await put_cases(
            ledger, case_of("r-1", seconds=5), case_of("r-2", seconds=9), case_of("r-3", seconds=1)
        )
        await put_cases(ledger, case_of("r-1", seconds=99))
        assert await found(ledger) == ["r-3", "r-2", "r-1"]

    @on_fresh_ledger
    async def test_case_pages_hold_limit_and_continue_below_an_id(self, ledger: Ledger) -> None:
        cases = await put_cases(ledger, *(case_of(f"r-{n}") for n in range(5)))
        await withdraw(ledger, "r-2")
        assert await found(ledger, limit=2) == ["r-4", "r-3"]
        assert await found(ledger, before=cases[3].id, limit=1) == ["r-1"]
        assert await found(ledger, before=cases[2].id) == ["r-1", "r-0"]
        assert await found(ledger, before=cases[0].id) == []

    @on_fresh_ledger
    async def test_case_query_finds_question_or_answer(self, ledger: Ledger) -> None:
        await put_cases(
            ledger,
            case_of("r-1", query="why slow", answer="pool exhausted"),
            case_of("r-2", query="pool metrics", answer="fine"),
            case_of("r-3", query="disk", answer="full"),
        )
        assert await found(ledger, "pool") == ["r-2", "r-1"]
        assert await found(ledger, "disk") == ["r-3"]
        assert await found(ledger, "r-1") == []

    @on_fresh_ledger
    async def test_case_query_has_no_special_character(self, ledger: Ledger) -> None:
        words = [f"x{query}y" for query in LITERAL_QUERIES] + ["xay 100 aab x"]
        await put_cases(ledger, *(case_of(f"r{n}", query=word, answer="n") for n, word in enumerate(words)))
        await put_cases(ledger, *(case_of(f"a{n}", query="n", answer=word) for n, word in enumerate(words)))
        for query in LITERAL_QUERIES:
            matching = [n for n, word in enumerate(words) if query in word]
            expected = [f"r{n}" for n in matching] + [f"a{n}" for n in matching]
            assert await found(ledger, query) == expected[::-1], query

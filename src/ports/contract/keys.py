"""Idempotency keys: a name is claimed once."""

from __future__ import annotations

from casenotes.core.model import IdempotencyKey
from casenotes.ports.contract.isolation import ALIKE_IDS
from casenotes.ports.contract.stage import (
    all_at_once,
    committed,
    holder_of,
    key_named,
    on_fresh_ledger,
    only,
)
from casenotes.ports.ledger import Ledger


async def claim(ledger: Ledger, key: IdempotencyKey) -> IdempotencyKey | None:
    async with committed(ledger) as work:
        return await work.keys.claim(key)


class KeysContract:
    @on_fresh_ledger
    async def test_first_claim_of_a_name_gets_none(self, ledger: Ledger) -> None:
        assert await claim(ledger, key_named("k")) is None
        assert await holder_of(ledger, "k") == key_named("k")

    @on_fresh_ledger
    async def test_later_claim_gets_the_holder_and_changes_nothing(self, ledger: Ledger) -> None:
        first = key_named("k", session_id="s", run_id="r-1", digest="one")
        await claim(ledger, first)
        second = key_named("k", session_id="t", run_id="r-2", digest="two")
        assert await claim(ledger, second) == first
        assert await holder_of(ledger, "k") == first

    @on_fresh_ledger
    async def test_later_claim_in_the_same_unit_of_work_gets_the_holder(self, ledger: Ledger) -> None:
        async with ledger.work() as work:
            assert await work.keys.claim(key_named("k", run_id="r-1")) is None
            assert await work.keys.claim(key_named("k", run_id="r-2")) == key_named("k", run_id="r-1")

    @on_fresh_ledger
    async def test_claim_that_is_rolled_back_frees_the_name(self, ledger: Ledger) -> None:
        async with ledger.work() as work:
            await work.keys.claim(key_named("k", run_id="r-1"))
        assert await claim(ledger, key_named("k", run_id="r-2")) is None

    @on_fresh_ledger
    async def test_key_names_are_compared_exactly(self, ledger: Ledger) -> None:
        async with committed(ledger) as work:
            for n, name in enumerate(ALIKE_IDS):
                assert await work.keys.claim(key_named(name, run_id=f"r-{n}")) is None
        for n, name in enumerate(ALIKE_IDS):
            assert await holder_of(ledger, name) == key_named(name, run_id=f"r-{n}")

    @on_fresh_ledger
    async def test_of_many_that_claim_one_name_at_once_exactly_one_gets_none(self, ledger: Ledger) -> None:
        claims = [key_named("k", run_id=f"r-{n}") for n in range(20)]
        holders = await all_at_once(claim(ledger, key) for key in claims)
        winner = only(key for key, holder in zip(claims, holders, strict=True) if holder is None)
        assert [holder for holder in holders if holder is not None] == [winner] * 19
        assert await holder_of(ledger, "k") == winner

"""Chat sessions: ensured once, used often."""

from __future__ import annotations

from attrs import evolve

from casenotes.core.model import ChatSession
from casenotes.core.seal import ChainHead
from casenotes.core.words import SessionStatus
from casenotes.ports.contract.stage import (
    add_run,
    add_sessions,
    answered,
    at,
    chat_session,
    committed,
    end_run,
    on_fresh_ledger,
    read_session,
    started,
)
from casenotes.ports.ledger import Ledger


class SessionsContract:
    @on_fresh_ledger
    async def test_ensured_session_is_read_back_equal(self, ledger: Ledger) -> None:
        session = ChatSession(
            "s",
            created_at=at(0),
            last_active_at=at(1),
            status=SessionStatus.EXPIRED,
            message_pair_count=3,
            expires_at=at(2),
        )
        async with committed(ledger) as work:
            await work.sessions.ensure(session)
            assert await work.sessions.get("s") == session
        stored = await read_session(ledger, "s")
        assert stored == session
        assert stored.status is SessionStatus.EXPIRED

    @on_fresh_ledger
    async def test_unknown_session_is_none(self, ledger: Ledger) -> None:
        await add_sessions(ledger, "s")
        async with ledger.view() as view:
            assert await view.sessions.get("t") is None

    @on_fresh_ledger
    async def test_ensuring_again_leaves_the_row_as_it_is(self, ledger: Ledger) -> None:
        first = evolve(chat_session("s"), message_pair_count=2, expires_at=at(9))
        async with committed(ledger) as work:
            await work.sessions.ensure(first)
        async with committed(ledger) as work:
            await work.sessions.ensure(evolve(chat_session("s", seconds=50), status=SessionStatus.EXPIRED))
        assert await read_session(ledger, "s") == first

    @on_fresh_ledger
    async def test_use_of_a_new_session_stores_it_as_given(self, ledger: Ledger) -> None:
        session = evolve(
            chat_session("s", seconds=3),
            last_active_at=at(5),
            status=SessionStatus.EXPIRED,
            message_pair_count=3,
            expires_at=at(9),
        )
        async with committed(ledger) as work:
            await work.sessions.use(session)
            assert await work.sessions.get("s") == session
        assert await read_session(ledger, "s") == session

    @on_fresh_ledger
    async def test_use_marks_activity_and_changes_nothing_else_of_the_session(self, ledger: Ledger) -> None:
        first = evolve(chat_session("s"), message_pair_count=2, expires_at=at(9))
        async with committed(ledger) as work:
            await work.sessions.ensure(first)
            await work.sessions.ensure(chat_session("t"))
        async with committed(ledger) as work:
            await work.sessions.use(
                ChatSession("s", at(6), at(7), SessionStatus.EXPIRED, message_pair_count=8, expires_at=at(70))
            )
        assert await read_session(ledger, "s") == evolve(first, last_active_at=at(7), expires_at=at(70))
        assert await read_session(ledger, "t") == chat_session("t"), "another session was marked"

    @on_fresh_ledger
    async def test_use_leaves_the_chain_where_it_stands(self, ledger: Ledger) -> None:
        sealed = await end_run(ledger, answered(await add_run(ledger, started())))
        async with committed(ledger) as work:
            await work.sessions.use(chat_session("s", seconds=9))
            assert await work.sessions.lock_chain("s") == ChainHead(1, sealed.digest)

    @on_fresh_ledger
    async def test_use_never_lowers_last_active_at(self, ledger: Ledger) -> None:
        await add_sessions(ledger, "s", seconds=10)
        async with committed(ledger) as work:
            await work.sessions.use(evolve(chat_session("s", seconds=4), expires_at=at(40)))
        stored = await read_session(ledger, "s")
        assert (stored.last_active_at, stored.expires_at) == (at(10), at(40))

    @on_fresh_ledger
    async def test_use_sets_expires_at_whatever_it_was(self, ledger: Ledger) -> None:
        await add_sessions(ledger, "s")
        for moment in (at(50), at(20), None):
            async with committed(ledger) as work:
                await work.sessions.use(evolve(chat_session("s"), expires_at=moment))
            assert (await read_session(ledger, "s")).expires_at == moment

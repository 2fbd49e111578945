"""Chat sessions: ensured once, touched often."""

from __future__ import annotations

from attrs import evolve

from casenotes.core.model import ChatSession
from casenotes.core.words import SessionStatus
from casenotes.ports.contract.stage import (
    add_sessions,
    at,
    chat_session,
    committed,
    on_fresh_ledger,
    read_session,
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
    async def test_touch_raises_last_active_at_and_nothing_before_it(self, ledger: Ledger) -> None:
        await add_sessions(ledger, "s", "t")
        async with committed(ledger) as work:
            await work.sessions.touch("s", at=at(7), expires_at=at(70), answered=False)
        touched = evolve(chat_session("s"), last_active_at=at(7), expires_at=at(70))
        assert await read_session(ledger, "s") == touched
        assert await read_session(ledger, "t") == chat_session("t"), "another session was touched"

    @on_fresh_ledger
    async def test_touch_never_lowers_last_active_at(self, ledger: Ledger) -> None:
        await add_sessions(ledger, "s", seconds=10)
        async with committed(ledger) as work:
            await work.sessions.touch("s", at=at(4), expires_at=at(40), answered=True)
        stored = await read_session(ledger, "s")
        assert stored.last_active_at == at(10)
        assert (stored.expires_at, stored.message_pair_count) == (at(40), 1)

    @on_fresh_ledger
    async def test_touch_sets_expires_at_whatever_it_was(self, ledger: Ledger) -> None:
        await add_sessions(ledger, "s")
        for moment in (at(50), at(20), None):
            async with committed(ledger) as work:
                await work.sessions.touch("s", at=at(1), expires_at=moment, answered=False)
            assert (await read_session(ledger, "s")).expires_at == moment

    @on_fresh_ledger
    async def test_only_an_answered_touch_counts_a_message_pair(self, ledger: Ledger) -> None:
        await add_sessions(ledger, "s")
        for answered, count in ((True, 1), (False, 1), (True, 2)):
            async with committed(ledger) as work:
                await work.sessions.touch("s", at=at(1), expires_at=None, answered=answered)
            assert (await read_session(ledger, "s")).message_pair_count == count

    @on_fresh_ledger
    async def test_touching_an_unknown_session_leaves_it_unknown(self, ledger: Ledger) -> None:
        async with committed(ledger) as work:
            await work.sessions.touch("s", at=at(), expires_at=None, answered=True)
        async with ledger.view() as view:
            assert await view.sessions.get("s") is None
            assert list(await view.sessions.page(query=None, before=None, limit=9)) == []

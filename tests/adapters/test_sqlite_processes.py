"""Several processes on one ledger file, as after a careless restart or with two workers."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from casenotes.adapters.sqlite import open_ledger

WRITE_TEN = """
import asyncio, sys
from casenotes.adapters.sqlite import open_ledger
from casenotes.ports.contract.stage import answered, chat_session, committed, end, started

async def main():
    ledger = open_ledger(sys.argv[1])

    async def write(number):
        async with committed(ledger) as work:
            await work.sessions.ensure(chat_session("s"))
            await end(work, answered(await work.runs.add(started(f"r-{sys.argv[2]}-{number}"))))

    await asyncio.gather(*(write(number) for number in range(10)))
    await ledger.close()

asyncio.run(main())
"""


def test_processes_that_open_one_file_at_once_all_get_their_work_done(ledger_path: Path) -> None:
    url = f"sqlite:///{ledger_path}"
    processes = [
        subprocess.Popen([sys.executable, "-W", "error", "-c", WRITE_TEN, url, str(number)])
        for number in range(3)
    ]
    assert [process.wait(120) for process in processes] == [0, 0, 0]

    async def scene() -> None:
        ledger = open_ledger(url)
        async with ledger.view() as view:
            session, runs = await view.sessions.get("s"), await view.runs.page("s", before=None, limit=99)
        await ledger.close()
        assert session is not None
        assert session.message_pair_count == len(runs) == 30

    asyncio.run(scene())

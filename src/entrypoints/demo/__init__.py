"""``casenotes demo``: a service driven the way its clients drive it, and held to its word."""

from __future__ import annotations

import logging
from collections.abc import Callable

from attrs import evolve

from casenotes.core.text import JsonObject
from casenotes.entrypoints.demo.client import api_at
from casenotes.entrypoints.demo.story import Story
from casenotes.entrypoints.settings import Settings


async def demonstrate(url: str | None, say: Callable[[str], None] = print) -> list[JsonObject]:
    """Drive the service at ``url``, or one that is started here, on a free port, with its record in memory.

    ``say`` is told what is done. Gives ``{sessionId, runId, page}`` of each run that was executed. Raises
    ``PromiseBroken`` at the first promise that is not kept, and ``ServiceUnreachable``.
    """
    settings = Settings.from_environ()
    if url is not None:
        return await _told(url, settings.client_key, say)

    from casenotes.entrypoints.http import logs
    from casenotes.entrypoints.http.server import listening

    logs.configure(settings.log_format)
    logging.getLogger().setLevel(logging.WARNING)
    own = evolve(settings, database_url="memory://", context_url="memory://", api_keys_file=None)
    async with listening(own) as here:
        say(f"started a service of its own at {here.url}, with its record in memory")
        runs = await _told(here.url, settings.client_key, say)
    say("The service is gone, and its pages with it: give --url to have them kept by one that stays.")
    return runs


async def _told(url: str, key: str | None, say: Callable[[str], None]) -> list[JsonObject]:
    async with api_at(url, key) as api:
        return [
            {"sessionId": run.session_id, "runId": run.run_id, "page": api.page(run.session_id, run.run_id)}
            for run in await Story(api, say).tell()
        ]

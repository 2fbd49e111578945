"""From the settings to a service with a model."""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta

import pytest
from attrs import evolve
from llm.asking import GOOD_PLAN
from support.http import client_of
from support.model_server import KEY, MODEL, hanging, serving_model, telling
from support.service import Backend

from casenotes.core.errors import InvalidSettings
from casenotes.entrypoints.bootstrap import configured_diagnostician
from casenotes.entrypoints.http.server import listening
from casenotes.entrypoints.settings import Settings


def test_the_settings_make_a_service_with_a_model(memory: Backend) -> None:
    async def play() -> None:
        async with serving_model(GOOD_PLAN, telling("It is the pool [T1].")) as server:
            settings = evolve(memory.settings, llm_base_url=server.base_url, llm_model=MODEL, llm_api_key=KEY)
            async with listening(settings) as here, client_of(here.url) as client:
                made = await client.ask("Why is checkout slow?", flow="graph")
            assert (made["answer"], made["degraded"]) == ("It is the pool [T1].\n", False)
            assert [request["model"] for request in server.asked] == [MODEL] * len(server.asked)
            assert set(server.keys) == {f"Bearer {KEY}"}

    asyncio.run(play())


def test_the_time_out_of_the_settings_bounds_a_call(memory: Backend) -> None:
    async def play() -> None:
        async with serving_model(hanging, hanging) as server:
            settings = evolve(
                memory.settings,
                llm_base_url=server.base_url,
                llm_model=MODEL,
                llm_timeout=timedelta(seconds=0.1),
            )
            async with listening(settings) as here, client_of(here.url) as client:
                made = await client.ask("Why is checkout slow?", flow="chat")
            assert (made["status"], made["degraded"]) == ("SUCCESS", True)
            assert "it did not answer within 0.1 s" in made["answer"]
            assert "DB_POOL_MAX_SIZE" in made["answer"]

    asyncio.run(play())


def test_without_the_extra_the_start_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("casenotes.adapters.agents.llm")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "openai", None)
    settings = Settings(llm_base_url="http://h/v1", llm_model="m")
    with pytest.raises(InvalidSettings, match=r"needs the extra 'llm': pip install 'casenotes\[llm\]'"):
        configured_diagnostician(settings)

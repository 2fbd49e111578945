"""A real model server: it understands what we send, and we what it sends. Its words judge nothing."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from llm.asking import source
from support.service import Backend, Running

from casenotes.adapters.agents.llm import ChatModel, LlmDiagnostician
from casenotes.adapters.agents.llm.failure import TOO_LONG, ModelFailed
from casenotes.adapters.agents.llm.wire import Message, Said, Shape

ROOT = Path(__file__).parents[2]
WHEELS = ROOT / ".venv" / "model"
PATIENCE = 300.0
NUMBERS = Shape(
    "numbers",
    {
        "type": "object",
        "properties": {"lookups": {"type": "array", "items": {"type": "integer"}, "maxItems": 3}},
        "required": ["lookups"],
        "additionalProperties": False,
    },
)

pytestmark = [pytest.mark.model, pytest.mark.xdist_group("model")]


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    """The address of the server, which is gone afterwards."""
    if not WHEELS.is_dir():
        if os.environ.get("CASENOTES_TEST_MODEL"):
            pytest.fail("the model is needed: make model")
        pytest.skip("no model: make test-model")
    program = [sys.executable, str(ROOT / "tests" / "support" / "real_model.py")]
    with subprocess.Popen(
        program,
        env={**os.environ, "PYTHONPATH": str(WHEELS)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        assert server.stdin is not None and server.stdout is not None
        yield server.stdout.readline().strip() + "/v1"
        server.stdin.close()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()


def test_structured_output_and_its_tokens(base_url: str) -> None:
    async def ask() -> Said:
        model = ChatModel(base_url, "smollm2", PATIENCE)
        try:
            return await model.ask([Message("user", "Choose some numbers.")], NUMBERS, PATIENCE)
        finally:
            await model.close()

    said = asyncio.run(ask())
    assert all(isinstance(number, int) for number in json.loads(said.text)["lookups"])
    assert said.input_tokens and said.output_tokens


def test_a_stream_its_end_and_its_tokens(base_url: str) -> None:
    async def tell() -> list[Said]:
        pieces: list[Said] = []
        model = ChatModel(base_url, "smollm2", PATIENCE)
        try:
            async for said in model.tell([Message("user", "Say hello.")], PATIENCE):
                pieces.append(said)
        except ModelFailed as failure:
            assert failure.why == TOO_LONG
        else:
            assert pieces[-1].input_tokens and pieces[-1].output_tokens
        finally:
            await model.close()
        return pieces

    assert "".join(said.text for said in asyncio.run(tell())).strip()


def test_a_run_ends_well_whatever_the_model_says(memory: Backend, base_url: str) -> None:
    async def scenario(here: Running) -> None:
        made = await here.client.ask("Why is web down?", "s-1", flow="graph")
        assert made["status"] == "SUCCESS" and made["answer"]
        steps = (await here.client.trace("s-1", made["runId"])).data["agentSteps"]
        assert any(step["model"] == "smollm2" for step in steps)

    async def play() -> None:
        diagnostician = LlmDiagnostician([source()], ChatModel(base_url, "smollm2", 20.0), 50.0)
        try:
            async with memory.serving(diagnostician) as here:
                await scenario(here)
        finally:
            await diagnostician.close()

    asyncio.run(play())

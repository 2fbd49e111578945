"""Whatever two replicas do, every read of either gives what the specification says."""

from __future__ import annotations

from pathlib import Path

import pytest
from fuzz.fleet import Stores
from fuzz.racing import Racing
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from support.service import Backend

EXAMPLES = {"memory": 60, "sqlite": 5, "postgres": 5}


def holds(backend: Backend, folder: Path, examples: int, steps: int, *, derandomize: bool) -> None:
    stores = Stores(backend, folder)

    class Here(Racing):
        def __init__(self) -> None:
            super().__init__(stores)

    run_state_machine_as_test(
        Here,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            derandomize=derandomize,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate, Phase.shrink],
            database=None,
        ),
    )


def test_two_replicas_agree_with_the_specification(backend: Backend, tmp_path: Path) -> None:
    holds(backend, tmp_path, EXAMPLES[backend.name], 30, derandomize=True)


@pytest.mark.long
def test_two_replicas_agree_with_the_specification_for_long(backend: Backend, tmp_path: Path) -> None:
    holds(backend, tmp_path, 60 * EXAMPLES[backend.name], 60, derandomize=False)

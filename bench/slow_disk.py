"""A disk whose flush takes a given time: what commits cost elsewhere shows on a machine whose own disk is quick.

Only the wait is imitated, by a library that is preloaded into whoever flushes. See docs/performance.md.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from attrs import evolve, frozen

from bench import report
from bench.measuring import Comparison, Measured, Spoilt

ROOT: Final = Path(__file__).parent.parent
_SOURCE: Final = Path(__file__).with_name("slow_disk.c")
_PRELOAD: Final = "LD_PRELOAD"
_FLUSH_US: Final = "CASENOTES_BENCH_FLUSH_US"


class Unavailable(Exception):
    """A disk cannot be slowed here; the message is a line that says why, and what would help."""


@frozen
class SlowDisk:
    """Flushes of so many milliseconds at least, for every program that is started in this environment."""

    library: Path
    flush_ms: float

    def __str__(self) -> str:
        return f"{self.flush_ms:g} ms a flush"

    @classmethod
    def compiled(cls, folder: Path, flush_ms: float) -> SlowDisk:
        """Into this folder. Raises ``Unavailable``."""
        if sys.platform != "linux":
            raise Unavailable("only Linux has LD_PRELOAD")
        compiler, library = shutil.which("cc"), folder / "slow_disk.so"
        if compiler is None:
            raise Unavailable("no C compiler: apt-get install gcc libc6-dev")
        argv = [compiler, "-shared", "-fPIC", "-O2", "-o", str(library), str(_SOURCE), "-ldl"]
        if subprocess.run(argv, capture_output=True).returncode != 0:
            raise Unavailable(f"{compiler} does not compile {_SOURCE.name}: apt-get install gcc libc6-dev")
        return cls(library, flush_ms)

    @classmethod
    def inherited(cls) -> SlowDisk | None:
        """The one that this process was started with."""
        if _FLUSH_US not in os.environ:
            return None
        return cls(Path(os.environ[_PRELOAD]), int(os.environ[_FLUSH_US]) / 1_000)

    @property
    def environment(self) -> Mapping[str, str]:
        return {_PRELOAD: str(self.library), _FLUSH_US: str(round(self.flush_ms * 1_000))}

    def copied(self, folder: Path) -> SlowDisk:
        """The same from a file in this folder, which every user may read who may enter it."""
        library = Path(shutil.copyfile(self.library, folder / self.library.name))
        library.chmod(0o755)
        return evolve(self, library=library)

    def measured(self, part: str, seconds: float, repetitions: int) -> Measured:
        """A part that writes, in a process of its own on this disk; ``Spoilt`` when that process did not slow down."""
        out = self.library.with_name(f"{part}.json")
        argv = [sys.executable, "-m", "bench", "--only", part, "--flush-ms", "0", "--out", str(out)]
        argv += ["--seconds", str(seconds), "--repetitions", str(repetitions)]
        environment = {**os.environ, **self.environment}
        if subprocess.run(argv, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL).returncode != 0:
            raise Spoilt(f"{part} could not be measured on a disk of {self}")
        comparisons, (commits,) = report.read(out)
        for each in comparisons:
            self._require_slowed(each)
        return Measured([evolve(each, disk=str(self)) for each in comparisons], commits)

    def _require_slowed(self, found: Comparison) -> None:
        times = [each.value for each in (*found.floor, *found.product)]
        if found.flushes and min(times) < found.flushes * self.flush_ms:
            raise Spoilt(f"{found.what} took {min(times):.3g} ms: preloading has not slowed every flush")

"""How far a long command is, for whoever waits at a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from casenotes.entrypoints.cli.terminal import one_line

_CELLS = 24


@contextmanager
def progress_bar(stream: TextIO) -> Iterator[Callable[[int, int, str], None]]:
    """A function to be told how many are done, of how many, and the last one's name. Nothing but for a terminal."""
    if not stream.isatty():
        yield lambda done, of, name: None
        return
    drawn = False

    def tell(done: int, of: int, name: str) -> None:
        nonlocal drawn
        filled = _CELLS * done // max(of, 1)
        stream.write(f"\r\x1b[K[{'#' * filled}{'.' * (_CELLS - filled)}] {done}/{of} {one_line(name, 36)}")
        stream.flush()
        drawn = True

    try:
        yield tell
    finally:
        if drawn:
            stream.write("\r\x1b[K")
            stream.flush()

"""Reading files of a folder that others write to: confined, bounded, from the end, and never failing for one file."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from attrs import frozen

MAX_ENTRIES = 5_000
"""Entries of a folder, with those below it, that are looked at."""

MAX_DEPTH = 4


@frozen
class Found:
    """A file: its name within the folder, its size, and when it was written last."""

    name: str
    size: int
    written: float


class LiveFolder:
    """The regular files in a folder and below it; hidden ones and links that lead out of it are passed over."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()

    def files(self, *endings: str, without: Sequence[str] = ()) -> list[Found]:
        """Its files by name. Raises ``OSError`` when the folder itself cannot be read."""
        found: list[Found] = []
        seen = 0
        ahead: list[tuple[Path, int]] = [(self.root, 0)]
        while ahead:
            folder, depth = ahead.pop()
            try:
                entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
            except OSError:
                if folder == self.root:
                    raise
                continue
            for entry in entries:
                seen += 1
                if seen > MAX_ENTRIES:
                    return sorted(found, key=lambda file: file.name)
                if entry.name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    if depth < MAX_DEPTH:
                        ahead.append((Path(entry.path), depth + 1))
                elif (not endings or entry.name.endswith(endings)) and not entry.name.endswith(
                    tuple(without)
                ):
                    self._add(found, Path(entry.path))
        return sorted(found, key=lambda file: file.name)

    def _add(self, found: list[Found], path: Path) -> None:
        try:
            real = path.resolve(strict=True)
            status = real.stat()
        except (OSError, RuntimeError):  # gone by now, or a loop of links
            return
        if real.is_relative_to(self.root) and stat.S_ISREG(status.st_mode):
            name = path.relative_to(self.root).as_posix()
            found.append(Found(name, status.st_size, status.st_mtime))

    def tail(self, name: str, most: int) -> tuple[str, bool]:
        """The last ``most`` bytes of a file, from the start of a line on, and whether there was more before them.

        Raises ``OSError``.
        """
        path = (self.root / name).resolve(strict=True)
        if not path.is_relative_to(self.root):
            raise PermissionError("it leads out of the folder")
        # not to hang on a pipe that took a file's place
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as opened:
            size = os.fstat(opened.fileno()).st_size
            if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
                raise PermissionError("it is no file")
            opened.seek(max(0, size - most))
            content = opened.read(most)
        if size <= most:
            return content.decode("utf-8", "replace"), False
        return content.partition(b"\n")[2].decode("utf-8", "replace"), True

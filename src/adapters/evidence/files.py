"""Reading a pack's folder: nothing outside it, nothing without bound, and errors that name file and field."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from attrs import frozen

from casenotes.core.errors import InvalidEvidence
from casenotes.core.text import Json, JsonObject

MAX_FILE_BYTES = 2 * 1024 * 1024
MAX_PACK_BYTES = 16 * 1024 * 1024
MAX_FILES = 500
"""What a pack may hold at the most. Packs are read whole, once, into memory."""


@frozen
class JsonFile:
    """A JSON file of a pack: its name within the pack, and what it holds."""

    name: str
    value: Json

    def fail(self, where: str, wanted: str) -> InvalidEvidence:
        """The error for a part that is not as it must be, e.g. ``incident.json: alerts[0]: must be an object``."""
        return InvalidEvidence(f"{self.name}: {where}: {wanted}" if where else f"{self.name}: {wanted}")

    def object(self, value: Json, where: str = "") -> JsonObject:
        """The value as an object, or ``InvalidEvidence``."""
        if not isinstance(value, dict):
            raise self.fail(where, "must be an object")
        return value

    def array(self, value: Json, where: str) -> list[Json]:
        """The value as an array, or ``InvalidEvidence``."""
        if not isinstance(value, list):
            raise self.fail(where, "must be an array")
        return value

    def text(self, value: Json, where: str) -> str:
        """The value as text with something in it, or ``InvalidEvidence``."""
        if not isinstance(value, str) or not value.strip():
            raise self.fail(where, "must be text, and not blank")
        return value


@frozen
class TextFile:
    """A text file of a pack: its name within the pack (``logs/payment.jsonl``) and what it holds."""

    name: str
    text: str

    @property
    def stem(self) -> str:
        """The file's own name, without folder and ending."""
        return Path(self.name).stem


class Folder:
    """A pack's folder. Reads only regular files that really lie in it; counts what it reads."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._files = 0
        self._bytes_read = 0

    def json(self, name: str) -> JsonFile:
        """A JSON file, strict (no NaN). Raises ``InvalidEvidence`` when it is missing or not JSON."""
        try:
            text = self._content(name).decode("utf-8")
            return JsonFile(name, cast(Json, json.loads(text, parse_constant=_refuse)))
        except (ValueError, RecursionError):
            # the parser's own words quote the content, which may be a secret
            raise InvalidEvidence(f"{name}: not strict JSON in UTF-8") from None

    def text(self, name: str) -> TextFile:
        """A text file; bytes that are no UTF-8 become U+FFFD."""
        return TextFile(name, self._content(name).decode("utf-8", "replace"))

    def names(self, folder: str, *endings: str) -> Iterator[str]:
        """The names of the files in a sub-folder, in order; none when there is no such folder.

        ``endings`` (``.json``) limits them. Hidden files are passed over.
        """
        inside = self.root / folder
        if not inside.exists() and not inside.is_symlink():
            return
        if not inside.is_dir():
            raise InvalidEvidence(f"{folder}: must be a folder")
        try:
            found = sorted(path.name for path in inside.iterdir())
        except OSError:
            raise InvalidEvidence(f"{folder}: cannot be read") from None
        for name in found:
            if not name.startswith(".") and (not endings or name.endswith(endings)):
                yield f"{folder}/{name}"

    def _content(self, name: str) -> bytes:
        path = self.root / name
        try:
            real = path.resolve(strict=True)
            if not real.is_relative_to(self.root):
                raise InvalidEvidence(f"{name}: leads out of the pack")
            if not real.is_file():
                raise InvalidEvidence(f"{name}: must be a file")
            with real.open("rb") as opened:
                content = opened.read(MAX_FILE_BYTES + 1)
        except FileNotFoundError:
            raise InvalidEvidence(f"{name}: missing") from None
        except (OSError, RuntimeError):  # RuntimeError: a loop of links
            raise InvalidEvidence(f"{name}: cannot be read") from None
        if len(content) > MAX_FILE_BYTES:
            raise InvalidEvidence(f"{name}: larger than {MAX_FILE_BYTES} bytes")
        self._files += 1
        self._bytes_read += len(content)
        if self._files > MAX_FILES:
            raise InvalidEvidence(f"{name}: the pack has more than {MAX_FILES} files")
        if self._bytes_read > MAX_PACK_BYTES:
            raise InvalidEvidence(f"{name}: the pack is larger than {MAX_PACK_BYTES} bytes")
        return content


def _refuse(constant: str) -> Json:
    raise ValueError(constant)

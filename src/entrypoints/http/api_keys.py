"""The keys that open the API."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import structlog
from attrs import define, field

from casenotes.entrypoints.settings import Settings

_SETTLED_NS = 2_000_000_000
"""A file that was changed this long ago shows any further change by its time."""


@define
class ApiKeys:
    """The keys that open ``/api`` and ``/metrics``: those of the settings, and those of a file that may change.

    The file is looked at in each request, in the event loop: one ``stat`` of a local file, and a read when it has
    changed. While it cannot be read, the keys read last stay in force: a file in the middle of being replaced
    neither opens the service nor shuts its callers out. An empty file opens nothing.
    """

    _fixed: frozenset[bytes]
    """The SHA-256 digests of the settings' keys."""

    _file: Path | None
    _of_file: frozenset[bytes] = field(factory=frozenset, init=False)
    _seen: tuple[int, int, int] | None = field(default=None, init=False)
    _unreadable: bool = field(default=False, init=False)

    @classmethod
    def of(cls, settings: Settings) -> ApiKeys:
        return cls(_digests(settings.api_keys), settings.api_keys_file)

    @property
    def required(self) -> bool:
        """Whether callers need a key at all."""
        return bool(self._fixed) or self._file is not None

    def holder(self, authorization: Sequence[str]) -> str | None:
        """Whose key these ``Authorization`` headers carry, as the key's digest; None if they carry none of ours.

        Each key is compared, in constant time. More than one header carries none: who is in front of us might have
        looked at another than we.
        """
        scheme, _, given = authorization[0].partition(" ") if len(authorization) == 1 else ("", "", "")
        offered = _digest(given.strip())
        matches = [hmac.compare_digest(offered, known) for known in self._current()]
        return offered.hex() if any(matches) and scheme.lower() == "bearer" else None

    def _current(self) -> frozenset[bytes]:
        if self._file is not None:
            try:
                self._read_again(self._file)
            except (OSError, UnicodeDecodeError):
                if not self._unreadable:
                    structlog.get_logger("casenotes.http").warning("the file of API keys cannot be read")
                self._unreadable = True
            else:
                self._unreadable = False
        return self._fixed | self._of_file

    def _read_again(self, file: Path) -> None:
        stat = file.stat()
        seen = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        if seen == self._seen:
            return
        lines = file.read_text("utf-8-sig").splitlines()
        self._of_file = _digests(key for line in lines if (key := line.strip()))
        # Of a file just written, the next change may carry the same time: it is read once more.
        self._seen = seen if abs(time.time_ns() - stat.st_mtime_ns) > _SETTLED_NS else None


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()


def _digests(keys: Iterable[str]) -> frozenset[bytes]:
    return frozenset(map(_digest, keys))

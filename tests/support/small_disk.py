"""A program on a disk of its own, small or read-only: ``python -m support.small_disk FOLDER SIZE [MODULE ...]``.

The disk is mounted over the folder, or the folder itself read-only where the size is 0, in a mount namespace that ends
with the program: nothing is left to be unmounted. Others look into it below ``/proc/<pid>/root``.
"""

from __future__ import annotations

import ctypes
import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.process import TESTS

_NEW_MOUNTS, _NEW_USER = 0x00020000, 0x10000000
_READ_ONLY, _REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 0x1, 0x20, 0x1000, 0x4000, 0x40000

MODULE = "support.small_disk"


def require_small_disks(folder: Path) -> None:
    """Skip the test where this user may not mount anything, not even for itself."""
    tried = subprocess.run(
        [sys.executable, "-m", MODULE, str(folder), "4096"],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        capture_output=True,
    )
    if tried.returncode != 0:
        pytest.skip("no mount namespace for this user")


@contextmanager
def filled(folder: Path) -> Iterator[None]:
    """Take up all the space that is left on the disk of this folder, for the length of the block."""
    filler = folder / "filler"
    try:
        with filler.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(1024))
            except OSError as full:
                if full.errno != errno.ENOSPC:
                    raise
        yield
    finally:
        filler.unlink()


def _mount(folder: str, size: int) -> None:
    user, group = os.geteuid(), os.getegid()
    libc = ctypes.CDLL(None, use_errno=True)

    def call(name: str, *values: object) -> None:
        if getattr(libc, name)(*values) != 0:
            raise OSError(ctypes.get_errno(), f"{name} failed")

    call("unshare", _NEW_MOUNTS if user == 0 else _NEW_MOUNTS | _NEW_USER)
    if user != 0:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    call("mount", b"none", b"/", None, ctypes.c_ulong(_RECURSIVE | _PRIVATE), None)
    where = folder.encode()
    if size == 0:
        call("mount", where, where, None, ctypes.c_ulong(_BIND), None)
        call("mount", None, where, None, ctypes.c_ulong(_BIND | _REMOUNT | _READ_ONLY), None)
    else:
        call("mount", b"tmpfs", where, b"tmpfs", ctypes.c_ulong(0), f"size={size}".encode())


if __name__ == "__main__":
    _mount(sys.argv[1], int(sys.argv[2]))
    if program := sys.argv[3:]:
        os.execv(sys.executable, [sys.executable, "-m", *program])

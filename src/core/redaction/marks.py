"""What stands in the place of a secret."""

from __future__ import annotations

import re

MARK = re.compile(r"\[redacted:[a-z0-9-]{1,40}\]")
"""Any mark. Only the whole of one counts: text that merely begins like a mark hides nothing."""


def mark(kind: str) -> str:
    """The mark of this kind of secret."""
    return f"[redacted:{kind}]"

"""``python -m casenotes`` is the command ``casenotes``."""

from __future__ import annotations

import sys

from casenotes.entrypoints.cli import main

if __name__ == "__main__":
    sys.exit(main())

"""What the state machine's assertions compared is told, as that of tests is."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("fuzz.machine", "fuzz.racing", "fuzz.watched")

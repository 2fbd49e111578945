"""How many promises were kept by each adapter, told at the end of the run.

The terminal hears of every test, whichever process ran it, so that the tally is right under xdist too.
"""

from __future__ import annotations

import re
from collections import Counter

import pytest

_JUDGED = re.compile(r"(?:^|/)contract/test_\w+\.py::Test(?P<adapter>\w+)::")
_OUTCOMES = ("passed", "failed", "error", "skipped")


class ContractTally:
    """Counts tests by the adapter that they judge and by their outcome."""

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        counts: dict[str, Counter[str]] = {}
        for outcome in _OUTCOMES:
            for report in terminalreporter.getreports(outcome):
                if judged := _JUDGED.search(getattr(report, "nodeid", "")):
                    counts.setdefault(judged["adapter"], Counter())[outcome] += 1
        if counts:
            terminalreporter.section("contract")
        for adapter, outcomes in sorted(counts.items()):
            told = ", ".join(f"{outcomes[outcome]} {outcome}" for outcome in _OUTCOMES if outcomes[outcome])
            terminalreporter.write_line(f"{adapter:<24} {told}")


def register(config: pytest.Config) -> None:
    """Add the tally to a run, once."""
    if not config.pluginmanager.has_plugin("contract-tally"):
        config.pluginmanager.register(ContractTally(), "contract-tally")

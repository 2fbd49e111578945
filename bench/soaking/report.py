"""What a soak found, as text and as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attrs import asdict, frozen

from bench.soaking.calls import CallLog
from bench.soaking.faults import NOTHING
from bench.soaking.gauges import Footprint, Gauges

MOST_SHOWN = 40
PERCENTILES = (50, 90, 99)


@frozen
class Soak:
    """All figures. ``wrong`` is what was lost, mixed or unsound; times are in seconds, latencies in milliseconds."""

    machine: dict[str, object]
    asked: dict[str, object]
    requests: int
    seconds: float
    quiet_after: float | None
    judged_seconds: float
    faults: Sequence[str]
    log: CallLog
    gauges: Gauges
    conversations: int
    erased: int
    runs: Counter[str]
    feedbacks: int
    degraded_contexts: Counter[str]
    errors_logged: Counter[str]
    verify: str
    wrong: Sequence[str]

    @property
    def footprints(self) -> list[Footprint]:
        return self.gauges.footprints()

    def as_json(self) -> dict[str, Any]:
        return {
            "machine": self.machine,
            "asked": self.asked,
            "requests": self.requests,
            "seconds": round(self.seconds, 1),
            "requestsPerSecond": round(self.requests / self.seconds, 1),
            "faults": list(self.faults),
            "latencyMs": {kind: latencies(times) for kind, times in sorted(self.log.seconds.items())},
            "refused": [
                {"kind": kind, "outcome": outcome, "during": during, "attempts": number}
                for (kind, outcome, during), number in sorted(self.log.refused.items())
            ],
            "told": {
                "conversations": self.conversations,
                "erased": self.erased,
                "runs": dict(self.runs),
                "feedbacks": self.feedbacks,
                "degradedContexts": dict(self.degraded_contexts),
            },
            "memoryMb": [asdict(one) | {"grew": one.grew} for one in self.footprints],
            "postgres": {
                "looks": self.gauges.looks,
                "mostConnections": self.gauges.most_connections,
                "longestIdleInTransactionSeconds": round(self.gauges.longest_idle, 3),
                "forgottenTransactions": self.gauges.stuck,
            },
            "errorsLogged": dict(self.errors_logged),
            "quietAfterSeconds": self.quiet_after,
            "judgedSeconds": round(self.judged_seconds, 1),
            "verify": self.verify,
            "wrong": list(self.wrong),
        }

    def write(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(self.as_json(), indent=2) + "\n")

    def text(self) -> str:
        return "\n".join(
            [*self._traffic(), "", *self._refusals(), "", *self._holdings(), "", *self._verdict()]
        )

    def _traffic(self) -> list[str]:
        head = (
            f"{'request':<16}{'answered':>9}"
            + "".join(f"{f'p{p}':>9}" for p in PERCENTILES)
            + f"{'max ms':>9}"
        )
        lines = [
            f"{self.requests} requests in {self.seconds:.0f} s, {self.requests / self.seconds:.1f}/s; "
            f"faults: {', '.join(self.faults)}",
            "",
            head,
        ]
        for kind, times in sorted(self.log.seconds.items()):
            found = latencies(times)
            figures = "".join(f"{found[name]:>9.1f}" for name in (*(f"p{p}" for p in PERCENTILES), "max"))
            lines.append(f"{kind:<16}{len(times):>9}{figures}")
        return lines

    def _refusals(self) -> list[str]:
        if not self.log.refused:
            return ["every attempt was answered"]
        lines = [f"{'attempts that were made again':<32}{'outcome':<26}{'number':>7}  during"]
        for (kind, outcome, during), number in sorted(self.log.refused.items()):
            lines.append(f"{kind:<32}{outcome:<26}{number:>7}  {during}")
        return lines

    def _holdings(self) -> list[str]:
        lines = [
            f"memory of {one.replica}: {one.first_quarter:.1f} MB in the first quarter after warm-up, "
            f"{one.last_quarter:.1f} MB in the last, {one.peak:.1f} MB at the most"
            f" ({'GREW' if one.grew else 'flat'}); {one.files} open files at the end"
            for one in self.footprints
        ]
        gauges = self.gauges
        lines.append(
            f"PostgreSQL: {gauges.most_connections} connections at the most in {gauges.looks} looks; "
            f"{gauges.stuck} forgotten transactions; the longest pause in one was {gauges.longest_idle:.2f} s"
        )
        contexts = ", ".join(
            f"{number} during: {during}" for during, number in self.degraded_contexts.items()
        )
        lines.append(f"answers without their earlier turns: {contexts or 'none'}")
        lines += [f"logged {number} times: {what}" for what, number in self.errors_logged.most_common()]
        return lines

    def _verdict(self) -> list[str]:
        runs = ", ".join(f"{number} {status}" for status, number in self.runs.most_common())
        lines = [
            f"told: {self.conversations} conversations ({self.erased} erased), {runs} runs, "
            f"{self.feedbacks} feedbacks; all asked for again in {self.judged_seconds:.0f} s",
            f"casenotes verify: {self.verify}",
        ]
        if not self.wrong:
            return [*lines, "nothing was lost, nothing was mixed, nothing grew"]
        more = len(self.wrong) - MOST_SHOWN
        shown = [f"WRONG: {one}" for one in self.wrong[:MOST_SHOWN]]
        return [*lines, *shown, *([f"and {more} more"] if more > 0 else [])]


def latencies(seconds: Sequence[float]) -> dict[str, float]:
    """Milliseconds."""
    ordered = sorted(seconds)
    found = {f"p{p}": ordered[min(len(ordered) * p // 100, len(ordered) - 1)] for p in PERCENTILES}
    found["max"] = ordered[-1]
    return {name: round(value * 1000, 1) for name, value in found.items()}


def calm_errors(log: CallLog) -> list[str]:
    """Attempts that failed while nothing was wrong, and answers that are never right."""
    return [
        f"{number} x {kind} was answered {outcome} during: {during}"
        for (kind, outcome, during), number in sorted(log.refused.items())
        if during == NOTHING or outcome == "500"
    ]

"""What Kubernetes says of containers: why they wait, how they ended, how often they restarted, what they may use."""

from __future__ import annotations

import re
from collections.abc import Sequence

from attrs import field, mutable

from casenotes.adapters.agents.findings import ranking
from casenotes.adapters.agents.findings.model import Finding, Kind, Role, code
from casenotes.adapters.agents.findings.outline import Entry, Path

_SIGNALS = {
    129: "SIGHUP",
    130: "SIGINT",
    131: "SIGQUIT",
    132: "SIGILL",
    134: "SIGABRT",
    135: "SIGBUS",
    136: "SIGFPE",
    137: "SIGKILL",
    139: "SIGSEGV",
    141: "SIGPIPE",
    143: "SIGTERM",
}
_MEANINGS = {
    1: "a failure that the program reported",
    2: "usually a wrong argument or a shell script that cannot be read",
    126: "the command cannot be run",
    127: "the command was not found",
    128: "the program gave an invalid exit code",
}
_HARMLESS_WAITS = frozenset({"containercreating", "podinitializing"})
_BOXES = frozenset({"Containers", "Init Containers", "Ephemeral Containers"})
_STATUS_LISTS = frozenset({"containerStatuses", "initContainerStatuses"})
_SPEC_LISTS = frozenset({"containers", "initContainers"})
_STATES = {"State": "state", "Last State": "lastState"}


@mutable
class _Container:
    name: str = ""
    said: dict[Path, str] = field(factory=dict)

    def get(self, *path: str) -> str:
        return self.said.get(path, "")


def exit_meaning(exit_code: int) -> str:
    """What an exit code tells, in words; empty when it tells nothing."""
    if exit_code in _SIGNALS:
        return (
            f"{_SIGNALS[exit_code]}: killed from outside" if exit_code in (137, 143) else _SIGNALS[exit_code]
        )
    return _MEANINGS.get(exit_code, "")


def container_findings(subject: str, entries: Sequence[Entry]) -> list[Finding]:
    """What ``kubectl describe``, YAML or JSON of a pod or workload shows of its containers."""
    found: list[Finding] = []
    for container in _containers(entries).values():
        found += _state_findings(subject, container)
        found += _restarts(subject, container)
        found += _limits(subject, container)
    return found


def _containers(entries: Sequence[Entry]) -> dict[str, _Container]:
    """The containers by name; status and specification of one container come together here."""
    by_place: dict[Path, _Container] = {}
    for entry in entries:
        for at, part in enumerate(entry.path[:-1]):
            inner = entry.path[at + 1 :]
            if part in _BOXES:
                container = by_place.setdefault(entry.path[: at + 2], _Container(inner[0]))
                container.said[_described(inner[1:])] = entry.value
                break
            if part in _STATUS_LISTS | _SPEC_LISTS and inner[0].startswith("[") and len(inner) > 1:
                container = by_place.setdefault(entry.path[: at + 2], _Container())
                container.said[inner[1:]] = entry.value
                if inner[1:] == ("name",):
                    container.name = entry.value
                break
    named: dict[str, _Container] = {}
    for container in by_place.values():
        named.setdefault(container.name, _Container(container.name)).said.update(container.said)
    return named


def _described(path: Path) -> Path:
    """The path of a ``describe`` entry in the words of the API."""
    if not path:
        return ()
    if path[0] == "Restart Count":
        return ("restartCount",)
    if path[0] in ("Limits", "Requests") and len(path) == 2:
        return ("resources", path[0].casefold(), path[1])
    if path[0] in _STATES:
        return (_STATES[path[0]], *(part[:1].casefold() + part[1:].replace(" ", "") for part in path[1:]))
    return path


def _state_findings(subject: str, container: _Container) -> list[Finding]:
    found: list[Finding] = []
    for state, words in (("state", "is"), ("lastState", "was last")):
        waiting = container.get(state, "waiting", "reason")
        ended = container.get(state, "terminated", "reason")
        exit_code = container.get(state, "terminated", "exitCode")
        if container.get(state) == "Waiting":
            waiting = container.get(state, "reason")
        if container.get(state) == "Terminated":
            ended, exit_code = container.get(state, "reason"), container.get(state, "exitCode")
        if waiting and waiting.casefold() not in _HARMLESS_WAITS:
            said = f"Container {code(container.name)}{_of(subject)} is waiting: {code(waiting)}"
            found.append(Finding(Kind.CONTAINER, Role.SYMPTOM, subject, said, ranking.WAITING))
        if (ended or exit_code) and not _ended_well(ended, exit_code):
            found.append(_terminated(subject, container, words, ended, exit_code))
    return found


def _ended_well(reason: str, exit_code: str) -> bool:
    return exit_code == "0" or (not exit_code and reason == "Completed")


def _terminated(subject: str, container: _Container, words: str, reason: str, exit_code: str) -> Finding:
    text = f"Container {code(container.name)}{_of(subject)} {words} terminated"
    text += f": {code(reason)}" if reason else ""
    if exit_code:
        meaning = exit_meaning(int(exit_code)) if re.fullmatch(r"\d{1,4}", exit_code) else ""
        text += f", exit code {exit_code}" + (f" ({meaning})" if meaning else "")
    killed_for_memory = reason == "OOMKilled"
    limit = container.get("resources", "limits", "memory")
    if killed_for_memory:
        text += ": it ran out of memory (OOM)"
        text += f"; its memory limit is {code(limit)}" if limit else ""
    weight = ranking.OUT_OF_MEMORY if killed_for_memory else ranking.TERMINATED
    role = Role.CAUSE if killed_for_memory else Role.SYMPTOM
    action = f"read the last log lines of container {code(container.name)} before it ended"
    if killed_for_memory:
        action = f"find what fills the memory of container {code(container.name)}, or raise its memory limit"
    return Finding(Kind.CONTAINER, role, subject, text, weight, action=action)


def _restarts(subject: str, container: _Container) -> list[Finding]:
    count = container.get("restartCount")
    if not count.isdecimal() or int(count) == 0:
        return []
    times = "once" if int(count) == 1 else f"{count} times"
    text = f"Container {code(container.name)}{_of(subject)} was restarted {times}"
    return [Finding(Kind.CONTAINER, Role.SYMPTOM, subject, text, ranking.RESTARTS)]


def _limits(subject: str, container: _Container) -> list[Finding]:
    limits = {
        path[2]: value
        for path, value in container.said.items()
        if len(path) == 3 and path[:2] == ("resources", "limits") and value
    }
    if not limits:
        return []
    said = ", ".join(f"{_resource(name)} limit {code(value)}" for name, value in limits.items())
    text = f"Container {code(container.name)}{_of(subject)} has {said}"
    action = f"compare what container {code(container.name)} uses with its limits, and raise the limit that it meets"
    return [Finding(Kind.CONTAINER, Role.CONTEXT, subject, text, ranking.LIMITS, action=action)]


def _resource(name: str) -> str:
    return "CPU" if name == "cpu" else name


def _of(subject: str) -> str:
    return f" of {code(subject)}" if subject else ""

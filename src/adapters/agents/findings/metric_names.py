"""What a metric's name says: its words, its unit, its family, and which direction is bad."""

from __future__ import annotations

import re
from enum import StrEnum

from attrs import frozen


class Family(StrEnum):
    """A resource can be why something is slow; latency, errors and traffic show that it is."""

    RESOURCE = "resource"
    ERRORS = "errors"
    LATENCY = "latency"
    TRAFFIC = "traffic"
    OTHER = "other"


@frozen
class Meaning:
    """How to speak of a metric. ``unit`` is ``%``, ``s``, ``B`` or empty."""

    words: str
    unit: str
    family: Family
    bad_when_high: bool = True

    @property
    def sentence_start(self) -> str:
        """The words as a sentence begins with them; ``p90`` stays as it is."""
        quantile = self.words[:1] == "p" and self.words[1:2].isdigit()
        return self.words if quantile else self.words[:1].upper() + self.words[1:]

    def show(self, value: float) -> str:
        """A value with its unit, to three significant digits."""
        if self.unit == "s" and 0 < abs(value) < 1:
            return f"{_short(value * 1000)} ms"
        if self.unit == "B":
            return _bytes(value)
        return f"{_short(value)} {self.unit}".rstrip()


_FAMILIES = (
    (
        Family.RESOURCE,
        r"cpu|mem(ory)?|heap|disk|filesystem|inode|pool|connections?|threads?|queue|backlog|pending|waiting|lag"
        r"|throttl\w*|saturation|gc|fds?|descriptors|swap|load|restarts?|oom|locks?|iowait|evictions?",
    ),
    (Family.ERRORS, r"errors?|fail(ed|ures?)?|5xx|4xx|exceptions?|timeouts?|rejected|dropped|retries"),
    (Family.LATENCY, r"latency|duration|response|delay|p\d{2,3}"),
    (Family.TRAFFIC, r"requests?|rps|qps|throughput|receive|transmit|network|calls|traffic"),
)
_LOW_IS_BAD = re.compile(
    r"(?:^|_)(free|available|avail|idle|remaining|max|limit|capacity|ready|up|healthy)(?:_|$)"
)
_UNITS = ((r"percent(?:age)?", "%"), (r"seconds", "s"), (r"bytes", "B"))
_NAMED = (
    (r"cpu", "CPU usage"),
    (r"memory|mem", "memory usage"),
    (r"heap", "heap usage"),
    (r"disk", "disk usage"),
)
_SPOKEN = {"db": "DB", "cpu": "CPU", "gc": "GC", "http": "HTTP", "io": "I/O", "rps": "requests per second"}
_DROPPED = frozenset({"pod", "container", "service", "total", "usage", "used", "seconds", "bytes", "percent"})


def meaning_of(metric: str) -> Meaning:
    """What the name of a metric says, by the habits of Prometheus names; what holds a space is words already."""
    if " " in metric.strip():
        return Meaning(metric.strip(), "", Family.OTHER)
    name = re.sub(r"[^a-z0-9]+", "_", metric.casefold()).strip("_")
    unit = next((unit for word, unit in _UNITS if _has(name, word)), "")
    family = next((family for family, words in _FAMILIES if _has(name, words)), Family.OTHER)
    return Meaning(_words(name), unit, family, not _LOW_IS_BAD.search(name))


def _has(name: str, words: str) -> bool:
    return re.search(rf"(?:^|_)(?:{words})(?:_|$)", name) is not None


def _words(name: str) -> str:
    rest = [word for word in name.split("_") if word not in _DROPPED]
    for word, spoken in _NAMED:
        if _has(name, word) and len(rest) <= 1:
            return spoken
    if _has(name, "cpu") and not _has(name, "throttl\\w*|limit|request"):
        return "CPU usage"
    quantile = [word for word in rest if re.fullmatch(r"p\d{2,3}", word)]
    said = quantile + [_SPOKEN.get(word, word) for word in rest if word not in quantile]
    return " ".join(said) or name


def _short(value: float) -> str:
    if value != 0 and not 1e-3 <= abs(value) < 1e6:
        return f"{value:.3g}"
    digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 100 else 2 if abs(value) >= 10 else 3
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _bytes(value: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024:
            return f"{_short(value)} {unit}"
        value /= 1024
    return f"{_short(value)} TiB"

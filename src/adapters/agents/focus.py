"""What a question is about: its subjects, its alerts, and what kind of evidence it asks for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum

from attrs import frozen

from casenotes.adapters.agents.alerts import Alert
from casenotes.adapters.agents.findings.names import mentions, plain
from casenotes.core.model import MessagePair


class Topic(StrEnum):
    """A kind of evidence that a question asks for by name."""

    LOGS = "logs"
    METRICS = "metrics"
    RUNBOOK = "runbook"
    ALERTS = "alerts"
    EVENTS = "events"
    CHANGES = "changes"
    PODS = "pods"


@frozen
class Focus:
    """What a run is about. ``subjects`` is empty when the question names none: then everything may matter.

    ``carried`` says that the subjects come from earlier turns, ``unknown`` that nothing known has their name.
    Without ``operational`` the question is about nothing that can be looked at here.
    """

    question: str
    subjects: tuple[str, ...] = ()
    alerts: tuple[Alert, ...] = ()
    topics: frozenset[Topic] = frozenset()
    words: frozenset[str] = frozenset()
    carried: bool = False
    operational: bool = True
    unknown: bool = False

    @property
    def narrow(self) -> bool:
        """Whether one kind of evidence is asked for by name, and no cause."""
        return bool(self.topics - {Topic.PODS}) and _ASKS_WHY.search(self.question) is None

    @property
    def described(self) -> str:
        """What it is about, in one line."""
        about = (
            ", ".join(self.subjects)
            or ", ".join(alert.name for alert in self.alerts)
            or "anything that fails"
        )
        return f"about {about}" + (" (from earlier turns)" if self.carried else "")

    def speaks_of(self, stem: str) -> bool:
        """Whether the question or its alerts have a word that begins so."""
        words = self.words.union(*(alert.words for alert in self.alerts))
        return any(word.startswith(stem) for word in words)


_WORD = re.compile(r"[a-z][a-z0-9]{2,}")
_TOPICS = (
    (Topic.LOGS, r"\blog(?:s|ged|ging)?\b|\bstack ?traces?\b|\berror lines?\b"),
    (Topic.METRICS, r"\bmetrics?\b|\bgraphs?\b|\bcpu\b|\bmemory\b|\blatenc(?:y|ies)\b|\busage\b"),
    (
        Topic.RUNBOOK,
        r"\brunbooks?\b|\bplaybooks?\b|\bhow (?:do|can|should) (?:i|we) (?:fix|mitigate)\b|\bmitigat",
    ),
    (Topic.ALERTS, r"\balerts?\b|\bfiring\b|\bpaged?\b"),
    (Topic.EVENTS, r"\bevents?\b|\bwarnings?\b"),
    (Topic.CHANGES, r"\bchange[sd]?\b|\bdeploy(?:s|ed|ment|ments)?\b|\brollouts?\b|\breleased?\b|\bconfig"),
    (Topic.PODS, r"\bwhich (?:pods?|containers?|services?|instances?)\b|\bwhat pods?\b"),
)
_OPERATIONAL = re.compile(
    r"\b(?:why|cause[sd]?|root|slow\w*|fail\w*|errors?|down|broken?|crash\w*|restart\w*|oom\w*|kill\w*|latency|cpu"
    r"|memory|disk|pods?|containers?|services?|nodes?|jobs?|deploy\w*|cluster|namespace|incidents?|outages?|alert\w*"
    r"|firing|happen\w*|wrong|issues?|problems?|unhealthy|health\w*|ok(?:ay)?|status|timeouts?|throttl\w*|logs?"
    r"|metrics?|events?|runbooks?|mitigat\w*|degraded|unavailable|pending|stuck|evict\w*|schedul\w*|traffic|requests?"
    r"|database|queue|changed?|rollout|diagnos\w*|investigat\w*|look into)\b",
    re.I,
)
_ASKS_WHY = re.compile(
    r"\b(?:why|cause[sd]?|reasons?|wrong|explain|happen\w*|diagnos\w*|investigat\w*)\b", re.I
)
_THINGS = r"service|pod|job|deployment|container|database|db|queue|cronjob|statefulset|node"
_NAMED_THING = re.compile(
    rf"\b([a-z][a-z0-9._-]+)\s+(?:{_THINGS})\b"
    rf"|\b(?:{_THINGS})\s+(?:named |called )?[`'\"]?([a-z][a-z0-9._-]*[-0-9][a-z0-9._-]*)"
    r"|\b(?:is|are|does|did|has)\s+(?:the\s+)?([a-z][a-z0-9._-]+)\s+"
    r"(?:ok|okay|up|down|slow|failing|broken|healthy|unhealthy|crash\w*|restart\w*|fail\w*)\b",
    re.I,
)
_NO_NAMES = frozenset(
    _WORD.findall(
        "which what that this the any some our your each every all other same new old main whole application app "
        "system site website everything anything something nothing it they there production prod cluster one first "
        "service services pod pods job jobs container containers affected failing broken slow crashing"
    )
).union({"it", "db", "is", "a"})
_POINTS_BACK = re.compile(
    r"\b(?:it|its|it's|that|this|they|them|their|there|those|these|same|and|also|again)\b", re.I
)
_EMPTY_WORDS = frozenset(
    _WORD.findall(
        "the and what why how who when where which does did was were are has have had this that these those its "
        "with from for about into can could should would you your our any all some there here now please tell "
        "show happen happened not but just since few ago minutes hours today"
    )
)
_SPEEDS = ("slow", "latency", "duration", "p90", "p95", "p99")


def understand(
    question: str, conversation: Sequence[MessagePair], names: Iterable[str], alerts: Sequence[Alert]
) -> Focus:
    """What this question is about.

    ``names`` are the things that can be looked at. Subjects are those that the question names; else those of the
    alerts that it names; else, when it points back, those of the latest earlier turn that had any; else none, and
    the alerts that share words with the question, or all of them, are in focus.
    """
    known = tuple(dict.fromkeys(name for name in (*names, *_alert_subjects(alerts)) if len(name) > 2))
    words = frozenset(_WORD.findall(question.casefold())) - _EMPTY_WORDS
    topics = frozenset(topic for topic, pattern in _TOPICS if re.search(pattern, question, re.I))
    named = _named(question, known)
    about = tuple(alert for alert in alerts if alert.named and _names_alert(question, alert))
    carried: tuple[str, ...] = ()
    if not named and not about and _may_follow(question):
        carried = _from_turns(conversation, known, alerts)
    subjects = _distinct((*named, *_alert_subjects(about), *carried))
    if subjects and not about:
        about = tuple(alert for alert in alerts if concerns(alert, subjects))
    unknown = () if subjects or about else _unknown(question, alerts)
    subjects = subjects or unknown
    shared = tuple(alert for alert in alerts if _kin(words) & _kin(alert.words))
    if not subjects and not about:
        about = shared or tuple(alerts)
    operational = bool(subjects or shared or _OPERATIONAL.search(question) or _has_alert(question, alerts))
    return Focus(question, subjects, about, topics, words, bool(carried), operational, bool(unknown))


def focus_on(alert_group: Sequence[Alert]) -> Focus:
    """The focus of a run of alerts of one kind."""
    words = frozenset().union(*(alert.words for alert in alert_group))
    return Focus(
        alert_group[0].name, _distinct(_alert_subjects(alert_group)), tuple(alert_group), words=words
    )


def _alert_subjects(alerts: Iterable[Alert]) -> tuple[str, ...]:
    return tuple(subject for alert in alerts for subject in alert.subjects)


def _named(text: str, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for name in names if mentions(text, name))


def _names_alert(question: str, alert: Alert) -> bool:
    return re.search(rf"(?<!\w){re.escape(alert.name)}(?!\w)", question, re.I) is not None


def _has_alert(question: str, alerts: Iterable[Alert]) -> bool:
    return any(alert.named and _names_alert(question, alert) for alert in alerts)


def _unknown(question: str, alerts: Sequence[Alert]) -> tuple[str, ...]:
    """Names that the question gives to things that nothing known goes by."""
    spoken_of = frozenset().union(*(alert.words | {alert.namespace.casefold()} for alert in alerts))
    found = (next(filter(None, match.groups())) for match in _NAMED_THING.finditer(question))
    return _distinct(name for name in found if name.casefold() not in _NO_NAMES | spoken_of)


def _may_follow(question: str) -> bool:
    return bool(_POINTS_BACK.search(question) or _OPERATIONAL.search(question))


def _from_turns(
    conversation: Sequence[MessagePair], names: Sequence[str], alerts: Sequence[Alert]
) -> tuple[str, ...]:
    for turn in reversed(conversation):
        asked = _named(turn.question, names)
        asked += _alert_subjects(
            alert for alert in alerts if alert.named and _names_alert(turn.question, alert)
        )
        told = _named(turn.answer.lstrip().partition("\n")[0], names)
        if asked or told:
            return _distinct((*asked, *told))
    return ()


def concerns(alert: Alert, subjects: Iterable[str]) -> bool:
    """Whether an alert is about one of these."""
    return any(plain(own) == plain(subject) for own in alert.subjects for subject in subjects)


def _kin(words: frozenset[str]) -> frozenset[str]:
    """The words by their stems; words of speed are one."""
    kin = {"slow" if word.startswith(_SPEEDS) else word.removesuffix("s") for word in words}
    return frozenset(word for word in kin if len(word) > 3)


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))

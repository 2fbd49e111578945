"""What the service told the driver, to be held against what it tells later."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from hashlib import sha256
from typing import Any

from attrs import define, field

from bench.soaking.calls import Answer

NONCE = re.compile(r"\bq\d+q\b")
"""In every question, another in each; nowhere else."""

SLACK_SECONDS = 1.0
"""How long after its client lost it a request that nobody answered may still have been carried out."""


@define
class Asked:
    """A question that was asked under one idempotency key, so that exactly one run answers it; and its answer."""

    question: str
    nonce: str
    kind: str
    quoted: bool
    """Whether its answer repeats the nonce. No other question's may stand there in any case."""

    first_sent: float = field(default=0.0, init=False)
    received: float = field(default=float("inf"), init=False)
    run_id: str | None = field(default=None, init=False)
    status: str | None = field(default=None, init=False)
    answer: str | None = field(default=None, init=False)
    recorded: str | None = field(default=None, init=False)
    """The digest of its steps and tool calls, from when they were first seen."""


@define
class Rated:
    """A feedback that was accepted: to ``run_id``, with a comment that no other has."""

    run_id: str
    rating: str
    comment: str
    first_sent: float
    sent: float
    received: float
    uncertain: bool
    chosen: bool
    """Whether the driver named the run; else the service took the latest."""


@define
class Conversation:
    """One session. ``in_flight`` requests of the driver are about it."""

    session_id: str
    asked: dict[str, Asked] = field(factory=dict, init=False)
    """By question."""

    rated: list[Rated] = field(factory=list, init=False)
    in_flight: int = field(default=0, init=False)
    erased: float | None = field(default=None, init=False)

    @property
    def told(self) -> list[Asked]:
        return [asked for asked in self.asked.values() if asked.run_id is not None]

    def later_told(self, query: str, before: float) -> list[Asked]:
        """The told runs that are certainly later than the run of this query, and were told before this moment."""
        received = self.asked[query].received
        return [other for other in self.told if other.first_sent > received and other.received < before]

    def last_words(self, run_id: str) -> list[Rated]:
        """The feedbacks that may be the last word on a run; none when none was given."""
        on_run = [rated for rated in self.rated if rated.run_id == run_id]
        return [one for one in on_run if not any(other.sent > one.received for other in on_run)]

    def stray_words(self, run_id: str) -> list[Rated]:
        """Feedbacks whose first attempt was lost: it may have reached what was the latest run then."""
        last = max((rated.sent for rated in self.last_words(run_id)), default=0.0)
        return [
            rated
            for rated in self.rated
            if rated.uncertain and (not rated.chosen or rated.run_id == run_id)
            if rated.received + SLACK_SECONDS >= last
        ]


@define
class Memory:
    """All conversations, and what was found to be wrong."""

    conversations: dict[str, Conversation] = field(factory=dict, init=False)
    wrong: list[str] = field(factory=list, init=False)

    def add(self, session_id: str) -> Conversation:
        return self.conversations.setdefault(session_id, Conversation(session_id))

    def require(self, good: bool, wrong: str) -> bool:
        """Note what is wrong unless it is good."""
        if not good:
            self.wrong.append(wrong)
        return good

    def answered(self, conversation: Conversation, asked: Asked, answer: Answer) -> None:
        """Hold an answer to its question, and remember it."""
        where = f"{asked.kind} {asked.nonce} in {conversation.session_id}"
        if not self.require(answer.status == 200, f"{where}: answered {answer.status}"):
            return
        told = answer.data
        text = told["answer"]
        self.require(told["sessionId"] == conversation.session_id, f"{where}: of {told['sessionId']}")
        self.require(
            told["success"] == (text is not None), f"{where}: success without answer, or the reverse"
        )
        if text is not None:
            quoted = not asked.quoted or asked.nonce in text
            self.require(quoted, f"{where}: the answer of {told['runId']} does not name it")
            self.require(set(NONCE.findall(text)) <= {asked.nonce}, f"{where}: the answer names another")
        asked.first_sent, asked.received = answer.first_sent, answer.received
        asked.run_id, asked.status, asked.answer = told["runId"], told["status"], text

    def traced(
        self, conversation: Conversation, trace: dict[str, Any], sent: float, *, final: bool = False
    ) -> Asked | None:
        """Hold a trace of a run, asked for at ``sent``, to what is known of it; ``final`` when nothing runs any more.

        Gives what the run answers, ``None`` when nobody asked that.
        """
        session_id, run = conversation.session_id, trace["run"]
        where = f"the trace of {trace['runId']} in {session_id}"
        asked = conversation.asked.get(run["query"])
        if not self.require(asked is not None, f"{where}: nobody asked {run['query']!r} there"):
            return None
        assert asked is not None
        self.require(trace["sessionId"] == run["sessionId"] == session_id, f"{where}: of {run['sessionId']}")
        self.require(trace["runId"] == run["runId"], f"{where}: holds {run['runId']}")
        self.require(_named(trace) <= {asked.nonce}, f"{where}: holds words of {_named(trace)}")
        if run["status"] == "RUNNING":
            # One whose end could not be stored was told to have failed, and is ended by its lease.
            good = (asked.status in (None, "FAILED") or asked.received > sent) and not final
            self.require(good, f"{where}: was told to be {asked.status}, and is RUNNING")
            return asked
        for rows, count in (("agentSteps", "stepCount"), ("toolInvocations", "toolCallCount")):
            sequences = [row["sequence"] for row in trace[rows]]
            whole = sequences == list(range(1, run[count] + 1))
            self.require(whole, f"{where}: {count} is {run[count]}, and there are {sequences}")
        digest = _digest(trace)
        self.require(asked.recorded in (None, digest), f"{where}: its steps or tool calls have changed")
        asked.recorded = digest
        if asked.run_id is not None:
            same = (run["runId"], run["status"], trace["answer"]) == (
                asked.run_id,
                asked.status,
                asked.answer,
            )
            self.require(same, f"{where}: is {run['status']}, and {asked.run_id} was told {asked.status}")
        return asked

    def listed(self, conversation: Conversation, runs: list[dict[str, Any]], sent: float) -> None:
        """Hold a list of a session's runs, asked for at ``sent``, to what had been told by then."""
        where = f"the runs of {conversation.session_id}"
        strangers = [run["runId"] for run in runs if run["query"] not in conversation.asked]
        self.require(not strangers, f"{where}: nobody asked what {strangers} answer")
        queries = [run["query"] for run in runs]
        self.require(len(set(queries)) == len(queries), f"{where}: a question was answered by two runs")
        there = {run["runId"] for run in runs}
        lost = [
            told.run_id for told in conversation.told if told.received < sent and told.run_id not in there
        ]
        self.require(not lost, f"{where}: {lost} are lost")

    def rated(
        self, conversation: Conversation, named: Asked | None, rating: str, comment: str, answer: Answer
    ) -> None:
        """Hold the receipt of a feedback to what was asked, and remember it."""
        where = f"feedback {comment} in {conversation.session_id}"
        if not self.require(answer.status == 200, f"{where}: answered {answer.status}"):
            return
        receipt = answer.data
        told = next((told for told in conversation.told if told.run_id == receipt["runId"]), None)
        if named is not None:
            self.require(told is named, f"{where}: went to {receipt['runId']} instead of {named.run_id}")
        self.require(
            receipt["fallbackToLatestRun"] == (named is None), f"{where}: fallbackToLatestRun is wrong"
        )
        if named is None and told is not None:
            later = conversation.later_told(told.question, answer.first_sent)
            self.require(not later, f"{where}: went to {told.run_id}, which was not the latest")
        if told is not None and told.received < answer.sent:  # a run makes its case when it has an answer
            makes_case = rating == "useful" and told.answer is not None
            right = (receipt["caseId"] is not None) == makes_case
            self.require(right, f"{where}: its case is {receipt['caseId']}")
        conversation.rated.append(
            Rated(
                receipt["runId"],
                rating,
                comment,
                answer.first_sent,
                answer.sent,
                answer.received,
                answer.uncertain,
                named is not None,
            )
        )

    def last_word(self, conversation: Conversation, trace: dict[str, Any]) -> None:
        """Hold the feedback on a run, now that no more comes, to the feedbacks that were accepted."""
        found, run_id = trace["feedback"], trace["runId"]
        known = _words(conversation.last_words(run_id))
        allowed = known | _words(conversation.stray_words(run_id))
        where = f"the feedback on {run_id} in {conversation.session_id}"
        if found is None:
            self.require(not known, f"{where}: {known} is lost")
        else:
            last = (found["rating"], found["comment"])
            self.require(last in allowed, f"{where}: is {last}, and should be one of {allowed}")


def _words(rated: Iterable[Rated]) -> set[tuple[str, str]]:
    return {(one.rating, one.comment) for one in rated}


def _named(trace: dict[str, Any]) -> set[str]:
    return set(NONCE.findall(json.dumps(trace)))


def _digest(trace: dict[str, Any]) -> str:
    rows = json.dumps([trace["agentSteps"], trace["toolInvocations"]], sort_keys=True)
    return sha256(rows.encode()).hexdigest()

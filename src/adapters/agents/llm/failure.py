"""How a model fails, in words that may be shown: none of the server's own, and none of an exception's."""

from __future__ import annotations


class ModelFailed(Exception):
    """A model could not be used. ``why`` reads on from "the language model could not be used:"."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


UNREACHABLE = "its server could not be reached"
UNREADABLE = "its server answered with something that is no completion"
DECLINED = "it declined to answer"
CUT = "its answer ended in the middle"
TOO_LONG = "its answer did not end"
EMPTY = "its answer was empty"
NO_PLAN = "its plan could not be read"
EMPTY_PLAN = "its plan was empty"
UNCITED = "its answer cites no evidence"
NO_TIME = "the time that it may take in one run is used up"


def too_slow(seconds: float) -> str:
    """It took longer than it may."""
    return f"it did not answer within {seconds:g} s"


def refused(status: int) -> str:
    """Its server answered with this HTTP status."""
    if status == 429:
        return "its server had too many requests (429)"
    if status in (401, 403):
        return f"its server did not accept the API key ({status})"
    return f"its server {'failed' if status >= 500 else 'refused the request'} ({status})"

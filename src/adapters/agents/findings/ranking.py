"""How findings are weighed: every threshold and weight of the diagnosis is here, and nowhere else.

A weight is 0-100. It orders statements of one answer and says from where on a finding may be called a cause; it
is no probability. The order follows how directly a sign names its cause: what the platform itself reports as the
reason of a death comes before what a process wrote, before a number that moved, before a consequence.
"""

from __future__ import annotations

import math

# What may be called a cause
CAUSE_FROM = 60
"""A finding below this weight is never put forward as the cause."""

# Signs that the platform gives
TERMINATED = 66
OUT_OF_MEMORY = 92
WAITING = 70
SCHEDULING = 88
IMAGE_PULL = 86
QUOTA = 88
MOUNT = 80
BACKOFF_LIMIT = 72
PROBE = 62
BACK_OFF_EVENT = 55
WARNING_EVENT = 60
FAILED_CONDITION = 50
BARE_CONDITION = 35
NODE_CONDITION = 74
"""A node that is under pressure, or that is not heard of any more."""
NOT_READY = 52
RESTARTS = 45
LIMITS = 20
LIMIT_THAT_THROTTLES = 72
"""A CPU limit where the alert or the question speaks of throttling: a limit is what throttles."""

# What was changed
CHANGE = 58
CHANGE_BEFORE_ONSET = 88
OLD_CHANGE = 16
"""A change long before the trouble, or after it began, is background."""
CHANGE_WINDOW_MINUTES = 60
"""A change at most this long before the trouble began is weighed as ``CHANGE_BEFORE_ONSET``."""

# What processes wrote
LOG_FATAL = 80
LOG_ERROR = 74
LOG_WARNING = 40
LOG_ANNOUNCEMENT = 62
"""An error line that ends with a colon announces what the next lines say."""
LOG_COUNT_BONUS = 6
"""At the most; a kind of line seen 64 times or more gets all of it."""

# What was measured
RESOURCE = 68
RESOURCE_BONUS = 20
ERRORS = 56
LATENCY = 46
TRAFFIC = 34
OTHER_METRIC = 44
TARGET_DOWN = 62
"""Prometheus cannot reach what it measures."""
ALERT_VALUE = 30
VALUE = 25
"""What a query gives now says how bad it is, not why."""
OVER = 12
"""Taken off for a number that came back to its usual level."""
TOO_FEW = 6
"""A series of too few points to be told from its own past."""
EASED = 15
"""A number that moved to the harmless side, e.g. less CPU in use."""

# Background
RUNBOOK = 18
CLEAR = 5

# How a finding stands to the subject asked about
ON_SUBJECT = 12
ON_LINKED = 16
"""More than the subject itself: what the subject's own errors point at is nearer to the cause."""
NAMED_BY_SYMPTOMS = 6
"""For a change of the very thing that the faults speak of."""
OFF_SUBJECT = -40

# Series
MIN_BASELINE = 3
"""Points a series needs before a change."""
MIN_AFTER = 2
"""Points a new level must hold: one point is a blip."""
MIN_SCORE = 6.0
"""A shift counts from this many robust standard deviations of the series' own past."""
MIN_RELATIVE = 0.5
"""A shift counts from this share of the series' former level."""
MIN_PERCENT_POINTS = 5.0
"""A shift of a percentage counts from this many points."""
FLOOR_SHARE = 0.05
"""The spread of a series is never taken for less than this share of its level: a constant has no spread."""
MAX_POINTS = 240
"""Longer series are thinned to this many medians."""


def log_weight(fatal: bool, count: int) -> int:
    """The weight of a kind of error line seen ``count`` times."""
    bonus = min(LOG_COUNT_BONUS, int(math.log2(max(count, 1))))
    return (LOG_FATAL if fatal else LOG_ERROR) + bonus


def resource_weight(ratio: float, share: float) -> int:
    """The weight of a resource that rose ``ratio``-fold, by ``share`` (0-1) of the metric's biggest rise."""
    doublings = min(5.0, math.log2(max(ratio, 1.0)))
    return RESOURCE + round(RESOURCE_BONUS * share * (0.4 + 0.6 * doublings / 5.0))

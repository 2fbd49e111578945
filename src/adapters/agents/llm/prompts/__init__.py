"""The words that models are addressed with, each in a file of its own."""

from __future__ import annotations

from importlib.resources import files

PLAN = files(__package__).joinpath("plan.md").read_text("utf-8")
"""Asks for the lookups to make next."""

ANSWER = files(__package__).joinpath("answer.md").read_text("utf-8")
"""Asks for the answer to a question."""

SECTION = files(__package__).joinpath("section.md").read_text("utf-8")
"""Asks for what is to be said of one group of alerts in a report."""

"""What a migration did, and where a database stands."""

from __future__ import annotations

from attrs import frozen


@frozen
class Placed:
    """How many of the old system's rows were placed in runs, or can be."""

    sessions: int = 0
    steps: int = 0
    tools: int = 0

    def __bool__(self) -> bool:
        return self != Placed()

    def __add__(self, other: Placed) -> Placed:
        return Placed(self.sessions + other.sessions, self.steps + other.steps, self.tools + other.tools)


@frozen
class Rows:
    """How many rows, and the start of the first few of their session ids: enough to look for them, never all."""

    count: int = 0
    session_ids: tuple[str, ...] = ()


@frozen
class Leftovers:
    """Rows of the old system that cannot be placed, by what keeps them from it.

    ``sessions``: the id of their compatibility run is taken by a run of another session. ``steps`` and ``tools``: their
    session has no row, or one that cannot be placed. ``duplicates``: a later row of the same session was taken.
    """

    sessions: Rows = Rows()
    steps: Rows = Rows()
    tools: Rows = Rows()
    duplicates: Rows = Rows()


@frozen
class MigrationReport:
    """What one upgrade did. ``from_revision`` is ``None`` for a database that had no revision.

    ``adopted``: the old system's tables were found without a revision, and were taken over as they are.
    """

    from_revision: str | None
    to_revision: str
    adopted: bool = False
    applied: tuple[str, ...] = ()
    placed: Placed = Placed()
    leftovers: Leftovers = Leftovers()


@frozen
class MigrationStatus:
    """Where a database stands. ``current`` is ``None`` when it has no revision.

    ``waiting`` is what the next upgrade places. Rows may wait at head too: a migration was killed, is at work, or the
    old system wrote more. Meanwhile a session without a run is read from its old row.
    """

    current: str | None
    head: str
    pending: tuple[str, ...]
    waiting: Placed = Placed()
    leftovers: Leftovers = Leftovers()

    @property
    def is_current(self) -> bool:
        """The schema is the one this version needs."""
        return self.current == self.head

    @property
    def is_unknown(self) -> bool:
        """The schema is of a revision that this version does not know: a newer version made it."""
        return not self.is_current and not self.pending

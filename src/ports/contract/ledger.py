"""The whole contract of a ledger: what every adapter passes."""

from __future__ import annotations

from casenotes.ports.contract.cases import CasesContract
from casenotes.ports.contract.commits import CommitsContract
from casenotes.ports.contract.concurrency import ConcurrencyContract
from casenotes.ports.contract.copies import CopiesContract
from casenotes.ports.contract.ends import EndsContract
from casenotes.ports.contract.erasure import ErasureContract, IdlenessContract
from casenotes.ports.contract.feedback import FeedbackContract
from casenotes.ports.contract.history import HistoryContract
from casenotes.ports.contract.housekeeping import HousekeepingContract
from casenotes.ports.contract.isolation import IsolationContract
from casenotes.ports.contract.journal import JournalContract
from casenotes.ports.contract.keys import KeysContract
from casenotes.ports.contract.leases import LeasesContract
from casenotes.ports.contract.lifecycle import LifecycleContract
from casenotes.ports.contract.overviews import OverviewsContract
from casenotes.ports.contract.run_pages import RunPagesContract
from casenotes.ports.contract.runs import RunsContract
from casenotes.ports.contract.seals import SealsContract
from casenotes.ports.contract.sessions import SessionsContract
from casenotes.ports.contract.snapshot import SnapshotContract
from casenotes.ports.contract.times import TimesContract
from casenotes.ports.contract.traces import TracesContract
from casenotes.ports.contract.units import UnitsOfWorkContract
from casenotes.ports.contract.values import ValuesContract


class LedgerContract(
    SessionsContract,
    OverviewsContract,
    RunsContract,
    RunPagesContract,
    LifecycleContract,
    JournalContract,
    FeedbackContract,
    CasesContract,
    HistoryContract,
    KeysContract,
    LeasesContract,
    ErasureContract,
    IdlenessContract,
    SealsContract,
    IsolationContract,
    ValuesContract,
    TimesContract,
    CopiesContract,
    UnitsOfWorkContract,
    SnapshotContract,
    ConcurrencyContract,
    CommitsContract,
    EndsContract,
    TracesContract,
    HousekeepingContract,
):
    """Subclass it in a test module, and give the subclass the fixture ``open_ledger``.

    The fixture returns a callable; each call gives an async context manager that opens an empty ledger and closes
    it at the end. Override ``seed_history`` when the ledger can hold rows of the old system.
    """

"""The contracts of the storage ports, as pytest suites: subclass one, give it one fixture, and run pytest.

They judge an adapter through the port alone, and need nothing but pytest (the extra ``contract``).
``docs/adapters.md`` shows how.
"""

from pkgutil import iter_modules

import pytest

# Before they are imported, so that a broken promise shows both sides of what was compared.
pytest.register_assert_rewrite(*(module.name for module in iter_modules(__path__, f"{__name__}.")))

from casenotes.ports.contract.context import ContextContract, HeldClock, OpenContext  # noqa: E402
from casenotes.ports.contract.context_housekeeping import (  # noqa: E402
    ContextOutageContract,
    DurableContextContract,
)
from casenotes.ports.contract.history import RepeatedHistoryContract  # noqa: E402
from casenotes.ports.contract.housekeeping import DurabilityContract, OutageContract  # noqa: E402
from casenotes.ports.contract.ledger import LedgerContract  # noqa: E402
from casenotes.ports.contract.stage import OpenLedger  # noqa: E402

__all__ = [
    "ContextContract",
    "ContextOutageContract",
    "DurabilityContract",
    "DurableContextContract",
    "HeldClock",
    "LedgerContract",
    "OpenContext",
    "OpenLedger",
    "OutageContract",
    "RepeatedHistoryContract",
]

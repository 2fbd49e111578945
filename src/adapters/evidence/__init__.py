"""What a diagnostician looks at."""

from casenotes.adapters.evidence.capture import Captured, capture, reproduces
from casenotes.adapters.evidence.digest import evidence_digests
from casenotes.adapters.evidence.incident import Fact, Incident, read_incident
from casenotes.adapters.evidence.pack import SHIPPED, load_pack, shipped_pack

__all__ = [
    "SHIPPED",
    "Captured",
    "Fact",
    "Incident",
    "capture",
    "evidence_digests",
    "load_pack",
    "read_incident",
    "reproduces",
    "shipped_pack",
]

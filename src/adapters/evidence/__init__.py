"""What a diagnostician looks at."""

from casenotes.adapters.evidence.incident import Fact, Incident, read_incident
from casenotes.adapters.evidence.pack import SHIPPED, load_pack, shipped_pack

__all__ = ["SHIPPED", "Fact", "Incident", "load_pack", "read_incident", "shipped_pack"]

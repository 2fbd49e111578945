"""Where a request comes from: which addresses are this machine's own, and whose word on others is taken."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import TypeAlias

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

_IPV6_NEIGHBOURHOOD = 64
"""The bits of an IPv6 address that are a customer's; the rest he chooses himself, as often as he likes."""


@lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the host."""
    address = _address(host)
    return host.lower() == "localhost" if address is None else address.is_loopback


def caller(peer: str | None, forwarded: Iterable[str], proxies: Collection[Network]) -> str:
    """Who is counted as asking: an IPv4 address, or the /64 network of an IPv6 one.

    That is the ``peer`` of the connection; where it is one of the ``proxies``, the address that it puts last into
    ``X-Forwarded-For`` (``forwarded``: the values of that header), and so on along the chain. What an address that
    is no such proxy says of others is not believed.
    """
    found = _address(peer or "")
    hops = [hop.strip() for value in forwarded for hop in value.split(",")]
    while found is not None and hops and any(found in network for network in proxies):
        further = _address(hops.pop())
        if further is None:
            break
        found = further
    if isinstance(found, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((found.packed, _IPV6_NEIGHBOURHOOD), strict=False))
    return str(found)


@lru_cache(maxsize=1024)
def _address(text: str) -> Address | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address

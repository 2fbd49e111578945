"""Settings: read from the environment once, in this one place."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from attrs import field, frozen

from casenotes.core.errors import InvalidSettings

PREFIX = "CASENOTES_"
T = TypeVar("T")


@frozen
class Settings:
    """What can be set, with its default. Values that may hold a secret are left out of the repr."""

    database_url: str = field(default="sqlite+aiosqlite:///casenotes.db", repr=False)
    context_url: str = field(default="sqlite:///casenotes-context.db", repr=False)
    context_ttl: timedelta = timedelta(days=1)
    context_window: int = 6
    evidence: Path | None = None
    prometheus_url: str | None = field(default=None, repr=False)
    alertmanager_url: str | None = field(default=None, repr=False)
    loki_url: str | None = field(default=None, repr=False)
    logs: Path | None = None
    runbooks: Path | None = None
    llm_base_url: str | None = field(default=None, repr=False)
    llm_api_key: str | None = field(default=None, repr=False)
    llm_model: str | None = None
    llm_timeout: timedelta = timedelta(seconds=60)
    run_timeout: timedelta = timedelta(seconds=300)
    run_lease: timedelta = timedelta(seconds=30)
    shutdown_grace: timedelta = timedelta(seconds=20)
    max_running: int = 64
    api_keys: frozenset[str] = field(default=frozenset(), repr=False)
    api_keys_file: Path | None = None
    client_key: str | None = field(default=None, repr=False)
    """The first of the API keys: the one that our own client sends."""
    rate_limit: float | None = None
    """Requests a second; None: any number."""
    rate_burst: int = 20
    max_connections: int = 512
    allowed_hosts: frozenset[str] | None = None
    trusted_proxies: frozenset[IPv4Network | IPv6Network] = frozenset()
    redaction_rules: Path | None = None
    log_format: str | None = None

    def __attrs_post_init__(self) -> None:
        if self.llm_base_url is not None and self.llm_model is None:
            raise InvalidSettings(
                f"{PREFIX}LLM_MODEL: must be set where {PREFIX}LLM_BASE_URL is: the name of a model behind it"
            )

    @classmethod
    def from_environ(cls, environ: Mapping[str, str] | None = None) -> Settings:
        """The settings of this environment. An empty variable counts as unset.

        Raises ``InvalidSettings`` naming the variable, the shape of its value and what is allowed; the value
        itself is never repeated, since it may hold a secret.
        """
        given = os.environ if environ is None else environ
        unknown = Settings()

        def read(name: str, parse: Callable[[str, str], T], default: T) -> T:
            value = given.get(PREFIX + name, "").strip()
            return parse(PREFIX + name, value) if value else default

        return cls(
            database_url=read("DATABASE_URL", _database_url, unknown.database_url),
            context_url=read("CONTEXT_URL", _context_url, unknown.context_url),
            context_ttl=read("CONTEXT_TTL", _seconds(1), unknown.context_ttl),
            context_window=read("CONTEXT_WINDOW", _count(1, 1000), unknown.context_window),
            evidence=read("EVIDENCE", _folder("that holds an incident pack"), unknown.evidence),
            prometheus_url=read("PROMETHEUS_URL", _http_url, unknown.prometheus_url),
            alertmanager_url=read("ALERTMANAGER_URL", _http_url, unknown.alertmanager_url),
            loki_url=read("LOKI_URL", _http_url, unknown.loki_url),
            logs=read("LOGS", _folder("of log files"), unknown.logs),
            runbooks=read("RUNBOOKS", _folder("of runbooks in Markdown"), unknown.runbooks),
            llm_base_url=read("LLM_BASE_URL", _http_url, unknown.llm_base_url),
            llm_api_key=read("LLM_API_KEY", _key, unknown.llm_api_key),
            llm_model=read("LLM_MODEL", _model, unknown.llm_model),
            llm_timeout=read("LLM_TIMEOUT", _seconds(0.001), unknown.llm_timeout),
            run_timeout=read("RUN_TIMEOUT", _seconds(0.001), unknown.run_timeout),
            run_lease=read("RUN_LEASE", _seconds(0.1), unknown.run_lease),
            shutdown_grace=read("SHUTDOWN_GRACE", _seconds(0), unknown.shutdown_grace),
            max_running=read("MAX_RUNNING", _count(1, 100_000), unknown.max_running),
            api_keys=read("API_KEYS", _keys, unknown.api_keys),
            client_key=read("API_KEYS", _first_key, unknown.client_key),
            api_keys_file=read("API_KEYS_FILE", _file, unknown.api_keys_file),
            rate_limit=read("RATE_LIMIT", _rate, unknown.rate_limit),
            rate_burst=read("RATE_BURST", _count(1, 100_000), unknown.rate_burst),
            max_connections=read("MAX_CONNECTIONS", _count(1, 100_000), unknown.max_connections),
            allowed_hosts=read("ALLOWED_HOSTS", _hosts, unknown.allowed_hosts),
            trusted_proxies=read("TRUSTED_PROXIES", _networks, unknown.trusted_proxies),
            redaction_rules=read("REDACTION_RULES", _rules_file, unknown.redaction_rules),
            log_format=read("LOG_FORMAT", _one_of("console", "json"), unknown.log_format),
        )


def _wrong(name: str, value: str, allowed: str) -> InvalidSettings:
    return InvalidSettings(f"{name}: {allowed}; got {len(value)} characters of another shape")


def _starting(value: str, schemes: tuple[str, ...]) -> bool:
    return value.partition(":")[0] in schemes and "://" in value


def _database_url(name: str, value: str) -> str:
    schemes = ("memory", "sqlite", "sqlite+aiosqlite", "postgresql", "postgresql+asyncpg", "postgres")
    if not _starting(value, schemes):
        raise _wrong(name, value, "must be memory://, sqlite+aiosqlite:///path or postgresql+asyncpg://...")
    return value


def _context_url(name: str, value: str) -> str:
    if not _starting(value, ("memory", "sqlite", "sqlite+aiosqlite", "redis", "rediss", "unix")):
        allowed = "must be memory://, sqlite:///path, redis://..., rediss://... or unix://..."
        raise _wrong(name, value, allowed)
    return value


def _seconds(least: float) -> Callable[[str, str], timedelta]:
    def parse(name: str, value: str) -> timedelta:
        try:
            seconds = float(value)
        except ValueError:
            seconds = -1
        if not least <= seconds <= 10 * 365 * 86400:
            raise _wrong(name, value, f"must be a number of seconds, at least {least:g}")
        return timedelta(seconds=seconds)

    return parse


def _count(least: int, most: int) -> Callable[[str, str], int]:
    def parse(name: str, value: str) -> int:
        if not value.isascii() or not value.isdigit() or not least <= int(value[:12]) <= most:
            raise _wrong(name, value, f"must be a whole number from {least} to {most}")
        return int(value)

    return parse


def _rate(name: str, value: str) -> float:
    try:
        rate = float(value)
    except ValueError:
        rate = -1
    if not 0.001 <= rate <= 100_000:
        raise _wrong(name, value, "must be a number of requests a second, from 0.001 to 100000")
    return rate


def _hosts(name: str, value: str) -> frozenset[str]:
    hosts = [host.strip().lower().removesuffix(".") for host in value.split(",")]
    if not all(re.fullmatch(r"[a-z0-9_.-]+|[0-9a-f:]+", host) for host in hosts):
        raise _wrong(name, value, "must be names of hosts without a port, separated by commas")
    return frozenset(hosts)


def _networks(name: str, value: str) -> frozenset[IPv4Network | IPv6Network]:
    try:
        return frozenset(ip_network(part.strip()) for part in value.split(","))
    except ValueError:
        raise _wrong(name, value, "must be addresses or networks (10.0.0.0/8), separated by commas") from None


def _one_of(*allowed: str) -> Callable[[str, str], str]:
    def parse(name: str, value: str) -> str:
        if value not in allowed:
            raise _wrong(name, value, f"must be {' or '.join(allowed)}")
        return value

    return parse


def _folder(of_what: str) -> Callable[[str, str], Path]:
    def parse(name: str, value: str) -> Path:
        path = Path(value)
        if not path.is_dir():
            raise _wrong(name, value, f"must be an existing folder {of_what}")
        return path

    return parse


def _http_url(name: str, value: str) -> str:
    try:
        parts = urlsplit(value)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, a bracket that is not closed
        good = False
    if not good or not value.isprintable() or " " in value or parts.query or parts.fragment:
        raise _wrong(name, value, "must be http://host:port or https://host/prefix, without a query")
    return value.rstrip("/")


def _file(name: str, value: str) -> Path:
    path = Path(value)
    if not path.is_file():
        raise _wrong(name, value, "must be an existing file with one key a line")
    return path


def _rules_file(name: str, value: str) -> Path:
    path = Path(value)
    if not path.is_file():
        raise _wrong(name, value, "must be an existing TOML file of redaction rules")
    return path


def _model(name: str, value: str) -> str:
    if not value.isprintable() or len(value) > 200:
        raise _wrong(name, value, "must be the name of a model, at most 200 printable characters")
    return value


def _key(name: str, value: str) -> str:
    if not value.isascii() or not value.isprintable():
        raise _wrong(name, value, "must be printable ASCII")
    return value


def _keys(name: str, value: str) -> frozenset[str]:
    return frozenset(_key_list(name, value))


def _first_key(name: str, value: str) -> str:
    return _key_list(name, value)[0]


def _key_list(name: str, value: str) -> list[str]:
    keys = [key for part in value.split(",") if (key := part.strip())]
    if not keys or not all(key.isascii() and key.isprintable() for key in keys):
        raise _wrong(name, value, "must be printable ASCII keys, separated by commas")
    return keys

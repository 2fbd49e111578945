"""Settings: read once, refused by name, and never shown where they may hold a secret."""

from __future__ import annotations

from datetime import timedelta
from ipaddress import ip_network
from pathlib import Path

import pytest

from casenotes.core.errors import InvalidSettings
from casenotes.entrypoints.settings import Settings

DEFAULTS = {
    "database_url": "sqlite+aiosqlite:///casenotes.db",
    "context_url": "sqlite:///casenotes-context.db",
    "context_ttl": timedelta(seconds=86_400),
    "context_window": 6,
    "evidence": None,
    "prometheus_url": None,
    "alertmanager_url": None,
    "loki_url": None,
    "logs": None,
    "runbooks": None,
    "llm_base_url": None,
    "llm_api_key": None,
    "llm_model": None,
    "llm_timeout": timedelta(seconds=60),
    "run_timeout": timedelta(seconds=300),
    "run_lease": timedelta(seconds=30),
    "shutdown_grace": timedelta(seconds=20),
    "max_running": 64,
    "api_keys": frozenset[str](),
    "api_keys_file": None,
    "client_key": None,
    "rate_limit": None,
    "rate_burst": 20,
    "max_connections": 512,
    "allowed_hosts": None,
    "trusted_proxies": frozenset[object](),
    "redaction_rules": None,
    "log_format": None,
}


def read(**given: str) -> Settings:
    return Settings.from_environ({f"CASENOTES_{name}": value for name, value in given.items()})


@pytest.mark.parametrize(("name", "default"), DEFAULTS.items())
def test_what_is_not_set_has_its_default(name: str, default: object) -> None:
    assert getattr(read(), name) == default
    assert getattr(read(**{name.upper(): "  "}), name) == default


@pytest.mark.parametrize(
    ("name", "value", "field", "meaning"),
    [
        ("DATABASE_URL", "memory://", "database_url", "memory://"),
        ("DATABASE_URL", " sqlite:///a.db ", "database_url", "sqlite:///a.db"),
        ("DATABASE_URL", "postgresql://u:p@h/d", "database_url", "postgresql://u:p@h/d"),
        ("CONTEXT_URL", "rediss://u:p@h/0", "context_url", "rediss://u:p@h/0"),
        ("CONTEXT_URL", "unix:///run/redis.sock", "context_url", "unix:///run/redis.sock"),
        ("CONTEXT_TTL", "60", "context_ttl", timedelta(seconds=60)),
        ("RATE_LIMIT", "0.5", "rate_limit", 0.5),
        ("RATE_BURST", "1", "rate_burst", 1),
        ("MAX_CONNECTIONS", "9", "max_connections", 9),
        ("ALLOWED_HOSTS", "A.Example., b_c, ::1", "allowed_hosts", frozenset({"a.example", "b_c", "::1"})),
        (
            "TRUSTED_PROXIES",
            "10.0.0.0/8, ::1",
            "trusted_proxies",
            frozenset({ip_network("10.0.0.0/8"), ip_network("::1")}),
        ),
        ("CONTEXT_WINDOW", "1", "context_window", 1),
        ("PROMETHEUS_URL", "https://u:p@h/prefix/", "prometheus_url", "https://u:p@h/prefix"),
        ("ALERTMANAGER_URL", "http://[::1]:9093", "alertmanager_url", "http://[::1]:9093"),
        ("LOKI_URL", "http://loki:3100", "loki_url", "http://loki:3100"),
        ("LLM_API_KEY", "sk-x", "llm_api_key", "sk-x"),
        ("LLM_MODEL", "org/model:7b", "llm_model", "org/model:7b"),
        ("LLM_TIMEOUT", "2.5", "llm_timeout", timedelta(seconds=2.5)),
        ("RUN_TIMEOUT", "0.5", "run_timeout", timedelta(seconds=0.5)),
        ("RUN_LEASE", "1e1", "run_lease", timedelta(seconds=10)),
        ("SHUTDOWN_GRACE", "0", "shutdown_grace", timedelta(0)),
        ("MAX_RUNNING", "100000", "max_running", 100_000),
        ("API_KEYS", " a, b ,,", "api_keys", frozenset({"a", "b"})),
        ("API_KEYS", " b, a ,,", "client_key", "b"),
        ("LOG_FORMAT", "json", "log_format", "json"),
    ],
)
def test_what_is_set_is_read(name: str, value: str, field: str, meaning: object) -> None:
    assert getattr(read(**{name: value}), field) == meaning


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DATABASE_URL", "hunter2.db"),
        ("DATABASE_URL", "mysql://u:hunter2@h/d"),
        ("DATABASE_URL", "postgresql:hunter2"),
        ("CONTEXT_URL", "postgresql://u:hunter2@h/d"),
        ("CONTEXT_TTL", "hunter2"),
        ("CONTEXT_TTL", "0"),
        ("CONTEXT_TTL", "nan"),
        ("CONTEXT_TTL", "inf"),
        ("CONTEXT_WINDOW", "0"),
        ("CONTEXT_WINDOW", "1.5"),
        ("CONTEXT_WINDOW", "٣"),
        ("EVIDENCE", "/nowhere/hunter2"),
        ("PROMETHEUS_URL", "u:hunter2@h:9090"),
        ("PROMETHEUS_URL", "http://u:hunter2@:9090"),
        ("PROMETHEUS_URL", "http://u:hunter2@h:port"),
        ("PROMETHEUS_URL", "http://[hunter2"),
        ("ALERTMANAGER_URL", "ftp://hunter2"),
        ("LOKI_URL", "http://h/?token=hunter2"),
        ("LOGS", "/nowhere/hunter2"),
        ("RUNBOOKS", "/nowhere/hunter2"),
        ("LLM_BASE_URL", "hunter2/v1"),
        ("LLM_API_KEY", "hunter2é"),
        ("LLM_MODEL", "hunter2\n2"),
        ("LLM_MODEL", "hunter2" * 40),
        ("LLM_TIMEOUT", "0"),
        ("RUN_TIMEOUT", "-1"),
        ("RUN_TIMEOUT", "1e99"),
        ("RUN_LEASE", "0"),
        ("SHUTDOWN_GRACE", "-0.1"),
        ("MAX_RUNNING", "0"),
        ("MAX_RUNNING", "9" * 400),
        ("API_KEYS", ","),
        ("API_KEYS", "hunter2é"),
        ("API_KEYS", "hunter\x002"),
        ("API_KEYS_FILE", "/nowhere/hunter2"),
        ("RATE_LIMIT", "0"),
        ("RATE_LIMIT", "nan"),
        ("RATE_LIMIT", "hunter2/s"),
        ("RATE_BURST", "0"),
        ("MAX_CONNECTIONS", "0"),
        ("ALLOWED_HOSTS", "https://hunter2"),
        ("ALLOWED_HOSTS", "a.example,"),
        ("ALLOWED_HOSTS", "hunter2:9900"),
        ("ALLOWED_HOSTS", "*"),
        ("TRUSTED_PROXIES", "hunter2"),
        ("TRUSTED_PROXIES", "10.0.0.1/8"),
        ("REDACTION_RULES", "/nowhere/hunter2"),
        ("LOG_FORMAT", "hunter2"),
    ],
)
def test_a_wrong_value_is_refused_by_the_variables_name_and_never_repeated(name: str, value: str) -> None:
    with pytest.raises(InvalidSettings) as refused:
        read(**{name: value})
    message = str(refused.value)
    assert message.startswith(f"CASENOTES_{name}: must be ")
    assert f"got {len(value)} characters" in message
    assert "hunter2" not in message


def test_a_folder_and_a_file_that_are_there_are_taken(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("k\n")
    here = str(tmp_path)
    settings = read(
        EVIDENCE=here, LOGS=here, RUNBOOKS=here, API_KEYS_FILE=str(keys), REDACTION_RULES=str(keys)
    )
    assert (settings.evidence, settings.logs, settings.runbooks) == (tmp_path,) * 3
    assert settings.api_keys_file == settings.redaction_rules == keys


def test_an_endpoint_needs_the_name_of_a_model() -> None:
    settings = read(LLM_BASE_URL="http://u:hunter2@h/v1/", LLM_MODEL="m")
    assert (settings.llm_base_url, settings.llm_model) == ("http://u:hunter2@h/v1", "m")
    with pytest.raises(
        InvalidSettings, match="CASENOTES_LLM_MODEL: must be set where CASENOTES_LLM_BASE_URL"
    ):
        read(LLM_BASE_URL="http://u:hunter2@h/v1")


def test_secrets_never_show() -> None:
    settings = read(
        DATABASE_URL="postgresql://u:hunter2@h/d",
        CONTEXT_URL="redis://u:hunter2@h/0",
        PROMETHEUS_URL="http://u:hunter2@h",
        ALERTMANAGER_URL="http://u:hunter2@h",
        LOKI_URL="http://u:hunter2@h",
        LLM_BASE_URL="http://u:hunter2@h",
        LLM_API_KEY="hunter2",
        LLM_MODEL="m",
        API_KEYS="hunter2",
    )
    assert "hunter2" not in repr(settings)
    assert "hunter2" not in str(settings)


def test_the_environment_is_read_unless_another_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CASENOTES_MAX_RUNNING", "7")
    assert Settings.from_environ().max_running == 7
    assert Settings.from_environ({}).max_running == 64

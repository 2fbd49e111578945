"""What is read from the words of Kubernetes."""

from __future__ import annotations

import pytest

from casenotes.adapters.agents.findings.containers import exit_meaning
from casenotes.adapters.agents.findings.extract import Reading, read
from casenotes.adapters.agents.findings.model import Finding, Role
from casenotes.adapters.agents.findings.names import mentions, owner_of, same_thing
from casenotes.core.text import Json, JsonObject
from casenotes.ports.agent import Lookup

DESCRIBED = """\
Name:             ledger-6d5f7c8b94-q2w3e
Namespace:        bank
Status:           Running
Containers:
  app:
    Image:          registry.example/ledger:1.2
    State:          Waiting
      Reason:       CrashLoopBackOff
    Last State:     Terminated
      Reason:       OOMKilled
      Exit Code:    137
    Ready:          False
    Restart Count:  4
    Limits:
      cpu:     500m
      memory:  64Mi
  sidecar:
    State:          Terminated
      Reason:       Completed
      Exit Code:    0
    Restart Count:  0
Conditions:
  Type              Status
  Initialized       True
  Ready             False
Events:
  Type     Reason     Age               From               Message
  ----     ------     ----              ----               -------
  Normal   Scheduled  6m                default-scheduler  Successfully assigned bank/ledger
  Warning  Unhealthy  2m (x9 over 5m)   kubelet            Readiness probe failed: connection refused
"""

YAML = """\
kind: Pod
metadata:
  name: ledger-0
spec:
  containers:
  - name: app
    resources:
      limits:
        memory: 64Mi
status:
  conditions:
  - type: Ready
    status: "False"
    reason: ContainersNotReady
    message: containers with unready status
  containerStatuses:
  - name: app
    restartCount: 4
    state:
      waiting:
        reason: ImagePullBackOff
    lastState:
      terminated:
        exitCode: 143
        reason: Error
"""

POD: JsonObject = {
    "metadata": {"name": "ledger-0"},
    "spec": {"containers": [{"name": "app", "resources": {"limits": {"memory": "64Mi"}}}]},
    "status": {
        "conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady"}],
        "containerStatuses": [
            {
                "name": "app",
                "restartCount": 4,
                "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
            }
        ],
    },
}


def reading(result: Json, tool: str = "kubectl_describe", **arguments: str) -> Reading:
    return read(Lookup(tool, dict(arguments)), result)


def texts(result: Json, tool: str = "kubectl_describe", **arguments: str) -> list[str]:
    return [finding.text for finding in reading(result, tool, **arguments).findings]


def found(result: Json, part: str) -> Finding:
    (finding,) = [each for each in reading(result).findings if part in each.text]
    return finding


def test_a_described_pod() -> None:
    said = texts(DESCRIBED)
    assert "Container `app` of `ledger-6d5f7c8b94-q2w3e` is waiting: `CrashLoopBackOff`" in said
    assert (
        "Container `app` of `ledger-6d5f7c8b94-q2w3e` was last terminated: `OOMKilled`, exit code 137 "
        "(SIGKILL: killed from outside): it ran out of memory (OOM); its memory limit is `64Mi`"
    ) in said
    assert "Container `app` of `ledger-6d5f7c8b94-q2w3e` was restarted 4 times" in said
    assert "Container `app` of `ledger-6d5f7c8b94-q2w3e` has CPU limit `500m`, memory limit `64Mi`" in said
    assert "Conditions of `ledger-6d5f7c8b94-q2w3e`: `Ready` is False" in said
    assert any("Warning event `Unhealthy`" in text and "Readiness probe failed" in text for text in said)
    assert not any("sidecar" in text or "Scheduled" in text for text in said)


def test_running_out_of_memory_is_the_weightiest() -> None:
    best = max(reading(DESCRIBED).findings, key=lambda finding: finding.weight)
    assert "OOMKilled" in best.text
    assert best.role is Role.CAUSE


def test_a_pod_in_yaml() -> None:
    said = texts(YAML, "kubectl_get_yaml")
    assert "Container `app` of `ledger-0` is waiting: `ImagePullBackOff`" in said
    assert (
        "Container `app` of `ledger-0` was last terminated: `Error`, exit code 143 (SIGTERM: killed from outside)"
        in said
    )
    assert "Container `app` of `ledger-0` has memory limit `64Mi`" in said
    assert (
        "Condition `Ready` of `ledger-0` is False: `ContainersNotReady` (`containers with unready status`)"
        in said
    )


def test_a_pod_in_json() -> None:
    said = texts(POD, name="ledger-0")
    assert any("OOMKilled" in text and "memory limit is `64Mi`" in text for text in said)
    assert any("ContainersNotReady" in text for text in said)


@pytest.mark.parametrize(
    ("code", "meaning"),
    [
        (0, ""),
        (1, "a failure that the program reported"),
        (127, "the command was not found"),
        (139, "SIGSEGV"),
    ],
)
def test_exit_codes_have_meanings(code: int, meaning: str) -> None:
    assert exit_meaning(code) == meaning


def test_a_job_that_gave_up() -> None:
    job = (
        "Name:             nightly-export\nNamespace:        bank\nBackoff Limit:    2\n"
        "Pods Statuses:    0 Active (0 Ready) / 0 Succeeded / 3 Failed\n"
        "Events:\n  Type     Reason                Age  From            Message\n"
        "  ----     ------                ---  ----            -------\n"
        "  Warning  BackoffLimitExceeded  3m   job-controller  Job has reached the specified backoff limit\n"
    )
    said = texts(job)
    assert any("3 failed pods" in text and "backoff limit is 2" in text for text in said)
    assert any("`BackoffLimitExceeded` for `nightly-export`" in text for text in said)


LISTED = """\
NAME                      READY   STATUS             RESTARTS        AGE
ledger-6d5f7c8b94-q2w3e   0/1     CrashLoopBackOff   12 (4m ago)     6d
ledger-6d5f7c8b94-z9x8c   0/1     CrashLoopBackOff   12 (3m ago)     6d
gateway-0                 1/1     Running            3               6d
migrate-k4j5h             0/1     Completed          0               6d
"""


def test_pods_that_are_not_ready_are_taken_together_by_owner() -> None:
    (text,) = texts(LISTED, "kubectl_get_by_kind_in_namespace")
    assert text.startswith(
        "2 pods of `ledger` (`ledger-6d5f7c8b94-q2w3e`, `ledger-6d5f7c8b94-z9x8c`): 0/1 ready"
    )
    assert "CrashLoopBackOff" in text


def test_pods_listed_without_a_header() -> None:
    line = "bank   export-k4j5h   0/1   Error   0   23h   <none>   node-1"
    assert texts(line, "kubectl_find_resource") == ["`export-k4j5h`: 0/1 ready, status `Error`"]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (
            '{"note": "0/3 nodes are available: 3 Insufficient memory. preemption: none"}',
            "3 Insufficient memory",
        ),
        ("description: '0/1 nodes are available:\n    1 Insufficient example.com/fpga.'", "example.com/fpga"),
        (
            'Error creating: pods "a" is forbidden: exceeded quota: team, requested: cpu=2, used: cpu=4',
            "exceeded quota: team",
        ),
        (
            '"message": "Failed to pull image \\"r.example/a:1\\": not found"',
            'Failed to pull image "r.example/a:1"',
        ),
        ("status: Liveness probe failed: HTTP probe failed with statuscode: 503", "statuscode: 503"),
    ],
)
def test_well_known_messages_are_found_in_any_text(text: str, part: str) -> None:
    assert any(part in said for said in texts(text, "fetch_issue"))


@pytest.mark.parametrize(
    ("reason", "message", "least"),
    [
        ("FailedScheduling", "0/1 nodes are available: 1 Insufficient cpu.", 80),
        ("FailedMount", 'secret "tls" not found', 75),
        ("Failed", 'Failed to pull image "a:1": unauthorized', 80),
        ("Strange", "something odd", 60),
    ],
)
def test_warning_events_weigh_by_their_reason(reason: str, message: str, least: int) -> None:
    table = f"LAST SEEN   TYPE      REASON   OBJECT   MESSAGE\n2m          Warning   {reason}   Pod/a   {message}\n"
    (finding,) = reading(table, "kubectl_events").findings
    assert finding.weight >= least
    assert message in finding.text


def test_a_node_in_trouble_may_be_a_cause() -> None:
    node = (
        "Name: node-1\nConditions:\n  Type             Status    LastHeartbeatTime   Reason              Message\n"
        "  ----             ------    -----------------   ------              -------\n"
        "  MemoryPressure   False     Mon, 02 Jan 2026    KubeletOk           fine\n"
        "  DiskPressure     True      Mon, 02 Jan 2026    KubeletDiskFull     no space\n"
    )
    (finding,) = reading(node).findings
    assert finding.text == "Condition `DiskPressure` of `node-1` is True: `KubeletDiskFull` (`no space`)"
    assert finding.role is Role.CAUSE


def test_a_command_that_failed_is_a_failure_and_no_evidence() -> None:
    text = 'Command `kubectl logs a` failed with return code 1\nError from server (NotFound): pods "a" not found\n'
    seen = reading(text, "fetch_pod_logs")
    assert seen.failure == 'Error from server (NotFound): pods "a" not found'
    assert seen.findings == ()


@pytest.mark.parametrize("text", ["", "\nstderr:\n", "No resources found in bank namespace."])
def test_no_output_is_empty(text: str) -> None:
    assert reading(text, "kubectl_logs").empty


def test_changes_in_lines_and_in_objects() -> None:
    history = "deployment/ledger\nREVISION 7  2026-01-02T03:04:05Z\n  env WORKERS: 16 -> 2\n"
    assert texts(history, "rollouts") == [
        "`WORKERS` of `ledger` was changed from `16` to `2` at 2026-01-02 03:04:05 UTC"
    ]
    entries: list[Json] = [
        {"target": "deployment/ledger", "time": "2026-01-02T03:04:05Z", "key": "a", "old": 1, "new": 2}
    ]
    assert texts(entries, "rollouts") == [
        "`a` of `ledger` was changed from `1` to `2` at 2026-01-02 03:04:05 UTC"
    ]


RUNBOOK = """\
---
title: x
---
# Disk filling

## Meaning

The volume will be full
within a day.

## Mitigation

1. Delete old **snapshots**.
2. Grow the volume.
"""


@pytest.mark.parametrize(
    "text", [RUNBOOK, RUNBOOK.replace("## Meaning\n", "Meaning\n [\\#](#meaning)\n-------\n")]
)
def test_a_runbook_in_either_style_of_heading(text: str) -> None:
    said = texts(text, "fetch_webpage")
    assert "The runbook says: The volume will be full within a day" in said
    assert "The runbook tells to do: (1) Delete old snapshots; (2) Grow the volume" in said


@pytest.mark.parametrize(
    ("pod", "owner"),
    [
        ("ledger-6d5f7c8b94-q2w3e", "ledger"),
        ("export-k4j5h", "export"),
        ("db-0", "db"),
        ("ledger", "ledger"),
        ("payment-worker", "payment-worker"),
        ("front-end", "front-end"),
    ],
)
def test_whose_pod_it_is(pod: str, owner: str) -> None:
    assert owner_of(pod) == owner


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("ledger", "ledger-6d5f7c8b94-q2w3e", True),
        ("checkout", "checkoutservice", True),
        ("ledger", "ledger-db", True),
        ("ledger", "gateway", False),
        ("cart", "cartography", False),
        ("", "ledger", False),
    ],
)
def test_whether_two_names_are_of_one_thing(one: str, other: str, same: bool) -> None:
    assert same_thing(one, other) is same
    assert same_thing(other, one) is same


def test_a_name_is_mentioned_as_a_word() -> None:
    assert mentions("POST http://ledger:8080 timed out", "ledger-6d5f7c8b94-q2w3e")
    assert not mentions("subledger closed", "ledger")


def test_a_deployment_without_its_replicas_and_a_pod_that_waits() -> None:
    deployment = "Name: web\nReplicas: 3 desired | 3 updated | 3 total | 1 available | 2 unavailable\n"
    assert texts(deployment) == ["`web` has 1 of 3 wanted replicas available"]
    assert texts("Name: web-0\nStatus: Pending\n") == ["`web-0` has the status `Pending`"]


def test_a_row_with_an_empty_cell_is_read_by_its_columns() -> None:
    table = (
        "LAST SEEN   TYPE      REASON   OBJECT   MESSAGE\n"
        "2m          Warning            Pod/a    something odd\n"
        "1m          Warning            Pod/a    something odd\n"
    )
    (finding,) = reading(table, "kubectl_events").findings
    assert finding.text == "Warning event for `a`: `something odd` (2 events)"

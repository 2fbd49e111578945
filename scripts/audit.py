"""Ask the vulnerability service of PyPI about every package that the service is installed with.

    python scripts/audit.py requirements-run.lock [OPTION OF pip-audit ...]

Exit status: 0 if every package was audited and none is known to be vulnerable, 1 if one is, 2 if any was not audited.
An audit that could not ask is no clean one: pip-audit by itself passes over packages that its service does not know.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

PATIENCE_SECONDS = 300


def verdict(report: dict[str, Any]) -> tuple[list[str], int]:
    """The lines to print about pip-audit's report, and the exit status."""
    packages = report["dependencies"]
    skipped = sorted(package["name"] for package in packages if "skip_reason" in package)
    found = [
        f"{package['name']} {package['version']}: {known['id']}, fixed in {_versions(known['fix_versions'])}"
        for package in packages
        for known in package.get("vulns", ())
    ]
    if skipped or not packages:
        one = (
            "no package was audited"
            if len(skipped) == len(packages)
            else f"not audited: {', '.join(skipped)}"
        )
        return [*found, f"{one}; the vulnerability service did not answer for them"], 1 if found else 2
    return found or [f"{len(packages)} packages, no known vulnerability"], 1 if found else 0


def _versions(versions: list[str]) -> str:
    return ", ".join(versions) or "no version yet"


def main(lock: str, *options: str) -> int:
    audit = str(Path(sys.executable).with_name("pip-audit"))
    command = [
        audit,
        "-r",
        lock,
        "--require-hashes",
        "--disable-pip",
        "--progress-spinner",
        "off",
        "-f",
        "json",
    ]
    try:
        done = subprocess.run(
            [*command, *options], capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
        )
        report = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, ValueError):
        lines, status = ["no package was audited; the vulnerability service cannot be reached from here"], 2
    except OSError:
        lines, status = ["no package was audited; pip-audit is not installed: make venv"], 2
    else:
        lines, status = verdict(report)
    for line in lines:
        print(f"audit: {line}", file=sys.stderr if status else sys.stdout)
    return status


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python scripts/audit.py LOCK-FILE [OPTION OF pip-audit ...]")
    sys.exit(main(*sys.argv[1:]))

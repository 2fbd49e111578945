"""The command as a process: ``python -m casenotes``."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request

from support.cli import CommandLine


def test_a_trace_is_printed_whatever_the_terminals_encoding(cli: CommandLine) -> None:
    (run_id,) = cli.record("Warum ist die Kasse langsam? 為什麼")
    done = cli.process("trace", "s-1", environ={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert (done.status, done.err) == (0, "")
    assert run_id in done.out
    assert "\\u70ba" in done.out


def test_a_failure_is_its_exit_status_and_one_line(cli: CommandLine) -> None:
    cli.record("q")
    done = cli.process("trace", "nope")
    assert done.refused(1) == "casenotes trace: session not found: nope\n"


def test_a_reader_that_goes_away_is_no_complaint(cli: CommandLine) -> None:
    cli.record("q")
    reading, writing = os.pipe()
    os.close(reading)
    with subprocess.Popen(
        [sys.executable, "-m", "casenotes", "trace", "s-1"],
        stdout=writing,
        stderr=subprocess.PIPE,
        cwd=cli.folder,
    ) as process:
        os.close(writing)
        _, complaint = process.communicate(timeout=120)
    assert (process.returncode, complaint) == (141, b"")


def test_a_service_says_where_it_listens_and_goes_when_it_is_told(cli: CommandLine) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "casenotes", "serve", "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
        cwd=cli.folder,
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            url = line.removeprefix("casenotes listens on ").strip()
            with urllib.request.urlopen(f"{url}/readyz", timeout=60) as answer:
                assert answer.status == 200
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=60) == 0
        finally:
            process.kill()
    assert cli.database.exists()

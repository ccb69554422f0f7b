"""Tables on a terminal of 80 columns, and NO_COLOR (https://no-color.org)."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from clusterctl_cli.main import run
from tests.cli.site_of_three import write

PROGRAM = "import sys; from clusterctl_cli.main import run; sys.exit(run(sys.argv[1:]))"
REASON = (
    "coolant drips from manifold seven onto the backplane, technicians inspect hoses tomorrow before anything boots"
)


def on_a_terminal(argv: list[str], **environment: str) -> str:
    """Return what a command prints on a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    env = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    env |= {"TERM": "xterm-256color", "COLUMNS": "80"} | environment
    with subprocess.Popen([sys.executable, "-c", PROGRAM, *argv], stdin=theirs, stdout=theirs, stderr=theirs, env=env):
        os.close(theirs)
        printed = b"".join(iter(lambda: _read(ours), b""))
    os.close(ours)
    return printed.decode()


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # the last process closed the terminal
        return b""


def test_a_long_cause_is_wrapped_and_whole(tmp_path: Path) -> None:
    """On 80 columns each name and stage is whole, and every word of the cause is printed; NO_COLOR: no escape."""
    site = str(write(tmp_path))
    assert run(["quarantine", "n3", "--reason", REASON, "--site", site, "--yes"]) == 0
    printed = on_a_terminal(["nodes", "--site", site], NO_COLOR="1")

    assert "\x1b" not in printed
    assert max(map(len, printed.splitlines())) <= 80
    assert [word for word in ("n3", "quarantined", *REASON.split()) if word not in printed] == []


@pytest.mark.parametrize(
    "command",
    [
        *(["nodes"], ["nodes", "n3"], ["why", "n3"], ["plan"], ["bootstrap", "--dry-run"]),
        ["release", "n3", "--reason", "repaired", "--dry-run"],
    ],
    ids=" ".join,
)
def test_no_line_is_wider_than_the_terminal_and_no_word_is_broken(tmp_path: Path, command: list[str]) -> None:
    """Whatever prints a cause; without a terminal it is one line, whatever its length, for grep."""
    site = str(write(tmp_path))
    assert run(["quarantine", "n3", "--reason", REASON, "--site", site, "--yes"]) == 0
    printed = on_a_terminal([*command, "--site", site])
    assert max(map(len, re.sub(r"\x1b\[[0-9;]*m", "", printed).splitlines())) <= 80
    assert [word for word in REASON.split() if word not in printed] == []
    argv = [sys.executable, "-c", PROGRAM, *command, "--site", site]
    piped = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert REASON in piped.stdout


def test_the_doctors_lines_end_at_words(tmp_path: Path) -> None:
    """Only a path may be longer than the terminal: it can be copied whole."""
    printed = on_a_terminal(["doctor", "--site", str(write(tmp_path))])
    lines = re.sub(r"\x1b\[[0-9;]*m", "", printed).splitlines()
    assert [line for line in lines if len(line) > 80 and len(line.split(maxsplit=3)[-1].split()) > 1] == []

"""The programs of the role node_check for Slurm: which end of clusterctl-node becomes which exit code."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "roles/node_check/default/golden"


def run(folder: Path, name: str, code: int) -> tuple[int, list[str]]:
    """Return the exit code of a program, and the words that it called Python with, where Python ends with `code`."""
    python = folder / "python3"
    python.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {folder}/called\nexit {code}\n')
    python.chmod(0o755)
    script = (GOLDEN / f"{name}.j2").read_text().replace("/usr/bin/python3", str(python))
    (folder / name).write_text(script)
    done = subprocess.run(["sh", str(folder / name)], check=False, timeout=600, env={})
    return done.returncode, (folder / "called").read_text().splitlines()


@pytest.mark.parametrize("code", [0, 1, 2, 4, 124, 127])
def test_nothing_but_a_refusal_ends_a_prolog_with_an_error(tmp_path: Path, code: int) -> None:
    """Slurm drains the node for any error: a traceback (1), an unknown node (2) or a time-out (124) must be none."""
    ended, words = run(tmp_path, "clusterctl-prolog", code)
    assert ended == 0
    assert words[1:] == [
        *("prolog", "--percent", "2.0", "--scontrol", "/usr/bin/scontrol"),
        *("--textfile", "/var/lib/prometheus/node-exporter"),
    ]


def test_a_refusal_does(tmp_path: Path) -> None:
    """The job is queued again."""
    assert run(tmp_path, "clusterctl-prolog", 75)[0] == 1


@pytest.mark.parametrize("code", [0, 1, 75, 124])
def test_an_epilog_never_ends_with_an_error(tmp_path: Path, code: int) -> None:
    assert run(tmp_path, "clusterctl-epilog", code) == (0, run(tmp_path, "clusterctl-epilog", code)[1])


def test_the_health_check_calls_health(tmp_path: Path) -> None:
    assert run(tmp_path, "clusterctl-health", 0)[1][1] == "health"

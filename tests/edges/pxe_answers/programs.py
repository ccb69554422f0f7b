"""The programs as an installer gets them, in a folder of the test's own."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from clusterctl.edges.pxe.answers import ReleaseSeries, debian, ubuntu
from tests.edges.pxe_answers.jobs import job
from tests.edges.pxe_answers.service import Service

KEY = b"ssh-ed25519 AAAAkey root@node001\n"
"""What `ssh-keygen` in the new system makes here."""


def ubuntu_program(service: Service, folder: Path, **changes: Any) -> str:
    program = ubuntu.program(job(server=service.url, attempt=service.attempt, **changes))
    return program.replace(ubuntu.WORK, str(folder / "work"))


def debian_program(service: Service, folder: Path, **changes: Any) -> str:
    program = debian.program(job(ReleaseSeries.BOOKWORM, server=service.url, attempt=service.attempt, **changes))
    return program.replace(debian.WORK, str(folder / "work"))


def as_subiquity_writes_it(document: dict[str, Any], path: Path) -> None:
    """With the arguments that subiquity gives to PyYAML, in 22.04 as in 24.04."""
    style = {"line_break": "\n", "indent": 4, "explicit_start": True, "explicit_end": True}
    path.write_text(yaml.dump(document, default_flow_style=False, Dumper=yaml.SafeDumper, **style))


def wait_until(true: Callable[[], object]) -> None:
    """Until it is so; raises `AssertionError` after two minutes."""
    deadline = time.monotonic() + 600
    while not true():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.05)

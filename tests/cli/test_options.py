"""Options that many commands share."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import logging, click
from clusterctl_cli.options import verbose_option

@click.command()
@verbose_option
def command():
    for name in ("clusterctl.steps", "urllib3", "requests_oauthlib", "oauthlib", "redfish"):
        logging.getLogger(name).debug("detail")
        logging.getLogger(name).warning("warning")

command()
"""


def logged(*argv: str) -> set[tuple[str, str]]:
    """(logger, message) of all that reaches stderr."""
    ran = subprocess.run([sys.executable, "-c", PROGRAM, *argv], capture_output=True, text=True, check=True)
    heads = (line.split(": ", 1) for line in ran.stderr.splitlines())
    return {(head.split()[-1], message) for head, message in heads}


def test_verbose_tells_ours_in_detail_and_never_what_prints_credentials() -> None:
    """Some libraries log whole requests, passwords and keys among them: their details stay out at every level."""
    reported = logged("-vv")
    assert {("clusterctl.steps", "detail"), ("urllib3", "detail"), ("redfish", "warning")} <= reported
    assert not {name for name, message in reported if message == "detail"} & {
        "requests_oauthlib",
        "oauthlib",
        "redfish",
    }


def test_quiet_without_it() -> None:
    """Warnings of libraries are no business of a person who did not ask."""
    assert not logged()

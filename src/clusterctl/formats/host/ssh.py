"""Reasons of a failed SSH connection, from messages of OpenSSH (also through Ansible), paramiko and the kernel."""

from __future__ import annotations

import re

from clusterctl.fleet.errors import SshFailure

STALLED = "sshd does not answer in time"
"""The message of our own connections, which comes back through Ansible: the host took the connection and stalls."""

_WORDS = (
    # First, because a time-out of the banner also contains "timed out".
    (SshFailure.NO_GREETING, rf"{STALLED}|banner|no existing session|kex_exchange_identification.*timed out"),
    (SshFailure.REFUSED, r"connection refused"),
    (SshFailure.NO_ANSWER, r"timed? ?out|no route to host|(?:network|host) is (?:unreachable|down)"),
    (SshFailure.BROKEN, r"reset by peer|broken pipe|closed by|connection broke|EOFError|shared connection"),
)


def parse_ssh_failure(message: str) -> SshFailure:
    """Return the reason that an error message reports."""
    found = (silence for silence, pattern in _WORDS if re.search(pattern, message, re.IGNORECASE))
    return next(found, SshFailure.UNKNOWN)

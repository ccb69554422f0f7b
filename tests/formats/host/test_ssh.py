"""Why SSH fails, in the words of the programs that report it."""

from __future__ import annotations

import pytest

from clusterctl.fleet.errors import SshFailure
from clusterctl.formats.host.ssh import STALLED, parse_ssh_failure


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("no SSH: [Errno 111] Connection refused", SshFailure.REFUSED),
        ("ssh: connect to host 10.0.0.7 port 22: Connection refused", SshFailure.REFUSED),
        ("no SSH: timed out", SshFailure.NO_ANSWER),
        ("no SSH: [Errno 113] No route to host", SshFailure.NO_ANSWER),
        ("ssh: connect to host 10.0.0.7 port 22: Connection timed out", SshFailure.NO_ANSWER),
        ("no SSH: Error reading SSH protocol banner", SshFailure.NO_GREETING),
        ("no SSH: No existing session", SshFailure.NO_GREETING),
        (f"Failed to connect to the host via ssh: no SSH: {STALLED}: login", SshFailure.NO_GREETING),
        ("Connection timed out during banner exchange", SshFailure.NO_GREETING),
        ("the connection broke while python3 ran: [Errno 104] Connection reset by peer", SshFailure.BROKEN),
        ("Connection to 10.0.0.7 closed by remote host.", SshFailure.BROKEN),
        ("the host refuses the key for ops", SshFailure.UNKNOWN),
    ],
)
def test_kinds_of_silence_are_distinguished(words: str, kind: SshFailure) -> None:
    """A stopped sshd, a cut network and a hung host need different repairs: their words are never mixed up."""
    assert parse_ssh_failure(words) is kind

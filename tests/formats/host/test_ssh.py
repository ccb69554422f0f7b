"""Why SSH fails, in the words of those who say it."""

from __future__ import annotations

import pytest

from clusterctl.formats.host.ssh import Silence, parse_silence


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("no SSH: [Errno 111] Connection refused", Silence.REFUSED),
        ("ssh: connect to host 10.0.0.7 port 22: Connection refused", Silence.REFUSED),
        ("no SSH: timed out", Silence.NO_ANSWER),
        ("no SSH: [Errno 113] No route to host", Silence.NO_ANSWER),
        ("ssh: connect to host 10.0.0.7 port 22: Connection timed out", Silence.NO_ANSWER),
        ("no SSH: Error reading SSH protocol banner", Silence.NO_GREETING),
        ("no SSH: No existing session", Silence.NO_GREETING),
        ("Connection timed out during banner exchange", Silence.NO_GREETING),
        ("the connection broke while python3 ran: [Errno 104] Connection reset by peer", Silence.BROKEN),
        ("Connection to 10.0.0.7 closed by remote host.", Silence.BROKEN),
        ("the host refuses the key for ops", Silence.UNKNOWN),
    ],
)
def test_kinds_of_silence_are_told_apart(words: str, kind: Silence) -> None:
    """A stopped sshd, a cut network and a hung host need different hands: their words are never mixed up."""
    assert parse_silence(words) is kind

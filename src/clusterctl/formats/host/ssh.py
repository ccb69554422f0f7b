"""Why no SSH session came about, from the words of OpenSSH (by way of Ansible), paramiko and the kernel."""

from __future__ import annotations

import enum
import re


class Silence(enum.Enum):
    """REFUSED: the host answers, and nothing listens. NO_ANSWER: nothing comes back at all. NO_GREETING: the kernel
    takes the connection, and no server greets. BROKEN: the connection was there and went. UNKNOWN: other words.
    """

    REFUSED = "refused"
    NO_ANSWER = "no answer"
    NO_GREETING = "no greeting"
    BROKEN = "broken"
    UNKNOWN = "unknown"


_WORDS = (
    # A time-out of the greeting speaks of a time-out too: it comes first.
    (Silence.NO_GREETING, r"banner|no existing session|kex_exchange_identification.*timed out"),
    (Silence.REFUSED, r"connection refused"),
    (Silence.NO_ANSWER, r"timed? ?out|no route to host|(?:network|host) is (?:unreachable|down)"),
    (Silence.BROKEN, r"reset by peer|broken pipe|closed by|connection broke|EOFError|shared connection"),
)


def parse_silence(words: str) -> Silence:
    """The kind of silence that `words` tell of."""
    found = (silence for silence, pattern in _WORDS if re.search(pattern, words, re.IGNORECASE))
    return next(found, Silence.UNKNOWN)

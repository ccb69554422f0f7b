"""Runs on a node, as the built-in probe `load-samples`: prints what the sampler saw of the load that has ended;
`load-samples ready [NAME]` waits until the sampler of that name has begun.

Standard library only, Python 3.9. Exit code 1 where no sampler answers.
"""

from __future__ import annotations

import os
import socket
import sys
import time

TYPE_CHECKING = False  # the import of typing costs 2 ms at each start
if TYPE_CHECKING:
    from typing import Sequence

ADDRESS = "\0clusterctl-load-sampler"  # of load_sampler.py
PATIENCE = float(os.environ.get("CLUSTERCTL_PATIENCE", "1"))  # how many times as long a host is given
READY_S, END_S = 15.0 * PATIENCE, 20.0 * PATIENCE  # seconds that an answer may take


def ask(address: str, word: bytes, seconds: float) -> bytes:
    """Return the sampler's answer. Raises `OSError`."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
        peer.settimeout(seconds)
        peer.connect(address)
        peer.sendall(word)
        parts = []
        while chunk := peer.recv(1 << 16):
            parts.append(chunk)
    return b"".join(parts)


def begun(address: str, name: str = "") -> bool:
    """Wait until the sampler has begun; return whether it has."""
    until = time.monotonic() + READY_S
    while time.monotonic() < until:
        try:
            if ask(address, f"ready {name}\n".encode(), READY_S):
                return True
        except OSError:
            pass
        time.sleep(0.05)
    return False


def main(argv: Sequence[str], address: str = ADDRESS) -> int:
    """Print the document, or wait for the sampler."""
    if argv and argv[0] == "ready":
        return 0 if begun(address, *argv[1:]) else 1
    try:
        document = ask(address, b"document\n", END_S)
    except OSError as error:
        sys.stderr.write(f"no sampler answers: {error.strerror or error}\n")
        return 1
    sys.stdout.write(document.decode("utf-8", "replace"))
    return 0 if document else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

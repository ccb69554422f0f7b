"""Run by a tool's script that may have set a port: `announce.py SOCKET` returns when the lab has followed it.

Standard library alone, run as a file: it starts in a twentieth of a second. SOCKET is the name of an abstract socket;
what comes back over it is `followed`, or what went wrong.
"""

from __future__ import annotations

import socket
import sys

FOLLOWED = "followed"
_SECONDS = 90


def main(name: str) -> int:
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_SECONDS)
            connection.connect(f"\0{name}")
            with connection.makefile() as answer:
                said = answer.read() or "it ended"
    except OSError as error:
        said = f"it does not answer: {error}"
    if said == FOLLOWED:
        return 0
    sys.stderr.write(f"the fabric of this lab has not followed the port: {said}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

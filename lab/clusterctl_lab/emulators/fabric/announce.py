"""Program for tool scripts that may have set a port: `announce.py SOCKET` returns when the lab's fabric matches the
port.

It uses the standard library alone and runs as a file, so that it starts within 0.05 s. SOCKET is the name of an
abstract socket; the answer over it is `followed` or the error.
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
                message = answer.read() or "it ended"
    except OSError as error:
        message = f"it does not answer: {error}"
    if message == FOLLOWED:
        return 0
    sys.stderr.write(f"the fabric of this lab has not followed the port: {message}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

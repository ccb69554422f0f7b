"""swapon: `--show…` says what swap is on. The lab's hosts have none; their kernel's table is the controller's."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str]) -> int:
    if any(word.startswith("--show") for word in argv) or list(argv) == ["-s"]:
        return 0
    sys.stderr.write("swapon: a host of the lab has no swap and cannot turn any on\n")
    return 1

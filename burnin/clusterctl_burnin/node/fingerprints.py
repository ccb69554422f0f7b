"""Runs on a node: fingerprints of whole drives, which show whether an install has written to them.

Standard library only, Python 3.9. The controller sends this file to `python3 -`, followed by one line that calls
`main`. A fingerprint is SHA-256 (hexadecimal) over parts of a drive in this order: its first MiB, its last MiB, and 14
blocks of 64 KiB at `i * (size // 15)` rounded down to 4096, i = 1 to 14; of a drive of at most 32 MiB, over all of it.
An installer reads the same before it writes anything.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
from typing import Dict, Iterator, Sequence, Tuple

MIB = 1 << 20
BLOCK = 64 << 10
SMALL = 32 * MIB

Answers = Dict[str, Dict[str, str]]  # evaluated on Python 3.9


def regions(size: int) -> Iterator[Tuple[int, int]]:
    """Yield (offset, length) of what is read of a drive of `size` bytes."""
    if size <= SMALL:
        yield 0, size
        return
    yield 0, MIB
    yield size - MIB, MIB
    for index in range(1, 15):
        yield index * (size // 15) // 4096 * 4096, BLOCK


def fingerprint(path: str) -> str:
    """Return the fingerprint of one drive; raise `OSError` where it cannot be read."""
    digest = hashlib.sha256()
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        for offset, length in regions(os.lseek(descriptor, 0, os.SEEK_END)):
            end = offset + length
            while offset < end:
                part = os.pread(descriptor, min(end - offset, MIB), offset)
                if not part:
                    raise OSError(0, "it ends early")
                digest.update(part)
                offset += len(part)  # noqa: PLW2901 — what is left of this region
    finally:
        os.close(descriptor)
    return digest.hexdigest()


def main(paths: Sequence[str], seconds: float) -> None:
    """Print `{PATH: {"fingerprint": …} or {"error": …}}`; all drives at once, what takes longer is left behind."""
    answers: Answers = {path: {"error": "it did not answer within {:.0f} s".format(seconds)} for path in paths}

    def look(path: str) -> None:
        try:
            answers[path] = {"fingerprint": fingerprint(path)}
        except OSError as error:
            answers[path] = {"error": error.strerror or str(error)}

    threads = [threading.Thread(target=look, args=(path,), daemon=True) for path in paths]
    for thread in threads:
        thread.start()
    late = threading.Event()
    timer = threading.Timer(seconds, late.set)
    timer.daemon = True
    timer.start()
    for thread in threads:
        while thread.is_alive() and not late.is_set():
            thread.join(0.05)
    print(json.dumps(dict(answers)))
    sys.stdout.flush()
    os._exit(0)  # a thread that waits for a dead drive would keep the program

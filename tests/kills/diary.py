"""What a run did, written in parallel so that a kill loses nothing of it: one line of JSON each, on disk before it goes on.

A kill may cut a line off where it crosses a page of the file (the kernel looks for fatal signals between pages): such a
line counts as never written, and the next run removes it.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self


class Diary:
    """Appends lines; each is on disk when `write` returns. Use as a context."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self._stream = self._file.open("a+b", buffering=0)
        self._stream.seek(0)
        message = self._stream.read().rfind(b"\n") + 1
        self._stream.truncate(message)
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def write(self, **line: Any) -> None:
        with self._lock:
            self._stream.write(json.dumps({"at": round(time.monotonic(), 4), **line}).encode() + b"\n")
            os.fsync(self._stream.fileno())


def lines_of(file: Path) -> Iterator[dict[str, Any]]:
    """Oldest first; a line that the kill cut off counts as never written."""
    for line in file.read_bytes().split(b"\n")[:-1]:
        yield json.loads(line)

"""Runs on a node, as the built-in probe `storage-read SECONDS READERS`: reads the site's storage with many processes.

Standard library only, Python 3.9. The site's requirements name the source: a URL (an object of an S3-compatible store,
signed by the controller or public, or any file of a web server), or the path of a file on a network file system. Each
reader begins at an offset of its own and reads until the time is over; what it read is dropped. A file is read past
the page cache (O_DIRECT). TLS is verified against the host's authorities. A URL's query may hold a signature: it is
printed nowhere.
"""

from __future__ import annotations

import errno
import http.client
import json
import mmap
import multiprocessing
import os
import sys
import time
import urllib.error
import urllib.request
from typing import Any, Callable, Dict, List
from urllib.parse import urlsplit

BLOCK = 4 << 20  # bytes of one read
QUIET = 20.0  # seconds that a server may send nothing
END = 10.0  # seconds for the start and end of the readers
Count = Callable[[int], bool]  # takes the bytes that were read; returns whether to go on


def named(source: Dict[str, Any]) -> str:
    """Return the source without what may be a secret."""
    url = source.get("url") or ""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" if url else str(source.get("path") or "")


def read_url(url: str, share: float, count: Count) -> None:
    """Read the object again and again, the first time from `share` of its length on. Raises OSError."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    headers: Dict[str, str] = {}
    while True:
        with opener.open(urllib.request.Request(url, headers=headers), timeout=QUIET) as answer:  # noqa: S310 — http(s)
            size = int(answer.headers.get("Content-Length") or 0)
            if not headers and share and size:
                headers = {"Range": f"bytes={int(size * share)}-"}
                continue
            buffer, length = bytearray(BLOCK), 0
            while got := answer.readinto(buffer):
                length += got
                if not count(got):
                    return
            if not length:
                raise OSError(errno.ENODATA, "the object is empty")
        headers, share = {}, 0.0


def read_file(path: str, share: float, count: Count) -> None:
    """Read the file again and again past the page cache, from `share` of its length on. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECT)
    try:
        size = os.fstat(descriptor).st_size
        if not size:
            raise OSError(errno.ENODATA, "the file is empty")
        at, buffer = int(size * share) // BLOCK * BLOCK, mmap.mmap(-1, BLOCK)
        while True:
            got = os.preadv(descriptor, [buffer], at)
            if got and not count(got):
                return
            at = at + got if got == BLOCK else 0
    finally:
        os.close(descriptor)


def words_of(error: BaseException) -> str:
    """Return why a read failed, without the URL."""
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP {error.code} {error.reason}"[:300]
    reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
    return str(reason)[:300] or type(error).__name__


def reader(source: Dict[str, Any], share: float, until: float, answer: Any) -> None:
    """Read until `until` (`time.monotonic()`), and send what came of it."""
    done, began = 0, time.monotonic()

    def count(got: int) -> bool:
        nonlocal done
        done += got
        return time.monotonic() < until

    trouble = ""
    try:
        if source.get("url"):
            read_url(source["url"], share, count)
        else:
            read_file(source["path"], share, count)
    except (OSError, ValueError, http.client.HTTPException) as error:
        trouble = words_of(error).replace(urlsplit(source.get("url") or "").query or "?", "")
    answer.send({"bytes": done, "seconds": round(time.monotonic() - began, 3), "trouble": trouble})
    answer.close()


def read_all(source: Dict[str, Any], seconds: int, readers: int) -> List[Dict[str, Any]]:
    """Start the readers; return what each of them read. One that does not answer in time is killed."""
    context = multiprocessing.get_context("fork")
    until = time.monotonic() + seconds
    started = []
    for number in range(readers):
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=reader, args=(source, number / readers, until, theirs), daemon=True)
        process.start()
        theirs.close()
        started.append((process, ours))
    answers = []
    for process, ours in started:
        late = {"bytes": 0, "seconds": 0.0, "trouble": "it did not end in time"}
        answers.append(answer_of(ours, max(0.0, until + QUIET + END / 2 - time.monotonic())) or late)
        process.kill()
    return answers


def answer_of(pipe: Any, seconds: float) -> Dict[str, Any]:
    """Return a reader's answer, an empty one where none comes."""
    try:
        return dict(pipe.recv()) if pipe.poll(seconds) else {}
    except (EOFError, OSError):
        return {"bytes": 0, "seconds": 0.0, "trouble": "its reader ended without an answer"}


def main(argv: List[str], source: Dict[str, Any]) -> int:
    """Print `{"version", "source", "least_gbps", "readers": [{bytes, seconds, trouble}]}`; no source, no reader."""
    if len(argv) != 2 or not all(word.isdigit() and int(word) for word in argv):
        sys.stderr.write("storage-read takes two numbers: SECONDS READERS\n")
        return 2
    seconds, readers = map(int, argv)
    answers = read_all(source, seconds, readers) if named(source) else []
    document = {"version": 1, "source": named(source), "least_gbps": source.get("gbps") or 0, "readers": answers}
    json.dump(document, sys.stdout)
    sys.stdout.flush()
    return 0


if __name__ == "__main__":
    wanted = json.loads(os.environ.pop("CLUSTERCTL_REQUIREMENTS", "{}"))
    ended = main(sys.argv[1:], wanted.get("storage") or {})
    os._exit(ended)  # a reader that waits for a dead server would keep the program

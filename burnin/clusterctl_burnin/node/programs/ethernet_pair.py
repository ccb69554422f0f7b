"""Runs on a node, as the built-in probe `ethernet-pair`: one end of a pair that sends by iperf3, one way and back.

Standard library only, Python 3.9. `ethernet-pair INTERFACE PROCESSES STREAMS SECONDS LIMIT` serves; with an ADDRESS
behind it, it sends to that server. An iperf3 before 3.16 works on one processor, so several of them send at a time,
each at a port of its own. The document has the speed of the interface's link and what each iperf3 printed.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

from clusterctl_burnin.node.processes import Result, ask

FIRST_PORT = 5201
NET = Path("/sys/class/net")
WAYS = ((), ("-R",))  # to the server, and back
MARGIN = 15.0  # seconds that one iperf3 may take longer than it sends
PAUSE = 0.2
UNREACHED = ("unable to connect", "server is busy")  # messages of iperf3: the server is not there yet


def speed(interface: str) -> Optional[int]:
    """Return the link's speed in Mb/s (a bond has the sum of its members); None where the kernel reports none."""
    try:
        found = int((NET / interface / "speed").read_text())
    except (OSError, ValueError):
        return None
    return found if found > 0 else None


def send(argv: Sequence[str], seconds: float, until: float) -> Result:
    """Run a client, again and again while its server is not there yet."""
    while True:
        left = until - time.monotonic()
        code, out, err = ask(*argv, seconds=min(seconds + MARGIN, max(0.1, left)))
        waits = code not in (124, 127) and any(word in out + err for word in UNREACHED)  # with -J it exits 0
        if not waits or left <= PAUSE:
            return code, out, err
        time.sleep(PAUSE)


def at_once(commands: Sequence[Sequence[str]], seconds: float, until: float) -> List[Result]:
    """Run the clients at the same time; return their results in order."""
    answers: Dict[int, Result] = {}

    def one(number: int, argv: Sequence[str]) -> None:
        answers[number] = send(argv, seconds, until)

    threads = [threading.Thread(target=one, args=(n, argv), daemon=True) for n, argv in enumerate(commands)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [answers[number] for number in range(len(commands))]


def serve(ports: Sequence[int], until: float) -> List[Result]:
    """Serve each port once for each way; return what failed."""
    failed: List[Result] = []

    def one(port: int) -> None:
        for _ in WAYS:
            answer = ask("iperf3", "-s", "-1", "-p", str(port), seconds=max(0.1, until - time.monotonic()))
            if answer[0] != 0:
                failed.append(answer)
                return

    threads = [threading.Thread(target=one, args=(port,), daemon=True) for port in ports]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failed


def entry(answer: Result) -> Dict[str, Any]:
    code, out, err = answer
    return {"code": code, "output": out[-65536:], "error": err[-2000:]}


def main(argv: Sequence[str]) -> int:
    """Print the document. `ways` has two lists, one for each way, of what each client printed."""
    interface, *numbers = argv[:5]
    processes, streams, seconds, limit = map(int, numbers)
    address = argv[5] if len(argv) > 5 else ""
    until, ports = time.monotonic() + limit, range(FIRST_PORT, FIRST_PORT + processes)
    document: Dict[str, Any] = {"version": 1, "speed": speed(interface), "ways": [], "failed": []}
    if not address:
        document["failed"] = [entry(answer) for answer in serve(ports, until)]
    for way in WAYS if address else ():
        base = ["iperf3", "-c", address, "-t", str(seconds), "-P", str(streams), "-J", *way]
        answers = at_once([[*base, "-p", str(port)] for port in ports], seconds, until)
        document["ways"].append([entry(answer) for answer in answers])
    json.dump(document, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

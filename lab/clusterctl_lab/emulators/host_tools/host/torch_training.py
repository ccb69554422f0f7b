"""torch-group's training over many nodes, over TCP and without PyTorch.

Stands in for a burn-in program and uses its messages. In each step every node works for a while (it hashes zeros, which
a processor quota slows down as it would a training) and then waits for the first node, which waits for all. One process
acts for all ranks of its node.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import struct
import sys
import time
from collections.abc import Callable, Sequence

WARM_UP = 2
"""Steps that are not measured."""
WORK = 256
"""Bytes hashed for each value of a step's sequences and layers."""
SUMS = struct.Struct("!dd")
"""Seconds of a node's own work, and of its waits, in all measured steps."""


class Times:
    """Seconds in all measured steps."""

    def __init__(self) -> None:
        self.steps, self.own, self.wait = 0, 0.0, 0.0

    def add(self, begun: float, ready: float, summed: float) -> None:
        self.steps += 1
        if self.steps > WARM_UP:
            self.own += ready - begun
            self.wait += summed - ready


class Step:
    """What a node does in each step. `exchange` ends it: it sends the sums and returns whether it was the last."""

    def __init__(self, size: int, exchange: Callable[[bytes], bool]) -> None:
        self.zeros, self.exchange, self.times = bytes(size), exchange, Times()

    def run(self) -> bool:
        begun = time.monotonic()
        hashlib.sha256(self.zeros).digest()
        ready = time.monotonic()
        over = self.exchange(SUMS.pack(self.times.own, self.times.wait))
        self.times.add(begun, ready, time.monotonic())
        return over


def work(layers: int, width: int, sequence: int, batch: int) -> int:
    """Return how many bytes a node hashes in each step."""
    return layers * width * sequence * batch * WORK


def lead(size: int, seconds: float, peers: dict[int, socket.socket], ranks: int) -> list[int]:
    """Train with the others until `seconds` are over, and print the result; return the nodes that fell silent."""
    until = time.monotonic() + seconds
    sums: dict[int, tuple[float, float]] = {}
    silent: list[int] = []

    def exchange(_mine: bytes) -> bool:
        for node, peer in peers.items():
            try:
                sums[node] = SUMS.unpack(exactly(peer, SUMS.size))
            except OSError:
                silent.append(node)
        over = bool(silent) or (time.monotonic() > until and step.times.steps > WARM_UP + 1)
        for node, peer in peers.items():
            if node not in silent:
                peer.sendall(bytes([over]))
        return over

    step = Step(size, exchange)
    while not step.run():
        pass
    if not silent:
        sums[0] = (step.times.own, step.times.wait)
        report(step.times.steps - WARM_UP, [sums[node] for node in sorted(sums)], ranks)
    return silent


def follow(size: int, head: socket.socket) -> None:
    """Train until the first node ends it. Raises OSError where it is gone."""

    def exchange(mine: bytes) -> bool:
        head.sendall(mine)
        return bool(exactly(head, 1)[0])

    step = Step(size, exchange)
    while not step.run():
        pass


def report(steps: int, sums: Sequence[tuple[float, float]], ranks: int) -> None:
    """Print the result of all nodes, each of them with `ranks` ranks."""
    means = [{"own_ms": own / steps * 1e3, "wait_ms": wait / steps * 1e3} for own, wait in sums for _ in range(ranks)]
    lines = [f"#  Rank {rank:>2} Group  0 Pid {os.getpid():>6} on the lab, no GPU" for rank in range(len(means))]
    document = {"steps": steps, "gradient_bytes": SUMS.size, "ranks": means}
    sys.stdout.write("\n".join([*lines, "# Training " + json.dumps(document)]) + "\n")


def exactly(peer: socket.socket, size: int) -> bytes:
    """Return so many bytes. Raises ConnectionError where the peer hangs up before."""
    data = bytearray()
    while len(data) < size:
        more = peer.recv(size - len(data))
        if not more:
            raise ConnectionError("it hung up")
        data += more
    return bytes(data)

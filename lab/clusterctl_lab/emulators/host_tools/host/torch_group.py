"""torch-group: the burn-in's own sum over many nodes, over TCP and without PyTorch.

Stands in for a program of the burn-in, whose words it uses. Every node sends its buffer to the first one, which adds
them up and sends the sum back; each element is checked. One process speaks for all ranks of its node.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
import struct
import sys
import time
from array import array
from collections.abc import Sequence

from clusterctl_lab.emulators.host_tools.host.facts import Facts, load

STALLED, STORE_GONE = 3, 7
FLOAT_BYTES = 4
AMID = 0.4
"""A node that stops amid a long sum has had this part of its time."""
CONNECT_S = 0.2
NUMBER = struct.Struct("!i")
Node = tuple[int, str]
"""Its number in the group, and why it keeps the others waiting."""


def main(argv: Sequence[str]) -> int:
    said, facts = _options(argv), load()
    mine = array("f", [_gives(said, facts)]) * (said.bytes // FLOAT_BYTES)
    stops = AMID * said.seconds if facts.sums_stop and said.seconds else float("inf")
    return Head(said, mine, stops).run() if said.node == 0 else _follow(said, mine, stops)


def _options(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("torch-group")
    for name in ("--nodes", "--node", "--ranks", "--port", "--bytes"):
        parser.add_argument(name, type=int, required=True)
    for name in ("--seconds", "--stall", "--start", "--limit"):
        parser.add_argument(name, type=float, required=True)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--head", required=True)
    for name in ("--python", "--backend", "--interface", "--devices"):
        parser.add_argument(name, default="")
    return parser.parse_args(argv)


def _gives(said: argparse.Namespace, facts: Facts) -> int:
    """The sum of rank + 1 over this node's ranks."""
    first = said.node * said.ranks
    return sum(range(first + 1, first + said.ranks + 1)) + facts.sums_wrong


class Head:
    """The first node: it meets the others, adds up, and says who is missing. `stops`: seconds after which it does."""

    def __init__(self, said: argparse.Namespace, mine: array[float], stops: float) -> None:
        self.said, self.mine, self.stops, self.step = said, mine, stops, 0
        self.peers: dict[int, socket.socket] = {}

    def run(self) -> int:
        away = self._meet()
        started, wrong, elapsed, over = time.monotonic(), 0, 0.0, False
        while not (away or over):
            self.step += 1
            received, away = self._receive() if elapsed < self.stops else self._stop()
            if not away:
                over = elapsed > self.said.seconds and self.step > self.said.iterations
                total = array("f", map(sum, zip(self.mine, *received.values(), strict=True)))
                wrong += self._wrong(total)
                self._send(total, over=over)
            elapsed = time.monotonic() - started
        if away:
            self._stalled(away)
            return STALLED
        self._tell(elapsed / self.step, wrong)
        return 0

    def _stop(self) -> tuple[dict[int, array[float]], list[Node]]:
        time.sleep(self.said.stall)
        return {}, [(0, "it is silent")]

    def _meet(self) -> list[Node]:
        until = time.monotonic() + self.said.start
        with socket.create_server((self.said.head, self.said.port)) as server:
            while len(self.peers) < self.said.nodes - 1 and time.monotonic() < until:
                server.settimeout(max(CONNECT_S, until - time.monotonic()))
                with contextlib.suppress(TimeoutError):
                    peer, _ = server.accept()
                    peer.settimeout(self.said.stall)
                    self.peers[NUMBER.unpack(_exactly(peer, NUMBER.size))[0]] = peer
        return [(node, "it never came") for node in range(1, self.said.nodes) if node not in self.peers]

    def _receive(self) -> tuple[dict[int, array[float]], list[Node]]:
        received: dict[int, array[float]] = {}
        away: list[Node] = []
        for node, peer in self.peers.items():
            try:
                received[node] = array("f", _exactly(peer, self.said.bytes))
            except OSError:  # no word in time, or it hung up
                away.append((node, "it is silent"))
        return received, away

    def _send(self, total: array[float], *, over: bool) -> None:
        for peer in self.peers.values():
            with contextlib.suppress(OSError):  # who has hung up is missing at the next step
                peer.sendall(bytes([over]) + total.tobytes())

    def _wrong(self, total: array[float]) -> int:
        world = self.said.nodes * self.said.ranks
        right = array("f", [world * (world + 1) / 2])
        return 0 if total == right * len(total) else sum(value != right[0] for value in total)

    def _stalled(self, away: Sequence[Node]) -> None:
        sys.stdout.write(f"# Stalled in step {self.step}\n")
        for node, why in away:
            for rank in range(node * self.said.ranks, (node + 1) * self.said.ranks):
                sys.stdout.write(f"# Missing rank {rank} in step {max(0, self.step - 1)}: {why}\n")

    def _tell(self, seconds: float, wrong: int) -> None:
        size, world = self.said.bytes, self.said.nodes * self.said.ranks
        rate = size / seconds / 1e9
        bus = rate * 2 * (world - 1) / world
        lines = [f"# torch.distributed, {self.said.backend}"]
        lines += [f"#  Rank {rank:>2} Group  0 Pid {os.getpid():>6} on the lab, no GPU" for rank in range(world)]
        row = f"{size:>12} {size // FLOAT_BYTES:>13} {'float':>9} {'sum':>7} {-1:>7}"
        lines += [f"{row} {seconds * 1e6:>11.1f} {rate:>9.6f} {bus:>9.6f} {wrong:>6}"]
        lines += [f"# Out of bounds values : {wrong} {'FAILED' if wrong else 'OK'}"]
        sys.stdout.write("\n".join([*lines, f"# Avg bus bandwidth    : {bus:.6f}"]) + "\n")


def _follow(said: argparse.Namespace, mine: array[float], stops: float) -> int:
    """Gives its buffer until the first node says that it is over."""
    started = time.monotonic()
    try:
        with _connected(said) as head:
            head.sendall(NUMBER.pack(said.node))
            while time.monotonic() - started < stops:
                head.sendall(mine.tobytes())
                if _exactly(head, 1 + said.bytes)[0]:
                    return 0
            head.settimeout(said.limit)
            while head.recv(1 << 16):  # it hangs until the others give up
                pass
    except OSError as error:
        sys.stderr.write(f"node {said.node} has lost the first node: {error}\n")
    return STORE_GONE


def _connected(said: argparse.Namespace) -> socket.socket:
    until = time.monotonic() + said.start
    while True:
        try:
            return socket.create_connection((said.head, said.port), timeout=said.limit)
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(CONNECT_S)


def _exactly(peer: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        more = peer.recv(size - len(data))
        if not more:
            raise ConnectionError("it hung up")
        data += more
    return bytes(data)

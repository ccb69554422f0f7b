"""torch-group: the burn-in's own sum or training over many nodes, over TCP and without PyTorch.

Stands in for a burn-in program and uses its messages. Every node sends its buffer to the first node, which adds them
and sends the sum back; each element is checked. One process acts for all ranks of its node.
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

from clusterctl_lab.emulators.host_tools.host import torch_training
from clusterctl_lab.emulators.host_tools.host.facts import Facts, load
from clusterctl_lab.emulators.host_tools.host.torch_training import exactly

STALLED, STORE_GONE = 3, 7
FLOAT_BYTES = 4
STOPS_AFTER = 0.4
"""A node that stops during a long sum stops after this part of the time."""
CONNECT_S = 0.2
NUMBER = struct.Struct("!i")
Node = tuple[int, str]
"""The number of a node in the group, and the reason why it delays the others."""


def main(argv: Sequence[str]) -> int:
    options, facts = _options(argv), load()
    mine = array("f", [_gives(options, facts)]) * (options.bytes // FLOAT_BYTES)
    stops = STOPS_AFTER * options.seconds if facts.sums_stop and options.seconds else float("inf")
    if options.layers:
        size = torch_training.work(options.layers, options.width, options.sequence, options.batch)
        return Head(options, mine, stops).train(size) if options.node == 0 else _train_along(options, size)
    return Head(options, mine, stops).run() if options.node == 0 else _follow(options, mine, stops)


def _options(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("torch-group")
    for name in ("--nodes", "--node", "--ranks", "--port", "--bytes"):
        parser.add_argument(name, type=int, required=True)
    for name in ("--layers", "--width", "--sequence", "--batch"):
        parser.add_argument(name, type=int, default=0)
    for name in ("--seconds", "--stall", "--start", "--limit"):
        parser.add_argument(name, type=float, required=True)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--head", required=True)
    for name in ("--python", "--backend", "--interface", "--devices"):
        parser.add_argument(name, default="")
    return parser.parse_args(argv)


def _gives(options: argparse.Namespace, facts: Facts) -> int:
    """The sum of rank + 1 over this node's ranks."""
    first = options.node * options.ranks
    return sum(range(first + 1, first + options.ranks + 1)) + facts.sums_wrong


class Head:
    """The first node: it accepts the others, adds their buffers and reports missing nodes. `stops`: seconds after which
    it stops.
    """

    def __init__(self, options: argparse.Namespace, mine: array[float], stops: float) -> None:
        self.options, self.mine, self.stops, self.step = options, mine, stops, 0
        self.peers: dict[int, socket.socket] = {}

    def run(self) -> int:
        away = self._meet()
        started, wrong, elapsed, over = time.monotonic(), 0, 0.0, False
        while not (away or over):
            self.step += 1
            received, away = self._receive() if elapsed < self.stops else self._stop()
            if not away:
                over = elapsed > self.options.seconds and self.step > self.options.iterations
                total = array("f", map(sum, zip(self.mine, *received.values(), strict=True)))
                wrong += self._wrong(total)
                self._send(total, over=over)
            elapsed = time.monotonic() - started
        if away:
            self._stalled(away)
            return STALLED
        self._report(elapsed / self.step, wrong)
        return 0

    def train(self, size: int) -> int:
        away = self._meet()
        if not away:
            silent = torch_training.lead(size, self.options.seconds, self.peers, self.options.ranks)
            away = [(node, "it is silent") for node in silent]
        if away:
            self._stalled(away)
        return STALLED if away else 0

    def _stop(self) -> tuple[dict[int, array[float]], list[Node]]:
        time.sleep(self.options.stall)
        return {}, [(0, "it is silent")]

    def _meet(self) -> list[Node]:
        until = time.monotonic() + self.options.start
        with socket.create_server((self.options.head, self.options.port)) as server:
            while len(self.peers) < self.options.nodes - 1 and time.monotonic() < until:
                server.settimeout(max(CONNECT_S, until - time.monotonic()))
                with contextlib.suppress(TimeoutError):
                    peer, _ = server.accept()
                    peer.settimeout(self.options.stall)
                    self.peers[NUMBER.unpack(exactly(peer, NUMBER.size))[0]] = peer
        return [(node, "it never came") for node in range(1, self.options.nodes) if node not in self.peers]

    def _receive(self) -> tuple[dict[int, array[float]], list[Node]]:
        received: dict[int, array[float]] = {}
        away: list[Node] = []
        for node, peer in self.peers.items():
            try:
                received[node] = array("f", exactly(peer, self.options.bytes))
            except OSError:  # no data within the limit, or a closed connection
                away.append((node, "it is silent"))
        return received, away

    def _send(self, total: array[float], *, over: bool) -> None:
        for peer in self.peers.values():
            with contextlib.suppress(OSError):  # who has hung up is missing at the next step
                peer.sendall(bytes([over]) + total.tobytes())

    def _wrong(self, total: array[float]) -> int:
        world = self.options.nodes * self.options.ranks
        right = array("f", [world * (world + 1) / 2])
        return 0 if total == right * len(total) else sum(value != right[0] for value in total)

    def _stalled(self, away: Sequence[Node]) -> None:
        sys.stdout.write(f"# Stalled in step {self.step}\n")
        for node, why in away:
            for rank in range(node * self.options.ranks, (node + 1) * self.options.ranks):
                sys.stdout.write(f"# Missing rank {rank} in step {max(0, self.step - 1)}: {why}\n")

    def _report(self, seconds: float, wrong: int) -> None:
        size, world = self.options.bytes, self.options.nodes * self.options.ranks
        rate = size / seconds / 1e9
        bus = rate * 2 * (world - 1) / world
        lines = [f"# torch.distributed, {self.options.backend}"]
        lines += [f"#  Rank {rank:>2} Group  0 Pid {os.getpid():>6} on the lab, no GPU" for rank in range(world)]
        row = f"{size:>12} {size // FLOAT_BYTES:>13} {'float':>9} {'sum':>7} {-1:>7}"
        lines += [f"{row} {seconds * 1e6:>11.1f} {rate:>9.6f} {bus:>9.6f} {wrong:>6}"]
        lines += [f"# Out of bounds values : {wrong} {'FAILED' if wrong else 'OK'}"]
        sys.stdout.write("\n".join([*lines, f"# Avg bus bandwidth    : {bus:.6f}"]) + "\n")


def _follow(options: argparse.Namespace, mine: array[float], stops: float) -> int:
    """Send the buffer until the first node ends the sum."""
    started = time.monotonic()
    try:
        with _connected(options) as head:
            head.sendall(NUMBER.pack(options.node))
            while time.monotonic() - started < stops:
                head.sendall(mine.tobytes())
                if exactly(head, 1 + options.bytes)[0]:
                    return 0
            head.settimeout(options.limit)
            while head.recv(1 << 16):  # it hangs until the others time out
                pass
    except OSError as error:
        sys.stderr.write(f"node {options.node} has lost the first node: {error}\n")
    return STORE_GONE


def _train_along(options: argparse.Namespace, size: int) -> int:
    try:
        with _connected(options) as head:
            head.sendall(NUMBER.pack(options.node))
            torch_training.follow(size, head)
    except OSError as error:
        sys.stderr.write(f"node {options.node} has lost the first node: {error}\n")
        return STORE_GONE
    return 0


def _connected(options: argparse.Namespace) -> socket.socket:
    until = time.monotonic() + options.start
    while True:
        try:
            return socket.create_connection((options.head, options.port), timeout=options.limit)
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(CONNECT_S)

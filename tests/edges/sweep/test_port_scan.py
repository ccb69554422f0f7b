"""Listening ports: many asked at once, none left open, no host waited for longer than the limit."""

from __future__ import annotations

import os
import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from clusterctl.edges.redfish.sweep import ScanProgress, ScanResult, TcpState, sweep
from clusterctl.edges.redfish.sweep.port_scan import scan_ports
from clusterctl.fleet.bmc.observation import BmcObservation, SweepOutcome
from clusterctl.fleet.errors import CancelledError
from clusterctl.ports import Deadline
from lab.tests.lab_kit import eventually

SILENT = "127.79.0.200"


@pytest.fixture
def listening() -> Iterator[tuple[list[str], int]]:
    """Four addresses with a server, and the port."""
    sockets = [socket.socket() for _ in range(4)]
    sockets[0].bind(("127.79.0.1", 0))
    port = int(sockets[0].getsockname()[1])
    for number, listener in enumerate(sockets[1:], 2):
        listener.bind((f"127.79.0.{number}", port))
    for listener in sockets:
        listener.listen(64)
    yield [f"127.79.0.{number}" for number in range(1, 5)], port
    for listener in sockets:
        listener.close()


@pytest.fixture
def silent(listening: tuple[list[str], int]) -> Iterator[str]:
    """An address that answers no SYN: its server accepts no connection, and its queue is full (listen(2))."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind((SILENT, listening[1]))
        listener.listen(0)
        for _ in range(3):
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex((SILENT, listening[1]))
        yield SILENT


def open_files() -> int:
    return len(list(Path(f"/proc/{os.getpid()}/fd").iterdir()))


def test_open_and_closed_ports(listening: tuple[list[str], int]) -> None:
    """Each host is reported once; however few are asked at a time, and no connection is left."""
    hosts, port = listening
    before = open_files()
    asked = [f"127.79.0.{number}" for number in range(1, 60)]
    for at_once in (1, 7, 500):
        found = dict(scan_ports(asked, port, Deadline.after(60), at_once=at_once))
        assert sorted(found) == sorted(asked)
        assert [host for host in asked if found[host] is TcpState.OPEN] == hosts
        assert {found[host] for host in asked if host not in hosts} == {TcpState.CLOSED}
    assert eventually(lambda: open_files() <= before)


def test_no_host_is_waited_for_longer(listening: tuple[list[str], int], silent: str) -> None:
    """A host that does not answer costs the limit; others are reported before."""
    hosts, port = listening
    begin = time.monotonic()
    found = list(scan_ports([silent, *hosts], port, Deadline.after(60), wait_s=0.3))
    assert 0.3 <= time.monotonic() - begin < 200
    assert found == [*((host, TcpState.OPEN) for host in hosts), (silent, TcpState.SILENT)]


def test_stopped_in_the_middle(listening: tuple[list[str], int], silent: str) -> None:
    """Ctrl-C ends it at once, with every connection closed."""
    hosts, port = listening
    before = open_files()
    cancelled = threading.Event()
    knocking = scan_ports([*hosts, *[silent] * 50], port, Deadline.after(60, cancelled), at_once=4)
    next(knocking)
    cancelled.set()
    with pytest.raises(CancelledError):
        list(knocking)
    assert open_files() == before


def swept(hosts: list[str], port: int, visit, cancelled: threading.Event | None = None, **more) -> ScanResult:
    return sweep(hosts, port, visit, Deadline.after(60, cancelled), **more)


def test_a_sweep_visits_each_listening_address(listening: tuple[list[str], int]) -> None:
    """In the order of their addresses, never more at once than allowed; how far it is can be watched."""
    hosts, port = listening
    inside, most, reported = [], [], []
    lock = threading.Lock()

    def visit(host: str, deadline: Deadline) -> BmcObservation:
        with lock:
            inside.append(host)
            most.append(len(inside))
        deadline.sleep(0.02, "answering")
        with lock:
            inside.remove(host)
        return BmcObservation(host, SweepOutcome.IDENTIFIED)

    found = swept([*hosts[::-1], "127.79.0.50"], port, visit, at_once=2, watch=reported.append)
    assert [seen.address for seen in found.observations] == hosts
    assert max(most) <= 2
    assert (found.count(TcpState.OPEN), found.count(TcpState.CLOSED)) == (4, 1)
    assert reported[-1] == ScanProgress(scanned=5, open=4, probed=4)


def test_a_sweep_that_is_stopped_waits_for_its_visits(listening: tuple[list[str], int]) -> None:
    """So that every session is closed; visits that had not begun do not begin."""
    hosts, port = listening
    cancelled, closed, begun = threading.Event(), [], []

    def visit(host: str, deadline: Deadline) -> BmcObservation:
        begun.append(host)
        try:
            cancelled.set()
            deadline.sleep(10, "answering")
        finally:
            closed.append(host)
        return BmcObservation(host, SweepOutcome.IDENTIFIED)

    with pytest.raises(CancelledError):
        swept(hosts, port, visit, cancelled, at_once=1)
    assert begun == closed


def test_only_as_many_files_as_allowed(listening: tuple[list[str], int], silent: str) -> None:
    """Where the process may open few files, hosts are asked again later instead of being called silent."""
    hosts, port = listening
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    asked = [*[silent] * 20, *(f"127.79.0.{number}" for number in range(1, 40))]
    opened = [socket.socket() for _ in range(3)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(one.fileno() for one in opened) + 6, hard))
    try:
        found = dict(scan_ports(asked, port, Deadline.after(60), wait_s=0.2, at_once=500))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for one in opened:
            one.close()
    assert [host for host in asked if found[host] is TcpState.OPEN] == hosts

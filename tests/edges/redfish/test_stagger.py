"""Machines of one rack wait for each other, those of another rack do not, and no machine waits for ever."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from clusterctl.edges.redfish.power import PowerOnStagger
from clusterctl.fleet.errors import CancelledError, EdgeError
from clusterctl.fleet.stagger import Stagger
from clusterctl.ports import Deadline


def rack(host: str) -> str:
    return host[0]


def test_never_more_than_allowed() -> None:
    """Twelve machines of two racks, two at once in each: both racks are busy, neither is over its limit."""
    stagger = PowerOnStagger(Stagger(2, 0.01), rack)
    on: dict[str, int] = {"a": 0, "b": 0}
    most: dict[str, int] = {"a": 0, "b": 0}
    lock, both = threading.Lock(), threading.Barrier(2)

    def switch(host: str) -> None:
        with stagger.permit(host)(Deadline.after(60)):
            with lock:
                on[host[0]] += 1
                most[host[0]] = max(most[host[0]], on[host[0]])
            both.wait(600)  # another one is coming on at the same moment
            with lock:
                on[host[0]] -= 1

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(switch, [f"{name}{number}" for number in range(6) for name in "ab"]))
    assert most["a"] <= 2
    assert most["b"] <= 2


def test_a_failure_returns_its_permit() -> None:
    """The next one is not kept waiting by a machine that never came on."""
    stagger = PowerOnStagger(Stagger(1, 0), rack)
    with pytest.raises(EdgeError), stagger.permit("a1")(Deadline.after(60)):
        raise EdgeError("refused")
    with stagger.permit("a2")(Deadline.after(60)):
        pass


def test_a_wait_can_be_stopped() -> None:
    """Ctrl-C also ends the wait of machines whose turn has not come."""
    stagger, token = PowerOnStagger(Stagger(1, 0), rack), threading.Event()
    with stagger.permit("a1")(Deadline.after(60)):
        token.set()
        with pytest.raises(CancelledError), stagger.permit("a2")(Deadline.after(60, token)):
            raise AssertionError("it was not its turn")


def test_the_permit_of_all_runs_is_held_within_this_runs_own() -> None:
    """It is asked for the machine's group, and is returned before another machine of this run may come on."""
    reports: list[str] = []

    @contextmanager
    def shared(group: str, _deadline: Deadline) -> Iterator[None]:
        reports.append(f"{group} begins")
        yield
        reports.append(f"{group} ends")

    stagger = PowerOnStagger(Stagger(1, 0), rack, shared)
    for host in ("a1", "a2", "b1"):
        with stagger.permit(host)(Deadline.after(60)):
            reports.append(host)
    assert reports == ["a begins", "a1", "a ends", "a begins", "a2", "a ends", "b begins", "b1", "b ends"]

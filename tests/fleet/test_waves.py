"""Waves: a canary first, never more than allowed at a time, an end once too many fail, and no machine forgotten."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.fleet.finding import Finding, Report, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.node import NodeId
from clusterctl.fleet.waves import (
    Course,
    Ending,
    Machine,
    Running,
    WaveEnd,
    WavePolicy,
    ending,
    may_begin,
    planned,
    stopped,
)

POLICIES = st.builds(
    WavePolicy,
    canary=st.integers(0, 3),
    at_once=st.integers(1, 8),
    per_rack=st.integers(0, 3),
    stop_percent=st.integers(0, 100),
    of_at_least=st.integers(1, 6),
    patience_s=st.floats(1, 100),
)
MACHINES = st.lists(
    st.tuples(st.sampled_from(["", "A", "B", "C"]), st.floats(0.5, 200), st.sampled_from(Ending)), max_size=40
)
EASY = WavePolicy(canary=1, at_once=4, per_rack=0, stop_percent=20, of_at_least=5, patience_s=60)


class Rehearsal:
    """Machines (rack, how long it takes, how it ends) under a policy, second after second; every promise is checked
    whenever a machine begins.
    """

    def __init__(self, policy: WavePolicy, machines: list[tuple[str, float, Ending]]) -> None:
        self.policy = policy
        self.machines = {NodeId(f"n{at}"): machine for at, machine in enumerate(machines)}
        self.waiting = list(self.machines)
        self.running: dict[NodeId, Running] = {}
        self.ended: dict[NodeId, WaveEnd] = {}
        self.now = 0.0

    @property
    def course(self) -> Course:
        return Course(len(self.machines), self.running, self.ended)

    def machine(self, node: NodeId) -> Machine:
        return Machine(node, self.machines[node][0])

    def run(self) -> None:
        """Until no machine is under way and none may begin."""
        while self.begin() or self.running:
            over = min(self.running, key=lambda node: self.running[node].since + self.machines[node][1])
            next_look = min((under.since + self.policy.patience_s for under in self.running.values()), default=self.now)
            ends = self.running[over].since + self.machines[over][1]
            if self.now < next_look < ends:
                self.now = next_look
                continue
            self.now = max(self.now, ends)
            del self.running[over]
            self.ended[over] = WaveEnd(self.machine(over), self.machines[over][2])

    def begin(self) -> bool:
        chosen = may_begin(self.policy, self.course, [self.machine(node) for node in self.waiting], self.now)
        assert not (chosen and stopped(self.policy, self.course))
        for node in chosen:
            self.waiting.remove(node)
            self.running[node] = Running(self.machine(node), self.now)
        self.look()
        return bool(chosen)

    def look(self) -> None:
        policy, racks = self.policy, [one.machine.rack for one in self.running.values()]
        assert len(self.running) <= policy.at_once
        if policy.per_rack:
            assert all(racks.count(rack) <= policy.per_rack for rack in set(racks) - {""})
        good = self.course.count(Ending.GOOD)
        if len(self.machines) > policy.of_at_least and good < policy.canary:
            fresh = [under for under in self.running.values() if self.now < under.since + policy.patience_s]
            assert len(fresh) <= policy.canary


@given(policy=POLICIES, machines=MACHINES)
def test_any_fleet_under_any_policy(policy: WavePolicy, machines: list[tuple[str, float, Ending]]) -> None:
    """Never more than `at_once`, nor `per_rack` of a rack; canaries alone until one is through; and at the end all have
    had their turn, unless they were stopped: then for a reason, and with no machine under way.
    """
    rehearsal = Rehearsal(policy, machines)
    rehearsal.run()
    assert not rehearsal.running
    assert bool(rehearsal.waiting) <= bool(stopped(policy, rehearsal.course))


@given(policy=POLICIES, machines=MACHINES)
def test_successes_stop_no_machine(policy: WavePolicy, machines: list[tuple[str, float, Ending]]) -> None:
    """Where none fails, all are done."""
    rehearsal = Rehearsal(policy, [(rack, seconds, Ending.GOOD) for rack, seconds, _ in machines])
    rehearsal.run()
    assert not rehearsal.waiting


def run(policy: WavePolicy, endings: str, seconds: float = 10.0) -> Rehearsal:
    """Machines of one rack by letters: G(ood), F(ailed), O(ther), R(uined)."""
    letters = {how.value[0].upper(): how for how in Ending}
    rehearsal = Rehearsal(policy, [("A", seconds, letters[letter]) for letter in endings])
    rehearsal.run()
    return rehearsal


def test_a_bad_image_costs_a_handful_of_machines() -> None:
    """Everything fails: one canary after another, and then no more."""
    rehearsal = run(EASY, "F" * 100)
    assert len(rehearsal.ended) == 5
    assert stopped(EASY, rehearsal.course) == "5 of the last 5 machines failed, more than the 20 % that are accepted"


def test_what_goes_wrong_late_stops_as_soon() -> None:
    """A mirror that dies after forty machines: only the last ones that ended count."""
    rehearsal = run(EASY, "G" * 40 + "F" * 60)
    assert len(rehearsal.ended) <= 48


def test_one_of_five_is_borne() -> None:
    """As many as the limit allows, not more; a silent BMC proves nothing about installing."""
    assert not run(EASY, "GGGGF" * 10).waiting
    assert not run(EASY, "GOOOO" * 10).waiting
    assert run(replace(EASY, stop_percent=19), "GGGGF" * 10).waiting


def test_a_ruined_drive_stops_at_once() -> None:
    """Whatever the rate: it must not happen to another machine."""
    rehearsal = run(replace(EASY, stop_percent=100), "G" * 20 + "R" + "G" * 20)
    assert rehearsal.waiting
    assert "does not hold what it held" in stopped(EASY, rehearsal.course)


def test_a_handful_of_machines_has_no_canary() -> None:
    """They begin together."""
    rehearsal = Rehearsal(EASY, [("A", 10.0, Ending.GOOD)] * 5)
    rehearsal.begin()
    assert len(rehearsal.running) == EASY.at_once
    more = Rehearsal(EASY, [("A", 10.0, Ending.GOOD)] * 6)
    more.begin()
    assert len(more.running) == 1


def test_a_canary_that_hangs_does_not_keep_the_fleet() -> None:
    """After its patience another one goes, and with that all others."""
    rehearsal = Rehearsal(EASY, [("A", 5000.0, Ending.FAILED), *[("A", 10.0, Ending.GOOD)] * 30])
    rehearsal.begin()
    rehearsal.now = 59.0
    assert not rehearsal.begin()
    rehearsal.now = 60.0
    assert rehearsal.begin()
    rehearsal.run()
    assert not rehearsal.waiting


FLEETS = st.lists(st.sampled_from(["a", "b", "c"]), max_size=40).map(
    lambda skus: [Machine(NodeId(f"n{at}"), kind=sku) for at, sku in enumerate(skus)]
)


@given(FLEETS, st.integers(1, 8))
def test_counted_waves_hold_each_once(machines: list[Machine], size: int) -> None:
    """No machine twice, none left out; one of each kind first and alone; no wave larger than `at_once`."""
    made = list(planned(WavePolicy.counted(size, 0), machines))
    assert sorted(node for wave in made for node in wave) == sorted(machine.id for machine in machines)
    kinds = {machine.id: machine.kind for machine in machines}
    canaries = len(set(kinds.values()))
    assert all(len(wave) == 1 for wave in made[:canaries])
    assert {kinds[wave[0]] for wave in made[:canaries]} == set(kinds.values())
    assert all(1 <= len(wave) <= size for wave in made)


@given(FLEETS, st.integers(1, 8), st.integers(0, 5), st.data())
def test_counted_failures_are_bounded(machines: list[Machine], size: int, most: int, data: st.DataObject) -> None:
    """Whichever fail: never more than are accepted and one wave; after a canary's failure no other begins."""
    policy = WavePolicy.counted(size, most)
    waiting, ended = list(machines), dict[NodeId, WaveEnd]()
    while wave := may_begin(policy, Course(len(machines), {}, ended), waiting, 0.0):
        assert not stopped(policy, Course(len(machines), {}, ended))
        proven = {one.machine.kind for one in ended.values() if one.ending is Ending.GOOD}
        for machine in [machine for machine in waiting if machine.id in wave]:
            ended[machine.id] = WaveEnd(machine, data.draw(st.sampled_from([Ending.GOOD, Ending.FAILED])))
            if machine.kind not in proven and ended[machine.id].ending is Ending.FAILED:
                assert stopped(policy, Course(len(machines), {}, ended))
        waiting = [machine for machine in waiting if machine.id not in wave]
    course = Course(len(machines), {}, ended)
    assert course.count(Ending.FAILED) <= most + size
    assert not waiting or stopped(policy, course)


def report(*findings: Finding) -> Report:
    return Report("install", "", findings)


@pytest.mark.parametrize(
    ("findings", "how"),
    [
        (
            [
                Finding(check="install", verdict=Verdict.PASS, code=Code.PASSED),
                Finding(check="data_disks", verdict=Verdict.NOT_APPLICABLE, code=Code.NOT_APPLICABLE),
            ],
            Ending.GOOD,
        ),
        ([Finding(check="install", verdict=Verdict.FAIL, code=Code.INSTALL_FAILED)], Ending.FAILED),
        ([Finding(check="install", verdict=Verdict.FAIL, code=Code.INSTALL_FAILED, subject="bmc")], Ending.OTHER),
        ([Finding(check="install", verdict=Verdict.INCONCLUSIVE, code=Code.NOT_MEASURED)], Ending.OTHER),
        (
            [
                Finding(check="install", verdict=Verdict.PASS, code=Code.PASSED),
                Finding(check="root_disk_booted", verdict=Verdict.FAIL, code=Code.GPU_ECC_UNCORRECTABLE),
            ],
            Ending.FAILED,
        ),
        (
            [
                Finding(check="install", verdict=Verdict.PASS, code=Code.PASSED),
                Finding(check="data_disks", verdict=Verdict.FAIL, code=Code.GPU_ECC_UNCORRECTABLE, subject="D1"),
            ],
            Ending.RUINED,
        ),
        ([], Ending.OTHER),
    ],
)
def test_the_owner_of_a_failure(findings: list[Finding], how: Ending) -> None:
    """The install's: no OS, or another disk. A silent BMC and what was not measured count neither way."""
    assert ending(report(*findings)) is how

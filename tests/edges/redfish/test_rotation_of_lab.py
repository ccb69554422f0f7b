"""The whole change, from the draw to the journal, on the lab's BMCs of every vendor with quirks, all at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from clusterctl.edges.journal import Holder, SqlJournal, open_journal
from clusterctl.edges.redfish import RedfishBmcs
from clusterctl.edges.site.kept_passwords import KeptPasswords, PasswordVault
from clusterctl.fleet.bmc.accounts import PasswordRule
from clusterctl.fleet.errors import ClusterctlError
from clusterctl.fleet.finding import Observed
from clusterctl.fleet.node import NodeId
from clusterctl.fleet.state import NodeState
from clusterctl.ports import BmcAddress, Deadline
from clusterctl.ports.accounts import LoginUpdate, PowerTarget
from clusterctl.steps.accounts.rotation import PasswordRotation, RotationPolicy, RotationResult
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl_lab.bmc_quirk import BmcQuirk
from clusterctl_lab.vendor import Vendor
from tests.edges.redfish.conftest import QUICK, FixedClock
from tests.edges.redfish.quirk_kit import PASSWORD, Site, machine, served
from tests.steps.fakes import identified

QUIRKS: tuple[tuple[BmcQuirk, ...], ...] = (
    (BmcQuirk.MUST_CHANGE_PASSWORD, BmcQuirk.SESSION_LIMIT),
    (BmcQuirk.LOSES_ANSWERS, BmcQuirk.LOCKS_OUT, BmcQuirk.WEAK_ETAG),
    (BmcQuirk.IF_MATCH_REQUIRED, BmcQuirk.ENDS_SESSIONS, BmcQuirk.UNAVAILABLE),
)
KINDS = [*((vendor, quirks) for vendor in Vendor for quirks in QUIRKS), (Vendor.HPE, (BmcQuirk.SPURIOUS_401,))]
MACHINES = [machine(number, f"m{number}", vendor, *quirks) for number, (vendor, quirks) in enumerate(KINDS, 1)]


@dataclass
class Installer:
    """Meets `PowerLogins`."""

    has: dict[str, str] = field(default_factory=dict)

    def give(self, target: PowerTarget, deadline: Deadline) -> Observed[LoginUpdate]:
        self.has[target.name] = target.bmc.password
        return Observed(LoginUpdate.GIVEN)


@dataclass
class World:
    lab: Site
    book: SqlJournal
    kept: KeptPasswords
    installer: Installer = field(default_factory=Installer)

    def node(self, name: str) -> NodeState:
        return self.book.state(NodeId(f"id-{name}"))

    def address(self, name: str) -> BmcAddress:
        """As the site's logins choose it."""
        bmc = self.lab.world.machines[name].bmc
        given = BmcAddress(bmc.address, bmc.user, PASSWORD, self.lab.port, str(self.lab.ca))
        found = self.kept.of(self.lab.world.machines[name].serial, name, "")
        if not found:
            return given
        proven = [one.password for one in found if one.proven]
        former = None if found[-1].proven else (bmc.user, proven[-1] if proven else PASSWORD)
        return replace(given, password=found[-1].password, former=former)

    def rotate(self) -> dict[str, RotationResult]:
        nodes = [self.node(one.name) for one in MACHINES]
        claims = self.book.claim([node.id for node in nodes], "r").granted
        rotator = PasswordRotation(
            RedfishBmcs(FixedClock(), QUICK),
            self.address,
            PasswordVault(self.kept, PasswordRule()),
            lambda: self.installer,
            self.book,
            RotationPolicy("", PasswordRule(), frozenset()),
            8,
        )
        try:
            done = rotator.rotate(nodes, IntentLog(self.book, claims), Deadline.after(300))
            return {item.name: item for item in done}
        finally:
            self.book.release(claims.values())

    def troubles(self, done: dict[str, RotationResult]) -> dict[str, ClusterctlError]:
        return {name: item.error for name, item in done.items() if item.error is not None}

    def sound(self) -> None:
        """Each machine's password is its own, kept, proven, and the installer's."""
        for one in MACHINES:
            last = self.kept.of(one.serial, one.name, "")[-1]
            assert last.proven
            assert last.password == self.lab.world.machines[one.name].bmc.password == self.installer.has[one.name]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    book = open_journal(f"sqlite:///{tmp_path}/j.db", FixedClock(), Holder("r", "alice"))
    for one in MACHINES:
        identified(book, one.name, one.serial)
    with served({one.name: one for one in MACHINES}, tmp_path) as lab:
        yield World(lab, book, KeptPasswords(tmp_path / "state" / "bmc_passwords"))
    book.close()


def test_all_vendors_twice(world: World) -> None:
    """Changed, and changed again; on each the last password works, and no two are alike."""
    for number in (1, 2):
        done = world.rotate()
        assert world.troubles(done) == {}
        assert {item.number for item in done.values()} == {number}
        world.sound()
    assert len({one.password for one in world.kept.all()}) == 2 * len(MACHINES)


def test_all_vendors_in_doubt(world: World) -> None:
    """Left by a run that was killed before it asked half of the BMCs, and after it asked the others: all are settled."""
    vault = PasswordVault(world.kept, PasswordRule())
    for at, one in enumerate(MACHINES):
        drawn = vault.draw(world.node(one.name), one.bmc.user, 16, one.serial)
        if at % 2:
            taken = world.lab.world.machines[one.name]
            quirks = taken.bmc.quirks - {BmcQuirk.MUST_CHANGE_PASSWORD}
            bmc = replace(taken.bmc, password=drawn.password, quirks=quirks)
            world.lab.world.rewrite(one.name, lambda there, bmc=bmc: replace(there, bmc=bmc))
    done = world.rotate()
    assert world.troubles(done) == {}
    assert {(item.number, item.finished) for item in done.values()} == {(1, True)}
    world.sound()

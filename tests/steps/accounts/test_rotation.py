"""Changing BMCs' passwords: whatever interrupts it, the next run ends with a password that is on disk and that works."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import pytest

from clusterctl.edges.journal import Holder, SqlJournal, open_journal
from clusterctl.edges.site.kept_passwords import KeptPasswords, PasswordVault
from clusterctl.fleet.bmc.accounts import Account, AccountSight, PasswordRule, Trust, rotation
from clusterctl.fleet.errors import AuthenticationError, ClusterctlError, EdgeError, UnreachableError
from clusterctl.fleet.event import Event, Kind, NewEvent, Stream
from clusterctl.fleet.finding import Observed
from clusterctl.fleet.node import NodeId, Serial
from clusterctl.fleet.state import NodeState
from clusterctl.ports import BmcAddress, Claim, Deadline
from clusterctl.ports.accounts import Generation, LoginUpdate, PowerTarget
from clusterctl.steps.accounts.rotation import PasswordRotation, RotationPolicy, RotationResult
from clusterctl.steps.executor.intent_log import IntentLog
from tests.events import data_of
from tests.steps.fakes import FixedClock, identified, seen

FACTORY = "factory-pass-1"
PATH = "/redfish/v1/AccountService/Accounts/2"
LOCKS_AFTER = 3


class Killed(BaseException):
    """As kill -9: it is never caught."""


@dataclass
class Seams:
    """Counts what is passed; dies at the `deadly`-th."""

    deadly: int = -1
    passed: int = 0

    def __call__(self) -> None:
        self.passed += 1
        if self.passed - 1 == self.deadly:
            raise Killed


@dataclass
class Bmc:
    """One that takes one password, and locks the account after three wrong ones in a row."""

    password: str = FACTORY
    serial: str = "S1"
    must_change: bool = False
    trust: Trust = Trust.AUTHORITY
    applies: bool = True
    answers: bool = True
    refusal: ClusterctlError | None = None
    wrong: int = 0
    wrong_in_a_row: int = 0
    changes: list[str] = field(default_factory=list)
    on_disk: Callable[[str], bool] = lambda _: True

    def log_in(self, password: str) -> bool:
        assert self.wrong_in_a_row < LOCKS_AFTER, "locked out"
        right = password == self.password
        self.wrong += not right
        self.wrong_in_a_row = 0 if right else self.wrong_in_a_row + 1
        return right

    def change(self, password: str) -> None:
        assert self.on_disk(password), "asked for a password that is not kept"
        if self.refusal is not None:
            raise self.refusal
        if self.applies:
            self.changes.append(password)
            self.password = password
            self.must_change = False


@dataclass
class Client:
    """Meets `AccountClient`."""

    bmc: Bmc
    address: BmcAddress
    seams: Seams
    rejected: set[str]
    took_former: bool = False

    def __enter__(self) -> Self:
        self.seams()
        if not self._takes(self.address.password):
            if self.address.former is None or not self._takes(self.address.former[1]):
                raise AuthenticationError("the BMC rejects user name or password")
            self.took_former = True
        return self

    def _takes(self, password: str) -> bool:
        """As the real one: what was rejected once is not shown again in this run."""
        if password in self.rejected or not self.bmc.log_in(password):
            self.rejected.add(password)
            return False
        return True

    def __exit__(self, *exc: object) -> None:
        """Closed."""

    def look(self, user: str, deadline: Deadline) -> AccountSight:
        serial = None if self.bmc.must_change else Serial(self.bmc.serial)
        return AccountSight(Account(PATH, user, 8, 20), self.bmc.trust, serial, self.bmc.must_change)

    def change(self, account: Account, password: str, deadline: Deadline) -> Observed[bool]:
        deadline.check("changing")
        self.rejected.discard(password)
        self.seams()
        self.bmc.change(password)
        self.seams()
        return Observed(self.bmc.answers, seen("change"))


@dataclass
class Maas:
    """Meets `PowerLogins`."""

    seams: Seams
    password: str = FACTORY
    trouble: ClusterctlError | None = None
    given: int = 0
    result: LoginUpdate = LoginUpdate.GIVEN

    def give(self, target: PowerTarget, deadline: Deadline) -> Observed[LoginUpdate]:
        self.seams()
        if self.trouble is not None:
            raise self.trouble
        self.given += target.bmc.password != self.password
        self.password = target.bmc.password
        self.seams()
        return Observed(self.result, seen("maas"))


@dataclass(frozen=True)
class DeadlyVault:
    """Dies before and after each thing that is kept."""

    inner: PasswordVault
    seams: Seams

    def latest(self, node: NodeState) -> Generation | None:
        return self.inner.latest(node)

    def draw(self, node: NodeState, user: str, length: int, serial: str) -> Generation:
        self.seams()
        drawn = self.inner.draw(node, user, length, serial)
        self.seams()
        return drawn

    def prove(self, generation: Generation, serial: Serial | None) -> None:
        self.seams()
        self.inner.prove(generation, serial)
        self.seams()

    def place(self, generation: Generation) -> str:
        return self.inner.place(generation)


class DeadlyJournal:
    """Dies before and after each append; all else is the real one's."""

    def __init__(self, inner: SqlJournal, seams: Seams) -> None:
        self._inner = inner
        self._seams = seams

    def append(self, events: Sequence[NewEvent], *, claim: Claim | None = None) -> tuple[Event, ...]:
        self._seams()
        written = self._inner.append(events, claim=claim)
        self._seams()
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


@dataclass
class Site:
    book: SqlJournal
    folder: Path
    bmc: Bmc = field(default_factory=Bmc)
    maas: Maas = field(default_factory=lambda: Maas(Seams()))
    own: frozenset[str] = frozenset()
    name: str = "n1"
    most_wrong: int = 1

    @property
    def node(self) -> NodeId:
        return NodeId(f"id-{self.name}")

    def kept(self) -> PasswordVault:
        return PasswordVault(KeptPasswords(self.folder), PasswordRule())

    def address(self, _name: str) -> BmcAddress:
        """As the site's logins choose it."""
        node = self.book.state(self.node)
        last = self.kept().latest(node)
        if last is None:
            return BmcAddress(node.bmc, "root", FACTORY)
        found = BmcAddress(node.bmc, last.user, last.password)
        if last.proven:
            return found
        every = self.kept().kept.of(node.serial or "", node.name, node.bmc)
        proven = [one for one in every if one.proven]
        return replace(found, former=("root", proven[-1].password if proven else FACTORY))

    def run(self, deadly: int = -1) -> tuple[RotationResult, Seams]:
        """One run of its own: nothing is remembered but what is on disk, in the journal and at the BMC."""
        seams = Seams(deadly)
        self.maas.seams = seams
        self.bmc.wrong = 0
        self.bmc.on_disk = lambda password: password in {one.password for one in self.kept().kept.all()}
        rejected: set[str] = set()
        journal: Any = DeadlyJournal(self.book, seams)
        claims = self.book.claim([self.node], "r").granted
        opener = Opener(self.bmc, seams, rejected)
        rule = RotationPolicy("", PasswordRule(), self.own)
        vault = DeadlyVault(self.kept(), seams)
        rotator = PasswordRotation(opener, self.address, vault, lambda: self.maas, journal, rule, 2)
        try:
            nodes = [self.book.state(self.node)]
            (done,) = rotator.rotate(nodes, IntentLog(journal, claims), Deadline.after(600))
        finally:
            self.book.release(claims.values())
            assert self.bmc.wrong <= self.most_wrong, "more wrong tries in a run"
        return done, seams

    def events(self, kind: Kind) -> list[dict[str, Any]]:
        return [dict(data_of(event)) for event in self.book.history(Stream.NODE, self.node) if event.kind is kind]

    def sound(self) -> None:
        """The password is on disk, proven, taken by the BMC, and MAAS's."""
        last = self.kept().latest(self.book.state(self.node))
        assert last is not None
        assert last.proven
        assert last.password == self.bmc.password == self.maas.password
        reported = rotation(self.book.history(Stream.NODE, self.node))
        assert reported is not None
        assert (reported.number, reported.owed) == (last.number, False)
        assert self.book.state(self.node).open_acts == ()


@dataclass
class Opener:
    bmc: Bmc
    seams: Seams
    rejected: set[str]

    def open_accounts(self, address: BmcAddress, deadline: Deadline) -> Client:
        return Client(self.bmc, address, self.seams, self.rejected)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    book = open_journal(f"sqlite:///{tmp_path}/j.db", FixedClock(), Holder("r", "alice"))
    identified(book, "n1", "S1")
    yield Site(book, tmp_path / "state" / "bmc_passwords")
    book.close()


def test_changed_proven_reported(site: Site) -> None:
    """Drawn by the rule, seen to be taken, given to MAAS; the journal has it without a secret."""
    done, _ = site.run()
    assert (done.number, done.error, done.finished, done.installer) == (1, None, False, LoginUpdate.GIVEN.value)
    site.sound()
    assert len(site.bmc.password) == 16
    assert site.events(Kind.ACT_INTENDED)[0] == {
        "act": "password.change",
        "target": PATH,
        "reason": "",
        "details": {"number": 1, "proof": "its serial S1"},
    }
    everything = str([data_of(event) for event in site.book.history(Stream.NODE, site.node)])
    assert site.bmc.password not in everything
    assert FACTORY not in everything


def test_a_second_time(site: Site) -> None:
    """Another password: a finished rotation begins again when an operator orders it again."""
    site.run()
    first = site.bmc.password
    done, _ = site.run()
    assert (done.number, done.finished) == (2, False)
    assert site.bmc.password != first
    site.sound()


@pytest.mark.parametrize(("second", "rotated_before"), [(None, False), (7, True)])
def test_killed_anywhere(site: Site, second: int | None, rotated_before: bool) -> None:
    """Killed at any seam, and once more in the run that goes on: the next ends with a password that is on disk, that
    the BMC takes and MAAS has; it was changed twice at most; no account was locked.
    """
    for deadly in range(1, 40):
        one = replace(site, bmc=Bmc(serial=f"S1{deadly}"), maas=Maas(Seams()), name=f"n1{deadly}")
        identified(one.book, one.name, one.bmc.serial)
        if rotated_before:
            one.run()
        changes = len(one.bmc.changes)
        if not _dies(one, deadly):
            break
        if second is not None:
            _dies(one, second)
        assert one.run()[0].error is None
        one.sound()
        assert len(one.bmc.changes) - changes in (1, 2)
    assert 12 < deadly < 39, "not all seams were passed"


def _dies(site: Site, at: int) -> bool:
    try:
        site.run(at)
    except Killed:
        return True
    return False


def test_killed_after_the_change_it_is_not_changed_again(site: Site) -> None:
    """The next run finds the new password taken, and only finishes."""
    died = [at for at in range(40) if not site.bmc.changes and _dies(site, at)]
    assert died
    assert len(site.bmc.changes) == 1
    done, _ = site.run()
    assert done.finished
    assert len(site.bmc.changes) == 1
    site.sound()


def test_accepted_but_unchanged(site: Site) -> None:
    """A 200 proves nothing: the new login does, and its failure is an error; the next run goes on with the same one."""
    site.bmc.applies = False
    done, _ = site.run()
    assert done.error is not None
    assert "still takes the old one" in done.error.message
    assert "firmware" in done.error.remedy
    assert site.bmc.password == FACTORY
    site.bmc.applies = True
    done, _ = site.run()
    assert (done.number, done.error, done.finished) == (1, None, True)
    site.sound()


@pytest.mark.parametrize("applies", [True, False])
def test_a_lost_answer(site: Site, applies: bool) -> None:
    """The new password is tried once, then the old one: so it is known what became of it."""
    site.bmc.answers, site.bmc.applies = False, applies
    done, _ = site.run()
    assert (done.error is None) is applies
    site.bmc.answers = site.bmc.applies = True
    if not applies:
        assert site.run()[0].error is None
    site.sound()


def test_refused(site: Site) -> None:
    """In the BMC's words, in the history too; what it takes stays as it was."""
    site.bmc.refusal = EdgeError("the BMC refuses a new password for root: HTTP 400")
    done, _ = site.run()
    assert done.error is site.bmc.refusal
    assert site.events(Kind.ACT_OBSERVED)[-1]["message"].startswith("the BMC refuses")
    site.bmc.refusal = None
    assert site.run()[0].error is None
    site.sound()


def test_another_machine(site: Site) -> None:
    """Its password is not touched."""
    site.bmc.serial = "S9"
    done, _ = site.run()
    assert done.error is not None
    assert "belongs to machine S9, not to S1: its password was not touched" in done.error.message
    assert site.bmc.changes == []
    assert site.kept().kept.all() == ()


def test_a_factory_bmc_that_reports_nothing(site: Site) -> None:
    """Its own factory password proves it; the serial is read right after the change."""
    site.bmc.must_change, site.bmc.trust, site.own = True, Trust.FIRST_USE, frozenset({"n1"})
    assert site.run()[0].error is None
    assert site.events(Kind.ACT_INTENDED)[0]["details"]["proof"] == "its own factory password"
    assert site.events(Kind.BMC_PASSWORD_CHANGED)[0]["serial"] == "S1"
    site.sound()


def test_a_factory_bmc_that_turns_out_to_be_another(site: Site) -> None:
    """Reported at once, and its password is not lost."""
    site.bmc.must_change, site.bmc.serial, site.own = True, "S9", frozenset({"n1"})
    done, _ = site.run()
    assert done.error is not None
    assert "belongs to machine S9, not to S1, and has a new password now" in done.error.message
    assert (done.number, site.maas.password) == (1, FACTORY)
    (one,) = site.kept().kept.of("S9", "", "")
    assert one.password == site.bmc.password


def test_maas_that_fails_is_owed(site: Site) -> None:
    """The password stays changed; the next run gives it to MAAS and changes nothing else."""
    site.maas.trouble = UnreachableError("MAAS does not answer")
    done, _ = site.run()
    assert done.number == 1
    assert done.error is site.maas.trouble
    reported = rotation(site.book.history(Stream.NODE, site.node))
    assert reported is not None
    assert reported.owed
    site.maas.trouble = None
    done, _ = site.run()
    assert (done.number, done.finished, done.error) == (1, True, None)
    assert len(site.bmc.changes) == 1
    site.sound()


def test_neither_is_taken(site: Site) -> None:
    """Changed by another client: an error that names where the new one is kept, after two wrong tries at most."""
    site.bmc.applies = False
    site.run()
    site.bmc.password = "another-password"
    site.most_wrong = 2
    done, _ = site.run()
    assert isinstance(done.error, AuthenticationError)
    assert site.bmc.changes == []

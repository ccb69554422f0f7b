"""What all clients of one run share, and how each of them gets its session."""

from __future__ import annotations

from dataclasses import dataclass, replace

from clusterctl.edges.redfish.login import Rejections
from clusterctl.edges.redfish.pins import KnownBmcs
from clusterctl.edges.redfish.power import PowerOnStagger
from clusterctl.edges.redfish.session import Session
from clusterctl.edges.redfish.timing import Timing
from clusterctl.fleet.errors import AuthenticationError, PasswordChangeError
from clusterctl.fleet.finding import Origin
from clusterctl.ports import BmcAddress, Clock, Deadline


@dataclass(frozen=True, slots=True)
class Means:
    """One of these for a whole run."""

    clock: Clock
    timing: Timing
    known: KnownBmcs | None
    turns: PowerOnStagger | None
    rejections: Rejections
    read_only: bool = False
    origin: Origin = Origin.REAL


def opened(
    address: BmcAddress, deadline: Deadline, means: Means, *, for_accounts: bool = False
) -> tuple[Session, bool]:
    """An open session, and whether it took the address's former credentials. `for_accounts`: also of a BMC that opens
    none before its password is changed.

    Those are tried only where the BMC rejects the others: one wrong try (two at BMCs that are known for rejections that
    mean nothing), once in a run, and a right one after it.
    """
    doubtful = address.former is not None
    try:
        return _opened(address, deadline, means, doubtful, for_accounts), False
    except PasswordChangeError:
        raise
    except AuthenticationError:
        if address.former is None or not means.rejections.knows(address):
            raise
    user, password = address.former
    session = _opened(
        replace(address, user=user, password=password, former=None), deadline, means, doubtful, for_accounts
    )
    session.redact.add([address.password])
    return session, True


def _opened(address: BmcAddress, deadline: Deadline, means: Means, doubtful: bool, for_accounts: bool) -> Session:
    session = Session(
        address, deadline, means.timing, rejections=means.rejections, read_only=means.read_only, doubtful=doubtful
    )
    try:
        try:
            session.open(deadline)
        except PasswordChangeError:
            if not for_accounts:
                raise
            session.do_without(deadline)
    except BaseException:
        session.close()
        raise
    return session

"""A BMC's account and its password: the permitted changes, and what the journal knows of it. Pure."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from clusterctl.fleet.errors import EdgeError, UsageError
from clusterctl.fleet.event import Event, Kind
from clusterctl.fleet.node import Serial
from clusterctl.fleet.state import NodeState


class Trust(enum.Enum):
    """Why the identity of the BMC is trusted."""

    AUTHORITY = "an authority vouches for its certificate"
    SHEET = "its certificate is the one that the sheet names"
    MACHINE = "its certificate is the one that it had when its serial was read"
    FIRST_USE = "its certificate is the one that was believed on first use"
    NOTHING = "nothing: plain HTTP"


@dataclass(frozen=True, slots=True)
class Account:
    """One account of a BMC. `shortest`, `longest`: limits of its passwords; None where the BMC reports none."""

    path: str
    user: str
    shortest: int | None = None
    longest: int | None = None


@dataclass(frozen=True, slots=True)
class AccountSight:
    """What was seen of a BMC after logging in. `serial` is the machine's; None where the BMC reports nothing before
    its password is changed (`must_change`).
    """

    account: Account
    trust: Trust
    serial: Serial | None = None
    must_change: bool = False


def expected_serial(node: NodeState) -> Serial | None:
    """Return the serial of the machine that the node is, else of the one that it shall be."""
    return node.serial or node.expected_serial


def proof(node: NodeState, sight: AccountSight, *, own_login: bool) -> str:
    """Return the proof, as text, that this is the node's machine. Raise without one: its password is not touched.

    `own_login`: it took a factory password that no other machine has.
    """
    expected = expected_serial(node)
    if sight.serial is not None:
        if expected is None:
            raise UsageError(
                "its serial is not known: nothing would show that it is the right machine",
                where=node.name,
                remedy=f"clusterctl discover --limit {node.name} first, or write the serial into the sheet",
            )
        if not same(sight.serial, expected):
            raise EdgeError(
                f"this BMC belongs to machine {sight.serial}, not to {expected}: its password was not touched",
                remedy="find out which address the machine's BMC has now, and correct the site file",
            )
        return f"its serial {sight.serial}"
    if own_login:
        return "its own factory password"
    if sight.trust in (Trust.AUTHORITY, Trust.SHEET, Trust.MACHINE):
        return str(sight.trust.value)
    raise UsageError(
        "nothing proves which machine this is: it reports no identity before its password is changed, and its factory "
        "password is not its own",
        where=node.name,
        remedy="give its own factory password (bmc.factory, or bmc_password in the sheet), its tls_fingerprint, or "
        "bmc.ca_file; or change this one by hand",
    )


def same(one: str, other: str) -> bool:
    return one.strip().casefold() == other.strip().casefold()


@dataclass(frozen=True, slots=True)
class Rotation:
    """The last change of the password that the journal knows of. `owed`: the installer does not have it yet.

    `sought_by_name`: the installer did not know the machine by its name, and its MAC addresses were not known then.
    """

    number: int
    user: str
    at: datetime
    owed: bool
    sought_by_name: bool = False

    def unfinished(self, node: NodeState) -> bool:
        """Return True where the installer needs an update."""
        return self.owed or (self.sought_by_name and bool(node.macs))


ROTATION = (Kind.BMC_PASSWORD_CHANGED, Kind.BMC_PASSWORD_SHARED)
"""The events that `rotation` reads."""


def rotation(events: Iterable[Event]) -> Rotation | None:
    """Return the rotation from a node's events, oldest first; None where its password was never changed."""
    from clusterctl.fleet.payloads.node import BmcPasswordChanged, BmcPasswordShared  # sites import this module

    found: Rotation | None = None
    for event in events:
        match event.payload:
            case BmcPasswordChanged(number=number, user=user):
                found = Rotation(number, user, event.at, owed=True)
            case BmcPasswordShared(number=number, sought_by_name=by_name) if found and number == found.number:
                found = Rotation(found.number, found.user, found.at, owed=False, sought_by_name=by_name)
    return found


UPPER, LOWER, DIGITS = "ABCDEFGHJKLMNPQRSTUVWXYZ", "abcdefghijkmnopqrstuvwxyz", "23456789"
"""Without 0, O, 1, I and l: an operator may have to type one at a console."""
SIGNS = "-_."
"""Signs that no BMC, shell, URL or form is known to stumble over."""
SHORTEST = 8
"""A shorter password is not worth the change."""


class Characters(enum.Enum):
    """Each class of the chosen ones is in each password: BMCs that demand classes demand three at most of these four.

    Letters and digits are taken by all vendors; signs are for BMCs that insist on one.
    """

    LETTERS_AND_DIGITS = "letters_and_digits"
    WITH_SIGNS = "with_signs"

    @property
    def classes(self) -> tuple[str, ...]:
        plain = (UPPER, LOWER, DIGITS)
        return plain if self is Characters.LETTERS_AND_DIGITS else (*plain, SIGNS)


@dataclass(frozen=True, slots=True)
class PasswordRule:
    """How long the site wants them, and of which characters."""

    length: int = 16
    characters: Characters = Characters.LETTERS_AND_DIGITS

    def length_for(self, shortest: int | None, longest: int | None) -> int:
        """Return the number of characters: the site's, within the limits of this BMC; 0 and None are unknown limits.

        Raise `EdgeError` where the BMC permits only passwords that are too short to be safe.
        """
        wanted = max(self.length, shortest or 0)
        found = min(wanted, longest) if longest else wanted
        if found < SHORTEST:
            raise EdgeError(
                f"the BMC takes passwords of {found} characters at most: too short to be worth the change",
                remedy="update the BMC's firmware",
            )
        return found

    def draw(self, length: int, pick: Callable[[str], str]) -> str:
        """Return a password with a character of each class.

        `pick` returns one of the characters of its argument, all with equal probability.
        """
        alphabet = "".join(self.characters.classes)
        while True:
            drawn = "".join(pick(alphabet) for _ in range(length))
            if self.fits(drawn, length):
                return drawn

    def fits(self, password: str, length: int) -> bool:
        """Return whether it is one that `draw` could have drawn."""
        classes = self.characters.classes
        letters = set(password)
        return len(password) == length and letters <= set("".join(classes)) and all(letters & set(c) for c in classes)

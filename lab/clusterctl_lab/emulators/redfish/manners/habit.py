"""What a bad manner can do to a BMC: change its traits, answer in its place, or spoil its answers."""

from __future__ import annotations

import enum
from random import Random
from typing import ClassVar
from zlib import crc32

from clusterctl_lab.bmc_quirk import Manner
from clusterctl_lab.emulators.redfish.context import Desk
from clusterctl_lab.emulators.redfish.exchange import Answer, Request
from clusterctl_lab.emulators.redfish.traits import Traits

APART = (3, 8)


class Certificate(enum.Enum):
    """What the BMC shows when TLS begins: its own certificate, another host's, or its own from long ago."""

    OWN = "own"
    OTHER = "other"
    EXPIRED = "expired"


class Seldom:
    """Strikes after every three to eight times, so that no client's round has always the same one struck."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._left = random.randint(*APART)

    def strikes(self) -> bool:
        """True this time; never twice in a row."""
        self._left -= 1
        if self._left >= 0:
            return False
        self._left = self._random.randint(*APART)
        return True


class Habit:
    """One manner at one BMC. It does nothing but what a subclass overrides.

    does    what it does, for a person
    source  who has met it: a specification, a recording, an issue
    random  seeded by machine, seed and manner: one run is as the other
    """

    manner: ClassVar[Manner]
    does: ClassVar[str]
    source: ClassVar[str]
    certificate: ClassVar[Certificate] = Certificate.OWN

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        machine = desk.machine
        self.random = Random(f"{machine.seed}:{machine.name}:{self.manner.value}")  # noqa: S311 — no secret

    def traits(self, traits: Traits) -> Traits:
        """How the BMC behaves with it."""
        return traits

    def before(self, request: Request) -> Answer | None:
        """An answer in the place of the right one, or None. It may raise `RefusedError`."""
        del request
        return None

    def after(self, request: Request, answer: Answer) -> Answer:
        """What becomes of an answer."""
        del request
        return answer

    def struck(self, request: Request, one_in: int) -> bool:
        """True for about one resource in so many, always the same ones of this machine, and never for what a client
        needs to find out whom it talks to and to log in.
        """
        paths = self.desk.profile.paths
        spared = request.path in ("/redfish", paths.root, paths.system) or request.path.startswith(paths.sessions)
        return not spared and crc32(f"{self.desk.name}:{self.manner.value}:{request.path}".encode()) % one_in == 0


def is_boot_patch(desk: Desk, request: Request) -> bool:
    """True for a PATCH of what takes the Boot object."""
    return request.method == "PATCH" and request.path == desk.profile.paths.boot_patch


def is_login(desk: Desk, request: Request) -> bool:
    return request.method == "POST" and request.path == desk.profile.paths.sessions

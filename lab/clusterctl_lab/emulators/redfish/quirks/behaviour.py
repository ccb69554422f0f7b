"""What a quirk changes about a BMC: its traits, its certificate, requests before they are answered, and answers."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from zlib import crc32

from clusterctl_lab.bmc_quirk import BmcQuirk
from clusterctl_lab.emulators.redfish.context import BmcContext
from clusterctl_lab.emulators.redfish.exchange import Answer, Request
from clusterctl_lab.emulators.redfish.traits import Traits

PERIOD = (3, 8)


class Certificate(enum.Enum):
    """The certificate that the BMC presents: its own, another host's, or its own after it has expired."""

    OWN = "own"
    OTHER = "other"
    EXPIRED = "expired"


class Sometimes:
    """True once after every three to eight calls, so that no client sequence always hits the same request."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._left = random.randint(*PERIOD)

    def now(self) -> bool:
        """Return whether this call is hit; never two in a row."""
        self._left -= 1
        if self._left >= 0:
            return False
        self._left = self._random.randint(*PERIOD)
        return True


class Behaviour:
    """One quirk at one BMC; a subclass overrides what it changes.

    `random` is seeded by machine, seed and quirk, so that each run is the same.
    """

    def __init__(self, context: BmcContext, quirk: BmcQuirk) -> None:
        self.context = context
        self.quirk = quirk
        machine = context.machine
        self.random = Random(f"{machine.seed}:{machine.name}:{quirk.value}")  # noqa: S311 — no secret

    def before(self, request: Request) -> Answer | None:
        """Return an answer in place of the right one, or None. It may raise `RefusedError`."""
        del request
        return None

    def after(self, request: Request, answer: Answer) -> Answer:
        """Return the answer, changed by the quirk."""
        del request
        return answer

    def affects(self, request: Request, one_in: int) -> bool:
        """Return True for about one resource in `one_in`, always the same ones of this machine.

        Never for a resource that a client needs to identify the machine and to log in.
        """
        paths = self.context.profile.paths
        spared = request.path in ("/redfish", paths.root, paths.system) or request.path.startswith(paths.sessions)
        return not spared and crc32(f"{self.context.name}:{self.quirk.value}:{request.path}".encode()) % one_in == 0

    def damages(self, request: Request, answer: Answer, one_in: int) -> bool:
        """Return whether this is a successful read of an affected resource."""
        return not request.writes and answer.status == 200 and self.affects(request, one_in)


@dataclass(frozen=True, slots=True)
class Quirk:
    """The definition of one quirk.

    does       what it does, for `lab faults`
    source     where it was observed: a specification, a recording, an issue
    traits     returns the BMC's traits with it
    behaviour  what it does to requests and answers
    """

    does: str
    source: str
    traits: Callable[[Traits], Traits] = lambda traits: traits
    behaviour: type[Behaviour] = Behaviour
    certificate: Certificate = Certificate.OWN

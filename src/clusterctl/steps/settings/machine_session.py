"""The session with one machine in a change of settings: its BMC, however often that restarts, and its intents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar

from clusterctl.fleet.acts import Act, AnyDetails
from clusterctl.fleet.errors import AuthenticationError, EdgeError, ParseError, UntrustedError
from clusterctl.fleet.event import Payload, node_event
from clusterctl.fleet.finding import Digest, Evidence
from clusterctl.fleet.node import Serial
from clusterctl.fleet.payloads.node import ActIntended, ActObserved
from clusterctl.fleet.settings.baseline import Baseline, Bios
from clusterctl.fleet.settings.drift import Drift, drift
from clusterctl.fleet.settings.history import Memory, remember
from clusterctl.fleet.settings.updates import Updates
from clusterctl.fleet.state import NodeState
from clusterctl.ports import BmcAddress, BmcClient, Bmcs, Deadline, Images, Journal
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.permits import RebootPermits, unlimited

T = TypeVar("T")
_REJECTIONS = 5
"""A restarting BMC may end so many sessions that it has just opened. A rejected password is not sent to it again in
the same run.
"""


@dataclass(frozen=True, slots=True)
class SettingsTimeouts:
    """Seconds.

    poll   between two looks
    task   that a BMC may work on one image
    back   for a BMC to come back with its new firmware
    boot   for a machine's self-test, with all that it flashes meanwhile
    show   for a BMC to report what the boot has applied, once that is over
    """

    poll: float = 10.0
    task: float = 3600.0
    back: float = 900.0
    boot: float = 3600.0
    show: float = 600.0

    @property
    def longest(self) -> float:
        """For one image and one boot."""
        return 2 * self.task + self.back + 2 * self.boot + self.show


def require_machine(updates: Updates, serial: Serial) -> None:
    """Raise `EdgeError` where the BMC belongs to another machine."""
    if updates.serial != serial:
        raise EdgeError(
            f"this BMC belongs to machine {updates.serial}, not to {serial}",
            remedy="find out which address the machine's BMC has now, and correct the site file",
        )


@dataclass(frozen=True, slots=True)
class SettingsServices:
    """What the settings of all machines are changed with."""

    bmcs: Bmcs
    address_of: Callable[[str], BmcAddress]
    journal: Journal
    images: Images
    pace: SettingsTimeouts = SettingsTimeouts()
    permits: RebootPermits = unlimited


@dataclass(frozen=True, slots=True)
class MachineSession:
    """One machine's. `deadline` is fenced by its claim; `registry`: its read-only BIOS attributes, once read."""

    services: SettingsServices
    node: NodeState
    serial: Serial
    baseline: Baseline
    intents: IntentLog
    deadline: Deadline
    registry: list[frozenset[str] | None] = field(default_factory=list)

    @property
    def pace(self) -> SettingsTimeouts:
        return self.services.pace

    @contextmanager
    def bmc(self) -> Iterator[BmcClient]:
        with self.services.bmcs.open(self.services.address_of(self.node.name), self.deadline) as bmc:
            yield bmc

    def memory(self) -> Memory:
        """Return what the journal has of this machine's settings."""
        return remember(self.services.journal.state(self.node.id).intents, self.serial)

    def drift(self) -> tuple[Drift, ...]:
        """Return how the machine differs from its baseline now."""
        with self.bmc() as bmc:
            return self.drift_by(bmc, self.deadline)

    def drift_by(self, bmc: BmcClient, deadline: Deadline) -> tuple[Drift, ...]:
        updates = bmc.updates(deadline).value
        require_machine(updates, self.serial)
        return drift(self.baseline, self._bios(bmc, deadline), updates.firmware)

    def _bios(self, bmc: BmcClient, deadline: Deadline) -> Bios | None:
        """Return the BIOS attributes. The registry is large: it is read once."""
        if not self.baseline.bios:
            return None
        found = bmc.bios(deadline, thorough=not self.registry).value
        if not self.registry:
            self.registry.append(found.read_only)
        return replace(found, read_only=self.registry[0])

    def until(self, doing: str, seconds: float, look: Callable[[BmcClient, Deadline], T | None]) -> T:
        """Return the first answer of `look`, in a new session after each that broke: BMCs restart meanwhile.

        Raise `EdgeError` with what was waited for, and the last error, once the time is over.
        """
        limit, last_error, rejections = self.deadline.within(seconds), "", 0
        while limit.remaining > 0:
            try:
                with self.bmc() as bmc:
                    while (found := look(bmc, limit)) is None:
                        limit.sleep(self.pace.poll, doing)
                    return found
            except UntrustedError:
                raise
            except AuthenticationError as error:
                rejections += 1
                last_error = error.message
                if rejections > _REJECTIONS:
                    raise
            except (EdgeError, ParseError) as error:
                last_error = error.message if limit.remaining > 0 else last_error
            if limit.remaining > self.pace.poll:
                limit.sleep(self.pace.poll, doing)
            else:
                break
        self.deadline.check(doing)
        after = f"; the last error: {last_error}" if last_error else ""
        raise EdgeError(
            f"ran out of time while {doing}{after}",
            remedy="look at the BMC; once it is done, repeat the command: it goes on from there",
        )

    def idle(self) -> Updates:
        """Return the BMC's tasks once none of them runs: before that nothing is sent, and nothing switched off."""

        def look(bmc: BmcClient, limit: Deadline) -> Updates | None:
            found = bmc.updates(limit).value
            return None if found.running else found

        return self.until("waiting until the BMC's tasks are over", self.pace.task, look)

    def intend(self, act: Act, details: AnyDetails) -> None:
        """Write what is about to be done."""
        self._write(ActIntended(act=act, target=self.serial, details=details))

    def observed(self, observed: ActObserved, evidence: Iterable[Evidence] = ()) -> None:
        """Write what came of it."""
        kept = tuple(evidence)
        self.services.journal.store(kept)
        digests = tuple(item.digest for item in kept)
        self._write(observed, digests)

    def _write(self, payload: Payload, digests: tuple[Digest, ...] = ()) -> None:
        event = node_event(self.node.id, payload, digests)
        self.services.journal.append([event], claim=self.intents.lease.claim(self.node.id))

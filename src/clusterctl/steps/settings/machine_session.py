"""What setting one machine works with: its BMC, however often that goes away, and its lines in the journal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from clusterctl.fleet.errors import AuthenticationError, EdgeError, ParseError, UntrustedError
from clusterctl.fleet.event import Kind, NewEvent
from clusterctl.fleet.finding import Digest, Evidence
from clusterctl.fleet.node import Serial
from clusterctl.fleet.settings.baseline import Baseline, Bios
from clusterctl.fleet.settings.drift import Drift, drift
from clusterctl.fleet.settings.history import Memory, remember
from clusterctl.fleet.settings.updates import Updates
from clusterctl.fleet.state import NodeState
from clusterctl.ports import BmcAddress, BmcClient, Bmcs, Deadline, Images, Journal
from clusterctl.steps.executor.step import IntentLog

T = TypeVar("T")
_REJECTIONS = 5
"""So often a BMC that is restarting may end a session that it has just opened. A password that it rejects is not sent
to it again in the same run, whoever asks.
"""


@dataclass(frozen=True, slots=True)
class SettingsTimeouts:
    """Seconds.

    poll   between two looks
    task   that a BMC may work on one image
    back   for a BMC to come back with its new firmware
    boot   for a machine's self-test, with all that it flashes meanwhile
    show   for a BMC to show what the boot has brought, once that is over
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
    """Nothing is concluded about a machine from what another one's BMC says."""
    if updates.serial != serial:
        raise EdgeError(
            f"this BMC belongs to machine {updates.serial}, not to {serial}",
            remedy="find out which address the machine's BMC has now, and correct the site file",
        )


@dataclass(frozen=True, slots=True)
class SettingsServices:
    """What all machines share."""

    bmcs: Bmcs
    address_of: Callable[[str], BmcAddress]
    journal: Journal
    images: Images
    pace: SettingsTimeouts = SettingsTimeouts()


@dataclass(frozen=True, slots=True)
class MachineSession:
    """One machine's. `deadline` is fenced by its claim; `registry` what its BIOS calls read-only, once that is read."""

    means: SettingsServices
    node: NodeState
    serial: Serial
    baseline: Baseline
    acts: IntentLog
    deadline: Deadline
    registry: list[frozenset[str] | None] = field(default_factory=list)

    @property
    def pace(self) -> SettingsTimeouts:
        return self.means.pace

    @contextmanager
    def bmc(self) -> Iterator[BmcClient]:
        with self.means.bmcs.open(self.means.address_of(self.node.name), self.deadline) as bmc:
            yield bmc

    def memory(self) -> Memory:
        """What the journal remembers of this machine."""
        return remember(self.means.journal.history("node", self.node.id), self.serial)

    def drift(self) -> tuple[Drift, ...]:
        """How the machine stands now."""
        with self.bmc() as bmc:
            return self.drift_by(bmc, self.deadline)

    def drift_by(self, bmc: BmcClient, deadline: Deadline) -> tuple[Drift, ...]:
        updates = bmc.updates(deadline).value
        require_machine(updates, self.serial)
        return drift(self.baseline, self._bios(bmc, deadline), updates.firmware)

    def _bios(self, bmc: BmcClient, deadline: Deadline) -> Bios | None:
        """The registry is large: it is read once."""
        if not self.baseline.bios:
            return None
        found = bmc.bios(deadline, thorough=not self.registry).value
        if not self.registry:
            self.registry.append(found.read_only)
        return replace(found, read_only=self.registry[0])

    def until(self, doing: str, seconds: float, look: Callable[[BmcClient, Deadline], T | None]) -> T:
        """Look until there is an answer, in a new session after each that broke: BMCs restart meanwhile.

        `EdgeError` saying what was waited for, and the last trouble, once the time is over.
        """
        limit, trouble, rejections = self.deadline.within(seconds), "", 0
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
                trouble = error.message
                if rejections > _REJECTIONS:
                    raise
            except (EdgeError, ParseError) as error:
                trouble = error.message if limit.remaining > 0 else trouble
            if limit.remaining > self.pace.poll:
                limit.sleep(self.pace.poll, doing)
            else:
                break
        self.deadline.check(doing)
        after = f"; the last that was seen: {trouble}" if trouble else ""
        raise EdgeError(
            f"ran out of time while {doing}{after}",
            remedy="look at the BMC; once it is done, the same command goes on from there",
        )

    def idle(self) -> Updates:
        """The BMC's tasks once none of them runs: before that nothing is sent, and nothing switched off."""

        def look(bmc: BmcClient, limit: Deadline) -> Updates | None:
            found = bmc.updates(limit).value
            return None if found.running else found

        return self.until("waiting until the BMC's tasks are over", self.pace.task, look)

    def intend(self, act: str, data: Mapping[str, Any]) -> None:
        """Before it is done."""
        self._write(Kind.ACT_INTENDED, {"act": act, "target": self.serial, **data})

    def observed(self, act: str, result: str, evidence: Iterable[Evidence] = (), **data: Any) -> None:
        """What came of it."""
        kept = tuple(evidence)
        self.means.journal.store(kept)
        digests = tuple(item.digest for item in kept)
        self._write(Kind.ACT_OBSERVED, {"act": act, "result": result, **data}, digests)

    def _write(self, kind: Kind, data: Mapping[str, Any], digests: tuple[Digest, ...] = ()) -> None:
        event = NewEvent("node", self.node.id, kind, data, digests)
        self.means.journal.append([event], claim=self.acts.lease.claim(self.node.id))

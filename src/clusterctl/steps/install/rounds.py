"""The rounds of an install: one look at all machines, then what each needs, in parallel; reports as they are known.

A machine with a running act is left out of the looks: its request may wait for its BMC for minutes, and holds up no
other machine. An installer that is away fails no machine: its time does not count.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from clusterctl.fleet.errors import AuthenticationError, EdgeError, InstallerUnavailableError, ParseError
from clusterctl.fleet.finding import Observed
from clusterctl.ports import Deadline, Installer, InstallStatus
from clusterctl.ports.isolation import peer_error
from clusterctl.steps.executor.step import StepOutcome
from clusterctl.steps.install.findings import unreadable
from clusterctl.steps.install.job import InstallJob

log = logging.getLogger(__name__)

AT_ONCE = 32
"""Machines that are worked on at the same time."""
LOOK_S = 320.0
"""Seconds for one look, whatever is left of the step's time."""
AWAY_S = 4 * 3600.0
"""Seconds for which an installer that does not answer is waited for, without counting."""
WAKE_S = 0.2
"""Seconds until it is noticed, while an act runs, that the run was stopped."""

T = TypeVar("T")
Statuses = Mapping[str, Observed[InstallStatus]]


@dataclass(frozen=True, slots=True)
class Handlers:
    """What the step does in a round; each returns the machine's outcome, or None where it goes on.

    advance  one machine, by its status: it may act, and runs in parallel with the others
    trouble  a machine about which the installer could not be asked
    ended    a machine that has not come to its end in time
    """

    advance: Callable[[InstallJob, Observed[InstallStatus], Deadline], StepOutcome | None]
    trouble: Callable[[InstallJob, EdgeError, Deadline], StepOutcome | None]
    ended: Callable[[InstallJob, Deadline], StepOutcome]


class Rounds:
    """Works on the machines of one batch until each has an outcome."""

    def __init__(
        self, installer: Installer, handlers: Handlers, jobs: Mapping[str, InstallJob], deadline: Deadline, times: Times
    ) -> None:
        self._installer = installer
        self._handlers = handlers
        self._jobs = dict(jobs)
        self._deadline = deadline
        self._times = times
        self._pool = ThreadPoolExecutor(AT_ONCE, "install")
        self._running: dict[Future[StepOutcome | None], str] = {}
        self._away_since: float | None = None

    def outcomes(self) -> Iterator[StepOutcome]:
        """Yield each machine's outcome as soon as it is known. Raises `CancelledError` at once when stopped: what an
        installer does by then goes on, and the next run looks at it.
        """
        try:
            while self._jobs and not self._over():
                yield from self._look()
                yield from self._until_next_look()
            yield from self._end()
        finally:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def _over(self) -> bool:
        """Return whether the time is over; that of an installer which is away does not count."""
        if self._away_since is not None:
            return self._deadline.timer.now() - self._away_since > self._times.away_s
        return self._deadline.remaining <= 0

    def _end(self) -> Iterator[StepOutcome]:
        """Yield the outcomes of those that are not done in time; acts that still run have the same deadline."""
        wait(self._running)
        yield from self._collect()
        for job in self._jobs.values():
            yield _alone(job, partial(self._handlers.ended, job, self._deadline))

    # --- one look ---------------------------------------------------------------------------------------------------

    def _look(self) -> Iterator[StepOutcome]:
        """Look at the machines on which nothing runs, and begin what each needs."""
        free = [job for name, job in self._jobs.items() if name not in self._running.values()]
        if not free:
            return
        deadline = replace(self._deadline, at=max(self._deadline.at, self._deadline.timer.now() + LOOK_S))
        try:
            statuses = self._installer.observe([job.target for job in free], deadline)
        except AuthenticationError:
            raise
        except InstallerUnavailableError as error:
            self._gone(free, error)
            return
        except EdgeError as error:
            yield from self._troubled(free, error)
            return
        except ParseError as error:
            yield from self._troubled(free, EdgeError(error.message, where=error.where, remedy=error.remedy))
            return
        self._returned()
        self._begin(free, statuses)

    def _begin(self, jobs: Sequence[InstallJob], statuses: Statuses) -> None:
        """Advance the machines; those of another installer, which is away, have no status."""
        for job in jobs:
            status = statuses.get(job.node.name)
            job.away = "" if status is not None else "its installer does not answer"
            if status is not None:
                advance = partial(self._handlers.advance, job, status, self._deadline)
                work = self._pool.submit(_alone, job, advance)
                self._running[work] = job.node.name

    def _troubled(self, jobs: Sequence[InstallJob], error: EdgeError) -> Iterator[StepOutcome]:
        for job in jobs:
            outcome = _alone(job, partial(self._handlers.trouble, job, error, self._deadline))
            if outcome is not None:
                del self._jobs[job.node.name]
                yield outcome

    def _gone(self, jobs: Sequence[InstallJob], error: InstallerUnavailableError) -> None:
        for job in jobs:
            job.away = f"{error.where}: {error.message}" if error.where else error.message
        if self._away_since is None:
            self._away_since = self._deadline.timer.now()
            self._announce(f"{error.message}: waiting until it answers ({error.remedy})")

    def _returned(self) -> None:
        """Take up an installer that answers again: the time of its absence does not count."""
        if self._away_since is not None:
            gone = self._deadline.timer.now() - self._away_since
            self._away_since = None
            self._deadline = replace(self._deadline, at=self._deadline.at + gone)
            self._announce(f"the installer answers again, after {gone / 60:.0f} minutes")

    def _announce(self, message: str) -> None:
        log.warning("install: %s", message)
        for job in self._jobs.values():
            job.announce(message)

    # --- between two looks ------------------------------------------------------------------------------------------

    def _until_next_look(self) -> Iterator[StepOutcome]:
        until = self._deadline.timer.now() + self._times.poll_s
        while True:
            yield from self._collect()
            self._deadline.check_cancelled("waiting for the installer")
            left = until - self._deadline.timer.now()
            if not self._jobs or left <= 0:
                return
            if self._running:
                wait(self._running, timeout=min(left, WAKE_S), return_when=FIRST_COMPLETED)
            else:
                self._deadline.timer.wait(self._deadline.cancelled, left)

    def _collect(self) -> Iterator[StepOutcome]:
        """Yield the outcomes of what has ended."""
        for work in [work for work in self._running if work.done()]:
            name = self._running.pop(work)
            outcome = work.result()
            if outcome is not None:
                del self._jobs[name]
                yield outcome


def _alone(job: InstallJob, call: Callable[[], T]) -> T | StepOutcome:
    """Return what the call returns; whatever one machine's data causes is that machine's own outcome."""
    try:
        return call()
    except Exception as error:  # noqa: BLE001 — peer_error raises what is not the peer's
        return unreadable(job, peer_error(error, job.node.name))


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds: `poll_s` between two looks, `away_s` for which an installer that is away is waited for."""

    poll_s: float
    away_s: float = AWAY_S

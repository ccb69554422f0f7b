"""The burn-in's checks over many installed hosts at once, by SSH, as the burn-in step sends them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from clusterctl.edges.ssh import ParamikoShell
from clusterctl.fleet.errors import ClusterctlError
from clusterctl.fleet.finding import Origin
from clusterctl.ports import Deadline, HostAddress
from clusterctl_burnin.probe import Status, argv_for, parse_readings
from clusterctl_burnin.suites.suite import shipped_suite
from clusterctl_burnin.sweep import Sweep, sweep
from tests.e2e.site_kit import UtcClock

USER = "ops"
AT_ONCE = 4 * (os.cpu_count() or 1)
"""The hosts share this machine's processors: more would only run into their time-outs."""


def hosts_of(site: Path, addresses: Mapping[str, str]) -> list[HostAddress]:
    """The hosts at `addresses` (by name), with the keys that the site's known_hosts pins."""
    keys = dict(line.split(" ", 1) for line in (site / "known_hosts").read_text().splitlines())
    key_file = str(site / "secrets/ssh_ed25519")
    return [HostAddress(name, address, USER, keys[address], key_file) for name, address in addresses.items()]


@dataclass(frozen=True)
class Session:
    """One host's answer: the probes that were answered, or why there is no answer."""

    host: str
    probes: frozenset[str] = frozenset()
    failure: str = ""


@contextmanager
def sweeper() -> Iterator[Sweeper]:
    """Connections are opened by the first sweep and kept for the next ones."""
    with ParamikoShell(UtcClock(), Origin.SIMULATED) as shell, ThreadPoolExecutor(AT_ONCE, "sweep") as pool:
        yield Sweeper(shell, pool, sweep(shipped_suite().checks))


@dataclass(frozen=True)
class Sweeper:
    """Sends all checks' probes to each host in one session."""

    shell: ParamikoShell
    pool: ThreadPoolExecutor
    plan: Sweep

    @property
    def probes(self) -> frozenset[str]:
        """What a whole answer holds."""
        return frozenset(probe.name for check in self.plan.checks for probe in check.probes)

    def __call__(self, hosts: Sequence[HostAddress]) -> list[Session]:
        return list(self.pool.map(self._one, hosts))

    def _one(self, host: HostAddress) -> Session:
        argv = argv_for(host.user, privileged=True)
        try:
            ran = self.shell.run(host, argv, self.plan.stdin, Deadline.after(self.plan.timeout)).value
            if ran.exit_status != 0:
                return Session(host.name, failure=f"exit status {ran.exit_status}: {ran.stderr[-300:]}")
            readings = parse_readings(ran.stdout)
        except ClusterctlError as error:
            return Session(host.name, failure=str(error))
        late = [name for name, result in readings.probes.items() if result.status is Status.TIMEOUT]
        return Session(host.name, frozenset(readings.probes), f"timed out: {', '.join(late)}" if late else "")

"""Sweeps all addresses of a network: scans their ports and probes the open ones, a bounded number at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from ipaddress import ip_address

from clusterctl.edges.redfish.sweep.port_scan import TcpState, scan_ports
from clusterctl.fleet.bmc.observation import BmcObservation
from clusterctl.ports import Deadline

PROBES_AT_ONCE = 64
_WAKE_SECONDS = 0.2
_REPORT_EACH = 64
"""Addresses between two reports of progress, where thousands are refused at once."""


@dataclass(frozen=True, slots=True)
class ScanProgress:
    """Progress of a sweep: addresses scanned, open ports found, probes finished."""

    scanned: int
    open: int
    probed: int


@dataclass(frozen=True, slots=True)
class ScanResult:
    """The observation of each address that answers, by address, and the state of every port that was scanned."""

    observations: tuple[BmcObservation, ...]
    ports: Mapping[str, TcpState]

    def count(self, state: TcpState) -> int:
        """Return the number of addresses in this state."""
        return sum(found is state for found in self.ports.values())


Probe = Callable[[str, Deadline], BmcObservation]
Watch = Callable[[ScanProgress], None]


def sweep(
    hosts: Iterable[str],
    port: int,
    probe: Probe,
    deadline: Deadline,
    *,
    watch: Watch = lambda _: None,
    at_once: int = PROBES_AT_ONCE,
) -> ScanResult:
    """Scan every host and probe each open one.

    Raises as `Deadline.check` and `probe`, once every session is closed.
    """
    ports: dict[str, TcpState] = {}
    probes: list[Future[BmcObservation]] = []
    over: list[Future[BmcObservation]] = []

    def report() -> None:
        watch(ScanProgress(len(ports), len(probes), len(over)))

    with ThreadPoolExecutor(at_once, thread_name_prefix="sweep") as pool:
        try:
            for host, state in scan_ports(hosts, port, deadline):
                ports[host] = state
                if state is TcpState.OPEN:
                    probes.append(pool.submit(probe, host, deadline))
                    probes[-1].add_done_callback(over.append)
                if len(ports) % _REPORT_EACH == 0:
                    report()
            report()
            pending = set(probes)
            while pending:
                _, pending = wait(pending, timeout=_WAKE_SECONDS)
                report()
            deadline.check("looking at BMCs")
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    return ScanResult(tuple(sorted((future.result() for future in probes), key=lambda seen: _key(seen.address))), ports)


def _key(address: str) -> tuple[int, int]:
    parsed = ip_address(address)
    return parsed.version, int(parsed)

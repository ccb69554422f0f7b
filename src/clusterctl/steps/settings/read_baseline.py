"""Reads how machines differ from their baselines, many at once; changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass

from clusterctl.fleet.errors import AuthenticationError, ClusterctlError, EdgeError, ParseError
from clusterctl.fleet.node import Serial
from clusterctl.fleet.settings.baseline import Baseline, Bios
from clusterctl.fleet.settings.drift import Drift, drift
from clusterctl.ports import BmcAddress, BmcClient, Bmcs, Deadline
from clusterctl.ports.isolation import as_error
from clusterctl.steps.settings.machine_session import require_machine


@dataclass(frozen=True, slots=True)
class BaselineQuery:
    """A machine to read, and its baseline."""

    name: str
    serial: Serial
    baseline: Baseline


@dataclass(frozen=True, slots=True)
class BaselineReading:
    """How a machine differs from its baseline, or why that is unknown."""

    name: str
    drifts: tuple[Drift, ...] = ()
    error: ClusterctlError | None = None


@dataclass(frozen=True, slots=True)
class BaselineReader:
    """Reads `workers` machines at a time."""

    bmcs: Bmcs
    address_of: Callable[[str], BmcAddress]
    workers: int

    def read(self, machines: Sequence[BaselineQuery], deadline: Deadline) -> Iterator[BaselineReading]:
        """Yield each machine's reading as soon as it is known."""
        with ThreadPoolExecutor(max(1, min(self.workers, len(machines))), "settings") as pool:
            for future in as_completed([pool.submit(self._one, one, deadline) for one in machines]):
                yield future.result()

    def _one(self, asked: BaselineQuery, deadline: Deadline) -> BaselineReading:
        try:
            with self.bmcs.open(self.address_of(asked.name), deadline) as bmc:
                updates = bmc.updates(deadline).value
                require_machine(updates, asked.serial)
                bios = _bios(bmc, asked.baseline, deadline)
            return BaselineReading(asked.name, drift(asked.baseline, bios, updates.firmware))
        except Exception as error:  # noqa: BLE001 — whatever its data causes is its own result
            return BaselineReading(asked.name, error=as_error(error, asked.name))


def _bios(bmc: BmcClient, baseline: Baseline, deadline: Deadline) -> Bios | None:
    """Return the BIOS attributes; None where the BMC does not report them: they are unmeasured."""
    if not baseline.bios:
        return None
    try:
        return bmc.bios(deadline, thorough=True).value
    except AuthenticationError:
        raise
    except (ParseError, EdgeError):
        return None

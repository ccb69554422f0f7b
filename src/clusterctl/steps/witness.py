"""What a node's BMC says when its host says nothing: is it on, and did it log anything?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from clusterctl.fleet.errors import CancelledError, ClusterctlError
from clusterctl.fleet.finding import Evidence
from clusterctl.ports import BmcAddress, Bmcs, Deadline, Power
from clusterctl_burnin.bmc_log.judge import weighs

BMC_S = 20.0


@dataclass(frozen=True, slots=True)
class Testimony:
    """`words` for a person; `power` is UNKNOWN where the BMC could not be asked, for the reason in `silence`."""

    words: str
    power: Power = Power.UNKNOWN
    evidence: tuple[Evidence, ...] = ()
    silence: ClusterctlError | None = None


@dataclass(frozen=True, slots=True)
class Witness:
    """Asks the BMC of a node by the node's name; never raises for what the BMC does wrong."""

    bmcs: Bmcs
    address_of: Callable[[str], BmcAddress]

    def ask(self, name: str, deadline: Deadline) -> Testimony:
        """Within a time of its own: it is asked when the deadline of the step may be over."""
        patience = Deadline.after(BMC_S, deadline.cancelled)
        try:
            with self.bmcs.open(self.address_of(name), patience) as bmc:
                power, entries = bmc.power(patience), bmc.event_log(patience)
        except CancelledError:
            raise
        except ClusterctlError as error:
            return Testimony(f"its BMC could not be asked ({error.message})", silence=error)
        bad = [entry for entry in entries.value if entry.severity.lower() != "ok" and weighs(entry)]
        said = f", its BMC logged: {bad[0].message}" if bad else ", its BMC logged no error"
        return Testimony(f"power is {power.value.value}{said}", power.value, (*power.evidence, *entries.evidence))

"""Dell iDRAC.

The one-time boot device is an attribute of the manager too (Dell Attribute Registry, `ServerBoot`), and an iDRAC that
refuses the System's `Boot` accepts it there. SYS518 and, on iDRAC10, ActionParameterValueConflict mean: try again.
Other jobs (SYS011: one is committed already) and the Lifecycle Controller block changes while they run.
"""

from __future__ import annotations

from clusterctl.edges.redfish.quirks.quirk import LATER, Quirks
from clusterctl.fleet.bmc.boot import BootSource

_UNLOCK = "end System Lockdown Mode on the iDRAC (racadm set iDRAC.Lockdown.SystemLockdown 0), then try again"
_JOBS = "let the iDRAC's jobs finish, or clear its job queue, then try again"


def _device(name: str) -> dict[str, str]:
    return {"ServerBoot.1.BootOnce": "Enabled", "ServerBoot.1.FirstBootDevice": name}


QUIRKS = Quirks(
    "dell",
    signs=("dell", "integrated dell"),
    later=(*LATER, "SYS011", "SYS518", "ActionParameterValueConflict"),
    later_texts=("pending job", "job is running", "Lifecycle Controller is"),
    remedies={"SYS011": _JOBS},
    remedy_texts={"lockdown": _UNLOCK, "job": _JOBS},
    attributes_boot={
        BootSource.PXE: _device("PXE"),
        BootSource.DISK: _device("HDD"),
        BootSource.CD: _device("VCD-DVD"),
    },
)

"""Everything a lab makes on the machine carries the lab's name: here is how, and where its things lie."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from clusterctl.fleet.errors import UsageError

RUN = Path("/run/clusterctl-lab")
STATE = Path("/var/lib/clusterctl-lab")
MARKER = "CLUSTERCTL_LAB_HOSTS"
"""Set to the lab's name in the environment of every process that builds hosts: the sweep finds them by it."""

UPLINK = "-mgmt"
"""Ends the name of a lab's uplink."""

_ALLOWED = re.compile(r"[a-z][a-z0-9]{0,7}")


@dataclass(frozen=True, slots=True)
class LabNames:
    """`lab` is short, because it prefixes an interface's name (at most 15 characters)."""

    lab: str

    def __post_init__(self) -> None:
        if not _ALLOWED.fullmatch(self.lab):
            raise UsageError(
                f"`{self.lab}` cannot name a lab",
                remedy="Use a lower-case letter and up to 7 letters or digits after it.",
            )

    @property
    def uplink(self) -> str:
        """The machine's one interface into the lab; it carries the gateway's, the BMCs' and the services' addresses."""
        return f"{self.lab}{UPLINK}"

    def controller(self, pod: int) -> str:
        """The network namespace of a pod's controller, for `ip netns exec`."""
        return f"{self.lab}-pod{pod}"

    def equipment(self, pod: int) -> str:
        """The network namespace with the addresses of a pod's BMCs and its gateway."""
        return f"{self.lab}-bmc{pod}"

    @property
    def alias(self) -> str:
        """Marks the uplink and the loopback interfaces of the pods' namespaces as ours: nothing else is removed."""
        return f"clusterctl-lab:{self.lab}"

    @property
    def run_dir(self) -> Path:
        """What exists only while hosts run (tmpfs)."""
        return RUN / self.lab / "hosts"

    @property
    def cgroup(self) -> str:
        """Below the cgroup2 mount."""
        return f"clusterctl-lab/{self.lab}"

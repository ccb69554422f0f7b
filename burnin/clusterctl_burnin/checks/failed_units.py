"""failed_units: no systemd unit has failed; one that training needs keeps the node back."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import Quantity, exactly
from clusterctl.formats.host.linux import parse_failed_units
from clusterctl_burnin.check import Area, Cause, Check, Expected
from clusterctl_burnin.probe import Probe, Readings

UNITS = Probe("failed_units", ("systemctl", "list-units", "--failed", "--plain", "--no-legend", "--no-pager", "--full"))
_NAME = "failed_units"
_NEEDED = frozenset(
    {
        "chrony.service",
        "nvidia-fabricmanager.service",
        "nvidia-persistenced.service",
        "openibd.service",
        "prometheus-node-exporter.service",
        "ssh.service",
        "sshd.service",
    }
)
"""What the roles install and training relies on; any other failed unit is a warning."""


def _judge(readings: Readings, _expected: Expected) -> Iterator[Finding]:
    units = parse_failed_units(readings.text(UNITS))
    for unit in units:
        verdict = Verdict.FAIL if unit in _NEEDED else Verdict.WARN
        remedy = f"run journalctl -b -u {unit} on the node, repair it, then systemctl restart {unit}"
        yield Finding(
            check=_NAME,
            verdict=verdict,
            code=Code.UNIT_FAILED,
            subject=unit,
            cause=f"{unit} has failed",
            remedy=remedy,
            deterministic=False,
        )
    if not units:
        yield passed(_NAME, "no unit has failed", measured=Quantity(0, "units"), expected=exactly(0, "units"))


CHECK = Check(
    _NAME,
    (UNITS,),
    _judge,
    area=Area.SERVICES,
    causes=(
        Cause("root_writable"),
        Cause("disk_space"),
        Cause("mounts"),
        Cause("zpool"),
    ),
)

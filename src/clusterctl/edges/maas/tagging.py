"""Puts the site's tags on a machine in MAAS, and sees that they are there."""

from __future__ import annotations

from collections.abc import Sequence

from clusterctl.edges.maas.errors import MaasRefusedError
from clusterctl.edges.maas.machines import Machines
from clusterctl.fleet.errors import EdgeError
from clusterctl.fleet.finding import Observed
from clusterctl.formats.maas.machines import MaasMachine
from clusterctl.ports import Deadline, InstallTarget

NOT_FOUND = 404


def put_tags(
    machines: Machines, machine: MaasMachine, names: Sequence[str], target: InstallTarget, deadline: Deadline
) -> Observed[MaasMachine]:
    """Put tags on; MAAS answers 200 also where it put none on, so that the machine is read again."""
    for name in names:
        try:
            machines.tag(name, machine.system_id, deadline)
        except MaasRefusedError as error:
            if error.status != NOT_FOUND:
                raise
            _create(machines, name, deadline)
            machines.tag(name, machine.system_id, deadline)
    seen = machines.get(machine.system_id, deadline)
    lacking = [name for name in names if name not in seen.value.tags]
    if lacking:
        raise EdgeError(
            f"MAAS did not put the tag {', '.join(lacking)} on {machine.hostname} ({machine.system_id})",
            where=target.name,
            remedy="see in MAAS whether the tag has a definition of its own, or take it out of provisioning.tags",
        )
    return seen


def _create(machines: Machines, name: str, deadline: Deadline) -> None:
    """Another run may be faster: that it exists is no failure."""
    try:
        machines.create_tag(name, deadline)
    except MaasRefusedError as error:
        if "name" not in error.fields:
            raise

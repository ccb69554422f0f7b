"""Whether the API key may administer the machines of a resource pool, tried by a request that only reads.

An administrator of MAAS may administer every machine, unless MAAS takes its rights from elsewhere. With Canonical
RBAC (MAAS 2.5 to 3.8) a right belongs to a pool: an administrator without `admin-machines` on it can enrol a machine,
and then neither commission it nor lay it out. From 3.8 on, entitlements of user groups do the same.

MAAS checks the right to read how it logs in to a machine's BMC in the same way as the right to commission it
(`admin_read` and `admin` in maasserver/permissions.py): that answer is the proof. It holds a password, and is not kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from clusterctl.edges.maas.machines import Machines
from clusterctl.formats.maas.machines import MaasMachine
from clusterctl.ports import Deadline

REMEDY = (
    "give its user the role Operator or Administrator on that pool (Canonical RBAC), or the entitlement to edit its "
    "machines (MAAS 3.8); then run clusterctl maas check"
)


@dataclass(frozen=True, slots=True)
class PoolRights:
    """Names of pools: in which a machine was `tried`, those that `refused`, and those that hold no machine to try."""

    tried: tuple[str, ...]
    refused: tuple[str, ...]
    empty: tuple[str, ...]


def pool_rights(
    machines: Machines, pools: Iterable[str], known: Iterable[MaasMachine], deadline: Deadline
) -> PoolRights:
    """Try one machine of each pool: of those that are `known`, and of the other `pools` one that MAAS lists."""
    chosen = {machine.pool: machine for machine in known if machine.pool}
    empty = []
    for pool in dict.fromkeys(pools):
        if pool not in chosen:
            found = machines.first_of_pool(pool, deadline)
            if found is None:
                empty.append(pool)
            else:
                chosen[pool] = found
    refused = [pool for pool, one in chosen.items() if not machines.administers(one.system_id, deadline)]
    return PoolRights(tuple(chosen), tuple(refused), tuple(empty))

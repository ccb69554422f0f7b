"""Limits over all runs of a journal, as the adapters ask for them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from clusterctl.edges.infiniband import SminfoReader
from clusterctl.fleet.stagger import Stagger
from clusterctl.operations.context import SiteContext
from clusterctl.ports import Deadline, Journal
from clusterctl.steps.executor.pace import SubnetManagerPace
from clusterctl.steps.executor.permits import PermitPool, PowerPools, maas_pool, reboot_pool


def reboots(context: SiteContext) -> PermitPool:
    """Return the cap on hosts of the site that reboot at once; smaller while its subnet manager is busy.

    Its activity is read where the site names `fabric.sminfo`.
    """
    fabric = context.site.settings.fabric
    if not fabric.sminfo:
        return reboot_pool(context.journal, fabric.reboots, context.on_wait)
    pace = SubnetManagerPace(SminfoReader(fabric.sminfo), fabric.sm_busy, context.on_wait)
    return reboot_pool(context.journal, fabric.reboots, context.on_wait, pace)


@dataclass(frozen=True, slots=True)
class SharedLimits:
    """`on_wait` receives what a run waits for."""

    journal: Journal
    on_wait: Callable[[str], None]

    def power_on(self, stagger: Stagger) -> Callable[[str, Deadline], AbstractContextManager[object]]:
        """Return the permit of one more machine of a group to come on."""
        return PowerPools(self.journal, stagger, self.on_wait).held

    def maas(self, at_most: int) -> Callable[[Deadline], AbstractContextManager[object]]:
        """Return the turn of one more request that changes something in MAAS."""
        pool = maas_pool(self.journal, at_most, self.on_wait)
        return lambda deadline: pool.taken(1, deadline)

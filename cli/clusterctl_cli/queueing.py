"""Where a command's operation runs instead of here: in a process of its own, or by a worker of a pool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from clusterctl.fleet.errors import UsageError
from clusterctl.operations.detached import Origin, operation_for, order
from clusterctl.operations.pods import AUTO, split
from clusterctl.operations.pods import order as order_parts
from clusterctl.operations.workers import read
from clusterctl_cli.commands.runs import follow, print_group, print_ordered
from clusterctl_cli.context import command_name
from clusterctl_cli.text import echo

if TYPE_CHECKING:
    from clusterctl.operations.context import SiteContext
    from clusterctl.operations.operation import Preview


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePlacement:
    """Values of `--detach`, `--queue` and `--priority`."""

    detach: bool = False
    pool: str = ""
    priority: int = 0

    @classmethod
    def taken(cls, options: dict[str, Any]) -> QueuePlacement:
        """Return the placement among a command's options, and take it out of these."""
        return cls.of(**{name: options.pop(name) for name in ("detach", "pool", "priority") if name in options})

    @classmethod
    def of(cls, *, detach: bool = False, pool: str = "", priority: int = 0) -> QueuePlacement:
        """Return the placement. Raises `UsageError` for a priority without a pool."""
        found = cls(detach=detach, pool=pool, priority=priority)
        if found.priority and not found.pool:
            raise UsageError("it goes with --queue", where="--priority", remedy="name the pool with --queue")
        return found

    @property
    def elsewhere(self) -> bool:
        """True where the operation does not run in this process."""
        return self.detach or bool(self.pool)

    def refuse_auto(self) -> None:
        """Raise `UsageError` where the pool is to be chosen by the nodes, which the operation chooses later."""
        if self.pool == AUTO:
            remedy = "name the pool"
            raise UsageError("it chooses its nodes only when it runs", where=f"--queue {AUTO}", remedy=remedy)

    def refuse(self, why: str) -> None:
        """Raise `UsageError` where the operation is to run elsewhere, but cannot."""
        if self.elsewhere:
            where = "--detach" if self.detach else "--queue"
            raise UsageError(why, where=where, remedy=f"leave out {where}")


def place(context: SiteContext, request: Any, preview: Preview, placement: QueuePlacement, *, as_json: bool) -> int:
    """Order the operation elsewhere as it was previewed; see `place_on`."""
    if placement.pool == AUTO and not preview.effects:
        raise UsageError("there is nothing to do, for no worker", where="--queue", remedy="leave out --queue")
    if placement.pool == AUTO:
        return _place_auto(context, request, preview, placement, as_json=as_json)
    nodes = tuple(effect.node for effect in preview.effects)
    return place_on(context, request, preview.digest, placement, nodes, as_json=as_json)


def place_on(
    context: SiteContext,
    request: Any,
    approved: str,
    placement: QueuePlacement,
    nodes: Sequence[str],
    *,
    as_json: bool,
) -> int:
    """Order the operation elsewhere; follow a pool's run where a terminal reads it. Return the exit code.

    `approved`: the digest of the approved preview, empty for any; `nodes`: those that it may act on.
    """
    placement.refuse_auto()
    origin = Origin(
        command=command_name(),
        approved=approved,
        pool=placement.pool,
        priority=placement.priority,
        nodes=tuple(nodes),
    )
    record = order(context, request, origin)
    for run in read(context).waiting if placement.pool else ():
        if run.name == record.name and run.why:
            echo(f"warning: {run.why}: the run waits for one", err=True)
    if placement.detach or as_json:
        return print_ordered(context, record, as_json=as_json)
    echo(f"run {record.name} is ordered; Ctrl-C ends only this view", err=True)
    return follow(context, record.name)


def _place_auto(
    context: SiteContext, request: Any, preview: Preview, placement: QueuePlacement, *, as_json: bool
) -> int:
    """Order a run for each group of workers that the nodes need; one run where one group reaches all of them."""
    parts = split(context, operation_for(request), request, preview)
    if len(parts) == 1:
        return place(context, request, preview, replace(placement, pool=parts[0].pool), as_json=as_json)
    group = order_parts(context, parts, Origin(command=command_name(), priority=placement.priority))
    if placement.detach or as_json:
        return print_group(context, group, as_json=as_json)
    echo(f"{len(parts)} runs are ordered as {group}; Ctrl-C ends only this view", err=True)
    return follow(context, group)

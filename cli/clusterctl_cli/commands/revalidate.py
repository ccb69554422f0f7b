"""`clusterctl revalidate NODE`."""

from __future__ import annotations

from pathlib import Path

import click

from clusterctl_cli.options import decision_options, partner_option


@click.command()
@click.argument("node")
@click.option("--repaired", "parts", metavar="PART[,PART]", multiple=True, help="gpu3, a slot, a serial, 'cable 5'.")
@click.option("--reason", default="", help="Instead of the parts' names; kept in the node's history with your name.")
@click.option("--from-pool", is_flag=True, help="Even where it is gold and no scheduler can say that it is idle.")
@click.option("--suite", default="", help="Another burn-in than the site's, such as revalidate.")
@partner_option
@decision_options
def revalidate(
    *,
    node: str,
    parts: tuple[str, ...],
    reason: str,
    from_pool: bool,
    suite: str,
    partners: tuple[str, ...],
    folder: Path,
    **manner: bool,
) -> int:
    """Prove a node anew after a repair, from the step on that the repair touched, up to gold.

    An open chassis brings all PCIe links into doubt, whatever was repaired. It is measured beside gold nodes: those
    named by --partner, else idle ones that the scheduler lends for the time. What no repair touched is not asked again.
    """
    from clusterctl.operations.context import open_office
    from clusterctl.operations.decisions import Manner
    from clusterctl.operations.revalidate import Anew, revalidate_node

    named = tuple(name.strip() for part in parts for name in part.split(",") if name.strip())
    office = open_office(folder, thorough=True)
    return revalidate_node(office, Anew(node, named, reason, from_pool, partners, suite), Manner(**manner))

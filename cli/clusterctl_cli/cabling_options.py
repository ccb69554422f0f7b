"""Options that the commands on recorded cabling share."""

from __future__ import annotations

import click

from clusterctl_cli.options import FILE

_PLAN = "Wiring plan: CSV, Excel workbook, .topo or .ndt, gzipped or not. Repeatable: the files are parts of one plan."
plan_option = click.option("--plan", type=FILE, multiple=True, help=_PLAN)
required_plan_option = click.option("--plan", type=FILE, multiple=True, required=True, help=_PLAN)
sheet_option = click.option(
    "--sheet", default="", metavar="NAME", help="The sheet of a workbook.  [default: the one that fits]"
)
guids_option = click.option(
    "--guids", type=FILE, help="CSV with the columns guid, host and hca: owners of adapters, which win over their names"
)
host_gbps_option = click.option(
    "--host-gbps", type=click.FloatRange(min=0, min_open=True), help="rate that a host's link must have"
)

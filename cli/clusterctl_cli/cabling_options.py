"""Options that the commands on recorded cabling share."""

from __future__ import annotations

import click

from clusterctl_cli.options import FILE

guids_option = click.option(
    "--guids", type=FILE, help="CSV with the columns guid, host and hca: whose adapters are whose, whatever they say"
)
host_gbps_option = click.option(
    "--host-gbps", type=click.FloatRange(min=0, min_open=True), help="rate that a host's link must have"
)

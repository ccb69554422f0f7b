"""`clusterctl burnin`: the step alone."""

from __future__ import annotations

from clusterctl.cli.commands.steps import one
from clusterctl.cli.options import partner_option

burnin = partner_option(one("burnin", "Check and load nodes whose cabling is proven."))

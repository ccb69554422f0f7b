"""`clusterctl burnin`: the step alone."""

from __future__ import annotations

from clusterctl.cli.commands.steps import one

burnin = one("burnin", "Check and load nodes whose cabling is proven.")

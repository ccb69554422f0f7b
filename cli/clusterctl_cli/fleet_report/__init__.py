"""The fleet report: what was measured and found, for the operators of the fleet and its vendor."""

"""The fleet report: what was measured and found, for the people who run the fleet and for those who sold it."""

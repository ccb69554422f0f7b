"""The burn-in: checks and loads that run on a node, and the rules that judge their output."""

"""Wiring plans: `wiring.csv`, `.topo` and `.ndt` files."""

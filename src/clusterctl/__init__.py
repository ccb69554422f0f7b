"""clusterctl takes bare GPU servers to a trusted training cluster."""

__version__ = "0.2.0"
"""Also in `pyproject.toml`, which a test compares. Installed metadata would be 20 ms of each `--version`."""

"""clusterctl takes bare GPU servers to a trusted training cluster."""

__version__ = "0.2.0"
"""Also in `pyproject.toml`; a test compares them. `--version` reads it here: the metadata of packages take 20 ms to read."""

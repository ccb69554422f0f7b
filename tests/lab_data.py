"""The lab's SKUs, limits and baselines, which `lab up` writes into its site directory."""

from __future__ import annotations

from importlib.resources import files

from clusterctl_burnin.limits.limit import Limits
from clusterctl_burnin.limits.reading import LimitsText, parse_limits


def lab_text(path: str) -> str:
    """Return the text of a data file of the lab, such as `skus/lab-xe9680.yml`."""
    return (files("clusterctl_lab") / "data" / path).read_text(encoding="utf-8")


def lab_limits(name: str = "lab") -> Limits:
    """Return the lab's limits with that name."""
    others = {} if name == "lab" else {"lab": LimitsText(lab_text("limits/lab.yml"), "limits/lab.yml")}
    return parse_limits(lab_text(f"limits/{name}.yml"), where=f"limits/{name}.yml", others=others)

"""Finds the files that travel with the program: the same way in a checkout and in a wheel."""

from __future__ import annotations

from pathlib import Path

import clusterctl
from clusterctl.fleet.errors import EnvironmentBrokenError


def resource(name: str) -> Path:
    """The folder `clusterctl/data/<name>`: `playbooks`, `roles`, `skus`, `site`."""
    path = (Path(clusterctl.__path__[0]) / "data" / name).resolve()
    if not path.exists():
        raise EnvironmentBrokenError(
            f"the installation lacks {name}", where=str(path), remedy="install clusterctl again from a complete wheel"
        )
    return path

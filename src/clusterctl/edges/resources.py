"""Files that travel with the program, found in a checkout and in a wheel alike."""

from __future__ import annotations

from pathlib import Path

import clusterctl
from clusterctl.fleet.errors import EnvironmentBrokenError

PACKAGE = Path(clusterctl.__path__[0])
CHECKOUT = PACKAGE.parents[1]


def resource(name: str) -> Path:
    """Return the folder `playbooks`, `roles`, `skus` or `site`.

    Raises `EnvironmentBrokenError` where the installation lacks it.
    """
    places = (PACKAGE / "data" / name, PACKAGE / "ansible" / name, CHECKOUT / name)
    found = next((place for place in places if place.is_dir()), None)
    if found is None:
        raise EnvironmentBrokenError(
            f"the installation lacks {name}",
            where=str(PACKAGE),
            remedy="install clusterctl again from a complete wheel",
        )
    return found

"""The data files that come with this package: found the same way in a checkout and in a wheel."""

from __future__ import annotations

import importlib.resources
from collections.abc import Iterable


def text_of(path: str) -> str:
    """The text of a file below this package (`limits/lab.yml`)."""
    return importlib.resources.files("clusterctl.burnin").joinpath(path).read_text(encoding="utf-8")


def names_in(folder: str, *, suffix: str) -> Iterable[str]:
    """The names, without suffix, of the files of a kind in a folder, sorted."""
    entries = importlib.resources.files("clusterctl.burnin").joinpath(folder).iterdir()
    return sorted(entry.name.removesuffix(suffix) for entry in entries if entry.name.endswith(suffix))

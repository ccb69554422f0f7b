"""The data files that come with this package: found the same way in a checkout and in a wheel."""

from __future__ import annotations

import importlib.resources

from clusterctl.fleet.errors import UsageError


def text_of(path: str) -> str:
    """Return the text of a file below this package (`limits/h100-sxm-ndr400.yml`)."""
    return importlib.resources.files("clusterctl_burnin").joinpath(path).read_text(encoding="utf-8")


def shipped(folder: str, name: str, *, otherwise: str, where: str) -> str:
    """Return the text of `FOLDER/NAME.yml`; where this package has none, raise `UsageError`: `OTHERWISE 'NAME'`."""
    known = names_in(folder, suffix=".yml")
    if name not in known:
        raise UsageError(
            f"{otherwise} {name!r}",
            where=where,
            remedy=f"take one of {', '.join(known)}, or write {folder}/{name}.yml in the site directory",
        )
    return text_of(f"{folder}/{name}.yml")


def names_in(folder: str, *, suffix: str) -> list[str]:
    """Return the names, without suffix, of the files of a kind in a folder, sorted."""
    entries = importlib.resources.files("clusterctl_burnin").joinpath(folder).iterdir()
    return sorted(entry.name.removesuffix(suffix) for entry in entries if entry.name.endswith(suffix))

"""A folder of wheels made from what this interpreter has installed: pip on a lab host needs no index for them."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement


def write_wheelhouse(folder: Path, wheel: Path) -> None:
    """Write every package that `wheel` needs into `folder`, each as a wheel of the installed version."""
    folder.mkdir()
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        needed = re.findall(r"^Requires-Dist: (.*)$", archive.read(name).decode(), re.MULTILINE)
    for found in _closure([Requirement(line) for line in needed]):
        _pack(found, folder)


def _closure(wanted: list[Requirement]) -> Iterator[Distribution]:
    """Yield each distribution that one of the requirements leads to, once."""
    done: set[tuple[str, str]] = set()
    names: set[str] = set()
    while wanted:
        requirement = wanted.pop()
        for extra in ("", *requirement.extras):
            key = (requirement.name.lower(), extra)
            if key in done:
                continue
            done.add(key)
            found = distribution(requirement.name)
            if found.name not in names:
                names.add(found.name)
                yield found
            lines = (Requirement(line) for line in found.requires or ())
            wanted += [line for line in lines if line.marker is None or line.marker.evaluate({"extra": extra})]


def _pack(found: Distribution, folder: Path) -> None:
    """Write an installed distribution as a wheel. Programs are left out: pip makes them of the entry points."""
    tags = re.findall(r"^Tag: (.*)$", found.read_text("WHEEL") or "", re.MULTILINE)
    python, abi, _ = tags[0].split("-")
    platforms = ".".join(dict.fromkeys(tag.split("-")[2] for tag in tags))
    pythons = ".".join(dict.fromkeys(tag.split("-")[0] for tag in tags)) or python
    name = re.sub(r"[-_.]+", "_", found.name)
    with zipfile.ZipFile(folder / f"{name}-{found.version}-{pythons}-{abi}-{platforms}.whl", "w") as archive:
        for file in found.files or ():
            path = Path(str(found.locate_file(file)))
            if ".." not in file.parts and "__pycache__" not in file.parts and path.is_file():
                archive.write(path, str(file))

"""Reads the recording of a real BMC: one folder for each resource, with the resource as its `index.json`.

That is the form of the DMTF's Redfish Mockup Creator: a folder, or an archive of it that `tarfile` opens. The resources
are kept as text with the places of their identities marked, so that hundreds of copies share them.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from clusterctl.fleet.errors import UsageError
from clusterctl_lab.emulators.redfish.replay.copies import Marked, Marker
from clusterctl_lab.emulators.redfish.replay.identities import Identity, find_identities

ROOT = "/redfish/v1"
NAME = "index.json"
MAX_BYTES = 2**30
"""Of all resources together; the largest recorded here has 11 MB."""
_OF_NO_MACHINE = ("$schema", "RegistryEntries")
"""What a schema or a registry of messages has: nothing in it is about this machine, and they are most of the text."""
_REMEDY = "record it with the DMTF's Redfish Mockup Creator, or name the folder in which redfish/v1/index.json lies"


@dataclass(frozen=True, slots=True)
class Recording:
    """`resources` by path without trailing slash; an identity is what no two machines share (serial, MAC, GUID).

    `moving` has the paths that identities stand in.
    """

    name: str
    resources: Mapping[str, Marked]
    identities: tuple[Identity, ...]
    moving: Mapping[str, Marked]


def load_recording(source: Path) -> Recording:
    """Read a folder or an archive. Raises `UsageError`, naming the file, where it is no recording or a broken one."""
    found = _service(dict(_files(source)), source)
    parsed = {path: _parse(content, where) for path, (content, where) in found.items()}
    identities = find_identities({path: body for path, body in parsed.items() if _of_a_machine(body)})
    marker = Marker(identities)
    paths = {path: marker.mark(path) for path in parsed}
    return Recording(
        name=source.name,
        resources={path: _marked(body, marker) for path, body in parsed.items()},
        identities=identities,
        moving={path: marked for path, marked in paths.items() if marked.numbers},
    )


def _marked(body: Mapping[str, Any], marker: Marker) -> Marked:
    text = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
    return marker.mark(text) if _of_a_machine(body) else Marked((text,))


def _of_a_machine(body: Mapping[str, Any]) -> bool:
    return not any(key in body for key in _OF_NO_MACHINE)


def _files(source: Path) -> Iterator[tuple[PurePosixPath, bytes]]:
    """All resources' files below the source, by their place in it."""
    if source.is_dir():
        for file in sorted(source.rglob(NAME)):
            if file.is_file():
                yield PurePosixPath(file.relative_to(source).as_posix()), file.read_bytes()
        return
    try:
        with tarfile.open(source) as archive:
            yield from _members(archive, source)
    except FileNotFoundError:
        raise UsageError("there is no such folder or archive", where=str(source), remedy=_REMEDY) from None
    except (tarfile.TarError, EOFError, OSError) as error:
        raise UsageError(f"cannot be read as an archive: {error}", where=str(source), remedy=_REMEDY) from error


def _members(archive: tarfile.TarFile, source: Path) -> Iterator[tuple[PurePosixPath, bytes]]:
    size = 0
    for member in archive:
        if not member.isfile() or PurePosixPath(member.name).name != NAME:
            continue
        size += member.size
        if size > MAX_BYTES:
            raise UsageError(f"holds more than {MAX_BYTES >> 20} MiB", where=str(source), remedy=_REMEDY)
        content = archive.extractfile(member)
        if content is not None:
            yield PurePosixPath(member.name), content.read()


def _service(files: Mapping[PurePosixPath, bytes], source: Path) -> dict[str, tuple[bytes, str]]:
    """Path of each resource → its content, and where that stands. Whatever lies outside the service is left out."""
    roots = [file.parent for file in files if file.parts[-3:] == ("redfish", "v1", NAME)]
    if not roots and PurePosixPath(NAME) in files:
        roots = [PurePosixPath()]  # the mock-up's short form: the folder is the service root itself
    if len(roots) != 1:
        reported = f"holds {len(roots)} services: {', '.join(map(str, roots))}" if roots else "holds no redfish/v1"
        raise UsageError(reported, where=str(source), remedy=_REMEDY)
    (root,) = roots
    below = {file: content for file, content in files.items() if file.is_relative_to(root)}
    return {
        "/".join((ROOT, *file.parent.relative_to(root).parts)): (content, f"{source}/{file}")
        for file, content in below.items()
    }


def _parse(content: bytes, where: str) -> Mapping[str, Any]:
    try:
        body = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"is no JSON: {error}", where=where, remedy="record this resource again") from None
    if not isinstance(body, dict):
        raise UsageError("is no JSON object", where=where, remedy="record this resource again")
    return body

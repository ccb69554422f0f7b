"""The site directory that a lab leaves behind: ready to bootstrap, and never overwriting an operator's file.

`.clusterctl-lab.json` in it names the lab and the digest of each file the lab wrote. A file whose digest is another
was changed by an operator: it is kept, by `up` and by `down`.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from clusterctl.fleet.errors import UsageError

MANIFEST = ".clusterctl-lab.json"
RUNS = ("state", "gold.json")
"""What runs of clusterctl leave in a site directory: about machines that end with the lab."""

PREVIOUS = "previous"

Files = Mapping[str, tuple[bytes, int]]
"""Path below the site directory → content and mode."""


@dataclass(frozen=True, slots=True)
class _Manifest:
    """`files`: path below the site directory → digest of what the lab wrote."""

    lab: str
    files: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SiteDirectory:
    """`path` need not exist yet."""

    path: Path
    lab: str

    def check(self) -> None:
        """Raise `UsageError` unless the lab may write here: nothing there yet, or this lab wrote it."""
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise UsageError("is there already and no folder", where=str(self.path), remedy="name another --site")
        manifest = self._manifest()
        if manifest is None and any(self.path.iterdir()):
            raise UsageError(
                "holds files that no lab wrote, and they shall stay as they are",
                where=str(self.path),
                remedy="name a new folder: --site DIR",
            )
        if manifest is not None and manifest.lab != self.lab:
            raise UsageError(
                f"belongs to lab {manifest.lab}",
                where=str(self.path),
                remedy=f"name another --site, or first: clusterctl lab down --name {manifest.lab}",
            )

    def write(self, files: Files) -> tuple[str, ...]:
        """Write them and return the names of those that an operator has changed and that were kept.

        What runs on an earlier lab left is moved to `previous/`, since their machines are gone.
        """
        self.check()
        self.path.mkdir(mode=0o755, parents=True, exist_ok=True)
        self._set_aside()
        kept = self._changed_by_person()
        self._drop_unchanged(kept)
        written = {name: content for name, content in files.items() if name not in kept}
        for name, (content, mode) in written.items():
            _write(self.path / name, content, mode)
        digests = {name: _digest(content) for name, (content, _) in written.items()}
        manifest = _Manifest(self.lab, {**dict.fromkeys(kept, "changed"), **digests})
        _write(self.path / MANIFEST, (json.dumps(asdict(manifest), indent=1) + "\n").encode(), 0o644)
        return tuple(sorted(kept))

    def remove(self) -> tuple[str, ...]:
        """Remove what the lab wrote and its runs left; return the names of files that an operator added or changed."""
        manifest = self._manifest()
        if manifest is None or manifest.lab != self.lab:
            return ()
        kept = self._changed_by_person()
        self._drop_unchanged(kept)
        for name in (*RUNS, PREVIOUS):
            _remove(self.path / name)
        (self.path / MANIFEST).unlink()
        for folder in sorted((path for path in self.path.rglob("*") if path.is_dir()), reverse=True):
            if not any(folder.iterdir()):
                folder.rmdir()
        left = tuple(sorted(str(path.relative_to(self.path)) for path in self.path.rglob("*") if path.is_file()))
        if not left:
            self.path.rmdir()
        return left

    def _drop_unchanged(self, kept: set[str]) -> None:
        manifest = self._manifest()
        for name in manifest.files if manifest else ():
            if name not in kept:
                (self.path / name).unlink(missing_ok=True)

    def _manifest(self) -> _Manifest | None:
        try:
            text = (self.path / MANIFEST).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        return _Manifest(**json.loads(text))

    def _changed_by_person(self) -> set[str]:
        manifest = self._manifest()
        if manifest is None:
            return set()
        return {
            name
            for name, digest in manifest.files.items()
            if (self.path / name).exists() and _digest((self.path / name).read_bytes()) != digest
        }

    def _set_aside(self) -> None:
        found = [name for name in RUNS if (self.path / name).exists()]
        if not found:
            return
        previous = self.path / PREVIOUS
        _remove(previous)
        previous.mkdir()
        for name in found:
            (self.path / name).rename(previous / name)


def _write(path: Path, content: bytes, mode: int) -> None:
    """Whole or not at all, and never readable by others for a moment."""
    path.parent.mkdir(mode=0o700 if mode == 0o600 else 0o755, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as handle:
        handle.write(content)
        os.fchmod(handle.fileno(), mode)
    draft.replace(path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()

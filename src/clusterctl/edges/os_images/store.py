"""The boot folder: what the PXE service serves below /files/.

    deployer/DIGEST/{vmlinuz,initrd,stub.efi,manifest.json} deployer/current        → DIGEST
    images/NAME/DIGEST/{rootfs.tar.zst,manifest.json}       images/NAME/current     → DIGEST
    tftp/{ipxe.efi,snponly.efi,undionly.kpxe}

A folder with a digest is complete and never changes; `current` is moved in one step. What is being built has a name
that begins with `.building-`.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import pydantic

from clusterctl.edges.disk import disk_explained
from clusterctl.fleet.errors import ParseError, UsageError

_DIGEST = r"^[0-9a-f]{64}$"


class _Manifest(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True, extra="ignore")

    def to_bytes(self) -> bytes:
        return f"{self.model_dump_json(indent=2)}\n".encode()


class ImageManifest(_Manifest):
    """Of `rootfs.tar.zst`: `digest` is its SHA-256, `size` its bytes, `kernel` the release that it boots
    (`6.1.0-56-amd64`), `packages` how many are installed, `recipe` the digest of what it was built from, `built` UTC.
    """

    name: str
    digest: str = pydantic.Field(pattern=_DIGEST)
    size: int = pydantic.Field(gt=0)
    os: str
    kernel: str
    built: datetime
    packages: int
    small: bool = False
    recipe: str


class DeployerManifest(_Manifest):
    """Of `vmlinuz`, `initrd` and, where it has a `stub`, `stub.efi`: `digest` is the SHA-256 over all, in this order;
    `size` the bytes of all.
    """

    digest: str = pydantic.Field(pattern=_DIGEST)
    size: int = pydantic.Field(gt=0)
    os: str
    kernel: str
    built: datetime
    modules: int
    recipe: str
    stub: bool = False

    @property
    def files(self) -> tuple[str, ...]:
        """Return the names of its files, in the order of the digest."""
        return (KERNEL, INITRD, STUB) if self.stub else (KERNEL, INITRD)


def read_image(text: bytes, where: str) -> ImageManifest:
    """Return the manifest. Raise `ParseError` where it is none."""
    return _read(ImageManifest, text, where)


def read_deployer(text: bytes, where: str) -> DeployerManifest:
    """Return the manifest. Raise `ParseError` where it is none."""
    return _read(DeployerManifest, text, where)


_M = TypeVar("_M", bound=_Manifest)


def _read(kind: type[_M], text: bytes, where: str) -> _M:
    try:
        return kind.model_validate_json(text)
    except pydantic.ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise ParseError(f"not understood: {field} {first['msg']}".replace("  ", " "), where=where) from None


MANIFEST = "manifest.json"
ROOTFS = "rootfs.tar.zst"
KERNEL = "vmlinuz"
INITRD = "initrd"
STUB = "stub.efi"
"""What makes one EFI program of both (systemd's linuxx64.efi.stub), for a boot over HTTPS."""
CURRENT = "current"
_UNFINISHED = ".building-"


@dataclass(frozen=True, slots=True)
class OsImage:
    """A root file system that can be deployed. `path_below_files`: `images/debian-12/DIGEST/rootfs.tar.zst`."""

    name: str
    digest: str
    path_below_files: str
    size: int
    os: str


@dataclass(frozen=True, slots=True)
class DeployerImage:
    """The paths are below /files/: `deployer/DIGEST/vmlinuz`. `stub_path` is empty for one built without a stub."""

    digest: str
    kernel_path: str
    initrd_path: str
    stub_path: str = ""


@dataclass(frozen=True, slots=True)
class BootFolder:
    """Reads need no lock; a writer holds `writing`."""

    path: Path

    def image(self, name: str) -> OsImage:
        """Return the image that `name` stands for now. Raise `UsageError` where none was built."""
        found = self.current_image(name)
        if found is None:
            raise self._missing(f"there is no image {name!r}", name)
        return self.os_image(found)

    def deployer(self) -> DeployerImage:
        """Return the deployer. Raise `UsageError` where none was built, or where its files are not what was built.

        Its machines write disks as root, and nothing in firmware or iPXE checks what they boot.
        """
        found = self.current_deployer()
        if found is None:
            raise self._missing("there is no deployer, which writes images to disks", "NAME")
        folder = self._deployers / found.digest
        if _digest([folder / name for name in found.files]) != found.digest:
            raise UsageError(
                f"the deployer's {' or '.join(found.files)} is not what was built: their SHA-256 has changed",
                where=str(folder),
                remedy="find out what wrote there; remove that folder, then run: clusterctl image build",
            )
        return self.of_deployer(found)

    def images(self) -> tuple[ImageManifest, ...]:
        """Return the current one of each name, by name."""
        names = sorted(path.name for path in self._images.glob("*") if not path.name.startswith("."))
        found = (self.current_image(name) for name in names)
        return tuple(manifest for manifest in found if manifest is not None)

    def current_image(self, name: str) -> ImageManifest | None:
        text = _text(self._images / name / CURRENT / MANIFEST) if _plain(name) else None
        return read_image(text, str(self._images / name)) if text else None

    def current_deployer(self) -> DeployerManifest | None:
        text = _text(self._deployers / CURRENT / MANIFEST)
        return read_deployer(text, str(self._deployers)) if text else None

    @staticmethod
    def os_image(manifest: ImageManifest) -> OsImage:
        path = f"images/{manifest.name}/{manifest.digest}/{ROOTFS}"
        return OsImage(manifest.name, manifest.digest, path, manifest.size, manifest.os)

    @staticmethod
    def of_deployer(manifest: DeployerManifest) -> DeployerImage:
        folder = f"deployer/{manifest.digest}"
        stub = f"{folder}/{STUB}" if manifest.stub else ""
        return DeployerImage(manifest.digest, f"{folder}/{KERNEL}", f"{folder}/{INITRD}", stub)

    @property
    def tftp(self) -> Path:
        return self.path / "tftp"

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Admit one writer at a time, after the one before; remove what a killed one left."""
        with disk_explained("the boot folder cannot be written", self.path):
            make_open(self.path)
            lock = (self.path / ".lock").open("w")
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with disk_explained("what a killed build left cannot be removed", self.path):
                self._remove_unfinished()
            yield

    def workplace(self, name: str) -> Path:
        """Return a new folder for a build, on the disk of the finished ones."""
        place = self.path / f"{_UNFINISHED}{name}"
        place.mkdir(mode=0o700)
        return place

    def publish_image(self, finished: Path, manifest: ImageManifest) -> OsImage:
        """Take the folder `finished`, which holds the image, and let its name stand for it from now on."""
        _publish(finished, manifest.to_bytes(), self._images / manifest.name, manifest.digest)
        return self.os_image(manifest)

    def publish_deployer(self, finished: Path, manifest: DeployerManifest) -> DeployerImage:
        """Publish a deployer, as `publish_image` does an image."""
        _publish(finished, manifest.to_bytes(), self._deployers, manifest.digest)
        return self.of_deployer(manifest)

    @property
    def _images(self) -> Path:
        return self.path / "images"

    @property
    def _deployers(self) -> Path:
        return self.path / "deployer"

    def _missing(self, message: str, name: str) -> UsageError:
        return UsageError(message, where=str(self.path), remedy=f"build it: clusterctl image build {name}")

    def _remove_unfinished(self) -> None:
        for leftover in self.path.glob(f"{_UNFINISHED}*"):
            if leftover.is_dir():
                shutil.rmtree(leftover)
            else:
                leftover.unlink()


def make_open(folder: Path) -> None:
    """Make the folder readable for all users, whatever the umask is: the HTTP service has an account of its own."""
    if not folder.is_dir():
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        folder.chmod(0o755)


def _publish(finished: Path, manifest: bytes, shelf: Path, digest: str) -> None:
    """Publish the whole folder under its digest, then the link: a reader sees the old one or the new one."""
    (finished / MANIFEST).write_bytes(manifest)
    for path in (*finished.iterdir(), finished):
        path.chmod(0o755 if path.is_dir() else 0o644)
        _sync(path)
    make_open(shelf.parent)
    make_open(shelf)
    place = shelf / digest
    if place.is_dir():  # the same bytes were built before
        shutil.rmtree(finished)
    else:
        finished.rename(place)
    link = shelf / f".{CURRENT}.part"
    link.unlink(missing_ok=True)
    link.symlink_to(digest)
    link.replace(shelf / CURRENT)
    _sync(shelf)


def _sync(path: Path) -> None:
    """Write a folder's entries, or a file's content, to the disk before this returns."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _text(path: Path) -> bytes | None:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return None
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _digest(files: Sequence[Path]) -> str:
    """Return the SHA-256 over the files in this order; empty where one is missing."""
    try:
        found = [file.stat() for file in files]
        return _digest_as_of(
            tuple(files), tuple((one.st_ino, one.st_size, one.st_mtime_ns, one.st_ctime_ns) for one in found)
        )
    except (FileNotFoundError, NotADirectoryError):
        return ""


@lru_cache(4)
def _digest_as_of(files: tuple[Path, ...], stamps: tuple[tuple[int, ...], ...]) -> str:
    """Read the files once for each of their states: each write changes `st_ctime`."""
    del stamps
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as opened:
            while block := opened.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def _plain(name: str) -> bool:
    """Return whether a name is only a name, and no path."""
    return bool(name) and "/" not in name and not name.startswith(".")


@dataclass(frozen=True, slots=True)
class Outdated:
    """A folder with a digest, and the bytes that it holds."""

    path: Path
    size: int


def outdated(store: BootFolder) -> tuple[Outdated, ...]:
    """Return what `current` does not point to, where it points to something that is there."""
    shelves = [store.path / "deployer", *sorted((store.path / "images").glob("*"))]
    return tuple(old for shelf in shelves if (shelf / CURRENT).is_dir() for old in _old(shelf))


def remove(store: BootFolder, old: Sequence[Outdated]) -> None:
    """Delete them. One that has become current since is left alone."""
    with store.writing(), disk_explained("an old image cannot be removed", store.path):
        still = {each.path for each in outdated(store)}
        for each in old:
            if each.path in still:
                shutil.rmtree(each.path)


def _old(shelf: Path) -> list[Outdated]:
    current = (shelf / CURRENT).resolve()
    return [
        Outdated(path, sum(file.stat().st_size for file in path.iterdir()))
        for path in sorted(shelf.iterdir())
        if path.is_dir() and not path.is_symlink() and path.resolve() != current
    ]

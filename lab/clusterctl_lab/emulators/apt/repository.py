"""Builds the lab's apt repositories once and caches them: `<cache>/apt-<digest>/{debian,<vendor>…}` and `key.asc`."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl_lab.emulators.apt.closure import HOST_PACKAGES, download
from clusterctl_lab.emulators.apt.tools import run
from clusterctl_lab.emulators.apt.vendors import VENDORS
from clusterctl_lab.image import host_release

CACHE = Path("/var/cache/clusterctl-lab")
RECIPE_VERSION = "1"
"""Raise it when what is built changes in a way that the digest does not see."""

KEY_USER = "clusterctl rehearsal lab"
DEBIAN = "debian"
KEY = "key.asc"
REPOSITORIES = (DEBIAN, *VENDORS)


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of `/debian`: `packages` with their dependencies, from `sources` (by default the machine's own), and
    `archives`, package files that exist already.
    """

    packages: tuple[str, ...] = HOST_PACKAGES
    sources: tuple[str, ...] = ()
    archives: tuple[Path, ...] = ()

    def digest(self) -> bytes:
        made = (hashlib.sha256(archive.read_bytes()).hexdigest() for archive in self.archives)
        return "\0".join((*self.packages, *self.sources, *made)).encode()


def for_hosts() -> Contents:
    """Return what hosts in namespaces install from, of their own release."""
    release = host_release()
    return Contents(sources=release.sources() if release.mirror else ())


def ensure_repository(
    image: Path, progress: Callable[[str], None], *, cache: Path = CACHE, contents: Contents | None = None
) -> Path:
    """Return the folder of the repositories for hosts of `image`; build it first if `cache` lacks it (a few seconds).
    Only the package database of the image is read.

    Two concurrent callers build it once; the next build removes the remains of a killed one. Raises
    `EnvironmentBrokenError` where a packaging tool is missing or apt cannot fetch.
    """
    contents = contents or for_hosts()
    root = cache / f"apt-{_digest(image, contents)}"
    if root.is_dir():
        return root
    try:
        cache.mkdir(mode=0o755, parents=True, exist_ok=True)
    except OSError as error:
        raise EnvironmentBrokenError(
            f"cannot keep the lab's packages: {error.strerror}",
            where=str(cache),
            remedy="Run the command through sudo.",
        ) from error
    with _lock(cache / "apt.lock"):
        if not root.is_dir():
            for leftover in cache.glob(".unfinished-apt-*"):
                shutil.rmtree(leftover)
            _build(image, root, progress, contents)
    return root


def _build(image: Path, root: Path, progress: Callable[[str], None], contents: Contents) -> None:
    progress("building the hosts' apt repository (once, a few seconds)")
    started = time.monotonic()
    unfinished = root.parent / f".unfinished-{root.name}"
    try:
        for name in REPOSITORIES:
            (unfinished / name).mkdir(mode=0o755, parents=True)
        with tempfile.TemporaryDirectory(dir=unfinished) as scratch:
            debian = unfinished / DEBIAN
            download(image, contents.packages, debian, Path(scratch), sources=contents.sources)
            for archive in contents.archives:
                shutil.copyfile(archive, debian / archive.name)
            for vendor, packages in VENDORS.items():
                for package in packages:
                    package.build(unfinished / vendor, Path(scratch))
        _index_and_sign(unfinished)
        unfinished.rename(root)
    finally:
        if unfinished.exists():
            shutil.rmtree(unfinished)
    count = sum(1 for _ in root.rglob("*.deb"))
    progress(f"apt repository ready: {count} packages in {time.monotonic() - started:.0f} s, kept in {root}")


def _index_and_sign(root: Path) -> None:
    """Write Packages, Release and InRelease of both; the private key is deleted afterwards."""
    with tempfile.TemporaryDirectory() as home:
        gpg = ("gpg", "--homedir", home, "--batch", "--quiet", "--passphrase", "", "--pinentry-mode", "loopback")
        try:
            run(*gpg, "--quick-generate-key", KEY_USER, "ed25519", "sign", "never")
            for name in REPOSITORIES:
                _index(root / name, label=f"clusterctl-lab-{name}")
                run(*gpg, "--clearsign", "--output", str(root / name / "InRelease"), str(root / name / "Release"))
            (root / KEY).write_text(run(*gpg, "--armor", "--export", KEY_USER), encoding="ascii")
        finally:
            run("gpgconf", "--homedir", home, "--kill", "all")


def _index(folder: Path, label: str) -> None:
    (folder / "Packages").write_text(run("apt-ftparchive", "packages", ".", cwd=folder), encoding="utf-8")
    fields = [part for name in ("Origin", "Label") for part in ("-o", f"APT::FTPArchive::Release::{name}={label}")]
    release = run("apt-ftparchive", *fields, "release", ".", cwd=folder)
    (folder / "Release").write_text(release, encoding="utf-8")


def _digest(image: Path, contents: Contents) -> str:
    """Return a digest of everything that decides the contents: the image's packages, the requested packages and the
    stand-ins.
    """
    status = image / "var/lib/dpkg/status"
    try:
        parts = [status.read_bytes()]
    except OSError as error:
        raise EnvironmentBrokenError(
            f"the hosts' image has no package database: {error.strerror}",
            where=str(status),
            remedy="Remove the image's folder: the next call builds it again.",
        ) from error
    parts += [RECIPE_VERSION.encode(), contents.digest()]
    for vendor, packages in VENDORS.items():
        parts += [
            f"{vendor}{package.control}{sorted(package.files.items())}{package.postinst}".encode()
            for package in packages
        ]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:12]


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield

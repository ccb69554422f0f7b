"""ZFS for a virtual machine's kernel: Debian's zfs-dkms, built once in a chroot and kept as a package.

A real host builds its modules itself; in software emulation that takes hours. The package has the modules alone and
provides `zfs-modules`, as those that `dkms mkbmdeb` makes for a fleet do.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl_lab.emulators.apt.tools import run
from clusterctl_lab.image import CACHE, network_options, own_release, own_sources

BUILD_SECONDS = 3600
RECIPE_VERSION = "1"
"""Raise it when what is built changes."""
SOURCE = "zfs-dkms"
COMPONENT = "contrib"
_CONTROL = """\
Package: zfs-modules-{kernel}
Version: {version}
Architecture: amd64
Section: kernel
Priority: optional
Provides: zfs-modules
Maintainer: clusterctl lab <lab@localhost>
Description: ZFS modules for Linux {kernel}
 Built from zfs-dkms by the clusterctl rehearsal lab.
"""
_AFTER = "#!/bin/sh\nset -e\ndepmod {kernel}\n"

Progress = Callable[[str], None]


def contrib_sources() -> tuple[str, ...]:
    """The machine's apt sources with the component that ZFS is in. Raises `EnvironmentBrokenError`."""
    return tuple(own_sources(*own_release(), (COMPONENT,)))


def ensure_zfs_modules(kernel: str, progress: Progress, *, cache: Path = CACHE) -> Path:
    """The package with the modules for the kernel release `kernel`, built first if it is not in `cache` yet (needs
    root; minutes). Two callers at once build it once. Raises `EnvironmentBrokenError`.
    """
    name = hashlib.sha256(f"{RECIPE_VERSION}\0{kernel}\0{own_release()}".encode()).hexdigest()[:12]
    folder = cache / f"zfs-{name}"
    cache.mkdir(mode=0o755, parents=True, exist_ok=True)
    with (cache / "zfs.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            _build(kernel, folder, progress)
    return next(folder.glob("*.deb"))


def _build(kernel: str, folder: Path, progress: Progress) -> None:
    progress(f"building ZFS for Linux {kernel} (once, some minutes)")
    started = time.monotonic()
    unfinished = folder.with_name(f".unfinished-{folder.name}")
    if unfinished.exists():
        shutil.rmtree(unfinished)
    try:
        chroot, tree = unfinished / "chroot", unfinished / "tree"
        unfinished.mkdir(mode=0o755)
        _bootstrap(kernel, chroot)
        _lay_out(kernel, chroot, tree)
        run("dpkg-deb", "--root-owner-group", "-Zgzip", "--build", str(tree), str(unfinished))
        for leftover in (chroot, tree):
            shutil.rmtree(leftover)
        unfinished.rename(folder)
    finally:
        if unfinished.exists():
            shutil.rmtree(unfinished)
    progress(f"ZFS for Linux {kernel} ready in {time.monotonic() - started:.0f} s, kept in {folder}")


def _bootstrap(kernel: str, chroot: Path) -> None:
    """A root file system in which the package's own installation has built the modules."""
    options = chroot.with_name("apt.conf")
    options.touch(mode=0o600)  # a proxy's address may carry a password
    options.write_text(network_options())
    argv = (
        *("setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--propagation", "private"),
        *("mmdebstrap", "--quiet", "--mode=root", "--variant=apt", f"--include={SOURCE},linux-headers-{kernel}"),
        *(f"--aptopt={options}", own_release()[1], str(chroot), "-"),
    )
    try:
        result = subprocess.run(
            argv, input="\n".join(contrib_sources()).encode(), capture_output=True, timeout=BUILD_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise EnvironmentBrokenError(
            f"ZFS was not built within {BUILD_SECONDS} s", remedy="Try again on a quieter machine."
        ) from error
    finally:
        options.unlink()
    if result.returncode != 0:
        last = " | ".join(result.stderr.decode(errors="replace").strip().splitlines()[-3:])
        raise EnvironmentBrokenError(
            f"ZFS could not be built for Linux {kernel}: {last}",
            remedy="Where the archive has no headers of this kernel any more, build the image again.",
        )


def _lay_out(kernel: str, chroot: Path, tree: Path) -> None:
    """The package's content. Raises `EnvironmentBrokenError` where the build has left no modules."""
    modules = sorted(chroot.glob(f"lib/modules/{kernel}/updates/dkms/*.ko*"))
    if "zfs" not in {module.name.partition(".")[0] for module in modules}:
        raise EnvironmentBrokenError(
            f"{SOURCE} has built no zfs.ko for Linux {kernel}", remedy="Look for its make.log by building it by hand."
        )
    place, control = tree / f"lib/modules/{kernel}/updates/dkms", tree / "DEBIAN"
    for made in (place, control):
        made.mkdir(mode=0o755, parents=True)
    for module in modules:
        shutil.copyfile(module, place / module.name)
    version = run("dpkg-query", "--root", str(chroot), "--show", "--showformat", "${Version}", SOURCE)
    (control / "control").write_text(_CONTROL.format(kernel=kernel, version=version), encoding="ascii")
    (control / "postinst").write_text(_AFTER.format(kernel=kernel), encoding="ascii")
    (control / "postinst").chmod(0o755)
    tree.chmod(0o755)

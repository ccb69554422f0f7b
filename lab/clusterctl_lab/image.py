"""The root file system that all hosts of all labs share: built once by mmdebstrap, then only read.

By default it is the machine's own release (Debian or Ubuntu), from the machine's own apt sources, so that it can be
built wherever the machine itself can install packages. The environment may name another release and its archive. What
makes it a lab host is in `clusterctl_lab.image_contents`.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from clusterctl.fleet.errors import EnvironmentBrokenError, UsageError
from clusterctl_lab.image_contents import EXCLUDED_PATHS, PACKAGES, RECIPE_VERSION, customise

CACHE = Path("/var/cache/clusterctl-lab")
COMPONENTS = {"debian": ("main",), "ubuntu": ("main", "universe")}
BUILD_SECONDS = 900
RELEASE_VARIABLES = ("CLUSTERCTL_LAB_RELEASE", "CLUSTERCTL_LAB_MIRROR", "CLUSTERCTL_LAB_KEYRING")
"""What `host_release` reads from the environment: the command and the lab's daemon need the same."""

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class HostRelease:
    """The release of the hosts: `debian`, `bookworm`.

    mirror   URL of its archive; empty: the machine's own apt sources
    keyring  file with the archive's keys; empty: the machine's own
    """

    distribution: str
    codename: str
    mirror: str = ""
    keyring: str = ""

    def sources(self) -> tuple[str, ...]:
        """Return the one-line apt sources."""
        if not self.mirror:
            return tuple(own_sources(self.distribution, self.codename))
        signed = f"[signed-by={self.keyring}] " if self.keyring else ""
        components = " ".join(COMPONENTS[self.distribution])
        pockets = ("", "-updates", "-security") if self.distribution == "ubuntu" else ("", "-updates")
        return tuple(f"deb {signed}{self.mirror} {self.codename}{pocket} {components}" for pocket in pockets)


def host_release() -> HostRelease:
    """Return the release that `CLUSTERCTL_LAB_RELEASE` names (`ubuntu/noble`), with its `CLUSTERCTL_LAB_MIRROR` and
    `CLUSTERCTL_LAB_KEYRING`; the machine's own where it is not set. Raises `UsageError` for anything else.
    """
    named, mirror, keyring = (os.environ.get(name, "") for name in RELEASE_VARIABLES)
    if not named:
        return HostRelease(*own_release())
    distribution, _, codename = named.partition("/")
    if distribution not in COMPONENTS or not codename.isalpha() or not mirror.startswith(("http://", "https://")):
        raise UsageError(
            f"{named!r} is no release of the lab's hosts, or has no mirror",
            where="CLUSTERCTL_LAB_RELEASE",
            remedy="set it like ubuntu/noble, and CLUSTERCTL_LAB_MIRROR to the URL of its archive; or unset both",
        )
    if keyring and not Path(keyring).is_file():
        raise UsageError(f"{keyring} is no file", where="CLUSTERCTL_LAB_KEYRING", remedy="name the archive's keyring")
    return HostRelease(distribution, codename, mirror, keyring)


def ensure_image(progress: Progress, *, cache: Path = CACHE) -> Path:
    """The root file system's folder, built first if this recipe's is not in `cache` yet (needs root, ~30 s).

    Two callers at once build it once; what a killed build left is removed by the next.
    Raises `EnvironmentBrokenError` where mmdebstrap is missing or fails, `UsageError` without root.
    """
    release = host_release()
    image = cache / f"rootfs-{_digest(release)}"
    if image.is_dir():
        return image
    _require_builder()
    cache.mkdir(mode=0o755, parents=True, exist_ok=True)
    with _lock(cache / "image.lock"):
        if not image.is_dir():
            _remove_unfinished(cache)
            _build(release, image, progress)
    return image


def _build(release: HostRelease, image: Path, progress: Progress) -> None:
    progress(f"building the hosts' root file system ({release.distribution} {release.codename}, once, about 30 s)")
    started = time.monotonic()
    unfinished = image.parent / f".building-{image.name}"
    try:
        _mmdebstrap(release, unfinished)
        customise(unfinished)
        unfinished.rename(image)
    finally:
        if unfinished.exists():
            shutil.rmtree(unfinished)
    megabytes = sum(path.lstat().st_blocks * 512 for path in image.rglob("*")) // 1_000_000
    progress(f"root file system ready: {megabytes} MB in {time.monotonic() - started:.0f} s, kept in {image}")


def _mmdebstrap(release: HostRelease, target: Path) -> None:
    """Run in its own mount namespace and killed with us, so that a killed build leaves files and nothing else."""
    apt_options = target.with_name(f"{target.name}.apt.conf")
    apt_options.touch(mode=0o600)  # a proxy's address may carry a password
    apt_options.write_text(network_options())
    sources = "\n".join(release.sources())
    argv = [
        *("setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--propagation", "private"),
        *("mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", f"--include={','.join(PACKAGES)}"),
        *(f"--dpkgopt=path-exclude={path}" for path in EXCLUDED_PATHS),
        *(f"--aptopt={apt_options}", release.codename, str(target), "-"),
    ]
    try:
        result = subprocess.run(
            argv,
            input=sources.encode(),
            capture_output=True,
            timeout=BUILD_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise EnvironmentBrokenError(
            f"mmdebstrap did not finish within {BUILD_SECONDS} s",
            remedy="Check that `apt-get update` works on this machine, then try again.",
        ) from error
    finally:
        apt_options.unlink()
    if result.returncode != 0:
        lines = result.stderr.decode(errors="replace").strip().splitlines()
        raise EnvironmentBrokenError(
            f"mmdebstrap failed: {' | '.join(lines[-3:])}",
            remedy="Check that `apt-get update` and `apt-get install` work on this machine, then try again.",
        )


def own_release() -> tuple[str, str]:
    """Distribution and codename of the machine: (`debian`, `bookworm`)."""
    facts = platform.freedesktop_os_release()
    distribution, codename = facts.get("ID", ""), facts.get("VERSION_CODENAME", "")
    if distribution not in COMPONENTS or not codename:
        raise EnvironmentBrokenError(
            f"the lab's hosts are built from Debian or Ubuntu, this machine runs {facts.get('PRETTY_NAME', 'neither')}",
            remedy="Run the lab on Debian 12 or newer, or Ubuntu 22.04 or newer.",
        )
    return distribution, codename


def own_sources(distribution: str, codename: str, more: tuple[str, ...] = ()) -> Iterator[str]:
    """The machine's apt sources for its own release, as one-line entries; third parties' are left out. `more`: further
    components of the same archives, whether the machine uses them or not.
    """
    fields = "$(REPO_URI)|$(RELEASE)|$(CODENAME)|$(COMPONENT)|$(ORIGIN)"
    listing = _output("apt-get", "indextargets", "--format", fields, "Created-By: Packages")
    releases = {codename, f"{codename}-updates", f"{codename}-security"}
    found = False
    for line in listing.splitlines():
        uri, release, named, component, origin = line.split("|")
        own = origin.lower() == distribution or origin.startswith("$(")
        if own and component in COMPONENTS[distribution] and releases & {release, named}:
            found = True
            yield f"deb {uri} {release} {component}"
            yield from (f"deb {uri} {release} {name}" for name in more)
    if not found:
        raise EnvironmentBrokenError(
            f"apt on this machine has no source for {distribution} {codename}",
            where="/etc/apt/sources.list.d",
            remedy="Add the distribution's own archive to apt's sources and run `apt-get update`.",
        )


def network_options() -> str:
    """How the machine's apt reaches its mirrors (proxies, time-outs): the same way for the build, not in the image."""
    wanted = ("Acquire::http", "Acquire::https", "Acquire::Check-", "Acquire::Retries")
    lines = _output("apt-config", "dump").splitlines()
    return "".join(f"{line}\n" for line in lines if line.startswith(wanted))


def _output(*argv: str) -> str:
    result = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    if result.returncode != 0:
        raise EnvironmentBrokenError(
            f"`{argv[0]} {argv[1]}` failed: {result.stderr.strip()[-300:]}", remedy="Repair apt on this machine."
        )
    return result.stdout


def _digest(release: HostRelease) -> str:
    origin = [release.distribution, release.codename, *filter(None, (release.mirror,))]
    recipe = [str(RECIPE_VERSION), *origin, platform.machine(), *PACKAGES, *EXCLUDED_PATHS]
    return hashlib.sha256("\n".join(recipe).encode()).hexdigest()[:12]


def _require_builder() -> None:
    if os.geteuid() != 0:
        raise UsageError("building the lab's root file system needs root", remedy="Run the command through sudo.")
    if shutil.which("mmdebstrap") is None:
        raise EnvironmentBrokenError("mmdebstrap is missing", remedy="Install it: apt-get install mmdebstrap.")


def _remove_unfinished(cache: Path) -> None:
    for leftover in cache.glob(".building-*"):
        if leftover.is_dir():
            shutil.rmtree(leftover)
        else:
            leftover.unlink()


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield

"""The distribution's packages that a lab host lacks, with all their dependencies: apt itself resolves them.

apt on this machine uses the image's package status instead of the machine's, with separate folders for package lists
and archives. Nothing on the machine changes; its sources, proxies and archive keys are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from clusterctl_lab.emulators.apt.tools import run


def _listed(file: str) -> tuple[str, ...]:
    lines = Path(__file__).with_name(file).read_text(encoding="ascii").splitlines()
    return tuple(name for line in lines if (name := line.partition("#")[0].strip()))


HOST_PACKAGES = _listed("host_packages.txt")
"""What the roles install from the distribution, and what Ansible's apt module needs."""
METAL_PACKAGES = _listed("metal_packages.txt")
"""Packages that the roles install in addition on machines with a kernel of their own."""


def installed(image: Path) -> frozenset[str]:
    """Names of the packages that are installed in `image`."""
    listing = run("dpkg-query", "--root", str(image), "--show", "--showformat", "${db:Status-Status} ${Package}\n")
    return frozenset(line.split()[1] for line in listing.splitlines() if line.startswith("installed "))


def download(image: Path, packages: Sequence[str], into: Path, scratch: Path, *, sources: Sequence[str] = ()) -> None:
    """Fetch the `.deb`s of those `packages` that `image` lacks, and of their dependencies, into the folder `into`.
    `sources` are one-line apt entries; the machine's own sources are the default.
    """
    missing = sorted(set(packages) - installed(image))
    if not missing:
        return
    for folder in (scratch / "lists/partial", scratch / "archives/partial"):
        folder.mkdir(mode=0o755, parents=True)
    options: tuple[str, ...] = (
        f"Dir::State::status={image / 'var/lib/dpkg/status'}",
        f"Dir::State::lists={scratch / 'lists'}",
        f"Dir::State::extended_states={scratch / 'extended_states'}",
        f"Dir::Cache::archives={scratch / 'archives'}",
        f"Dir::Cache::pkgcache={scratch / 'pkgcache.bin'}",
        f"Dir::Cache::srcpkgcache={scratch / 'srcpkgcache.bin'}",
        "APT::Sandbox::User=root",  # the folders are ours, not _apt's
        "APT::Update::Post-Invoke::=",
        "Acquire::Languages=none",
        "Acquire::Retries=3",
        "Debug::NoLocking=true",
    )
    if sources:
        (scratch / "sources.list").write_text("\n".join((*sources, "")), encoding="ascii")
        options += (f"Dir::Etc::sourcelist={scratch / 'sources.list'}", "Dir::Etc::sourceparts=/dev/null")
    flags = [part for option in options for part in ("-o", option)]
    run("apt-get", *flags, "--quiet", "update")
    run("apt-get", *flags, "--quiet", "--yes", "--no-install-recommends", "--download-only", "install", *missing)
    for archive in (scratch / "archives").glob("*.deb"):
        archive.rename(into / archive.name)

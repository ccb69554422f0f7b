"""Which of the distribution's packages a lab host still lacks, with all that they depend on: apt itself decides.

apt on this machine is shown the image's package status instead of the machine's, with package lists and archives in
folders of their own: nothing of the machine changes, and its sources, proxies and archive keys are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from clusterctl.lab.faces.apt.tools import run

HOST_PACKAGES = tuple(
    name
    for line in Path(__file__).with_name("host_packages.txt").read_text(encoding="ascii").splitlines()
    if (name := line.partition("#")[0].strip())
)
"""What the roles install from the distribution, and what Ansible's apt module needs."""


def installed(image: Path) -> frozenset[str]:
    """Names of the packages that are installed in `image`."""
    listing = run("dpkg-query", "--root", str(image), "--show", "--showformat", "${db:Status-Status} ${Package}\n")
    return frozenset(line.split()[1] for line in listing.splitlines() if line.startswith("installed "))


def download(image: Path, packages: Sequence[str], into: Path, scratch: Path) -> None:
    """Fetch the `.deb`s of those `packages` that `image` lacks, and of their dependencies, into the folder `into`."""
    missing = sorted(set(packages) - installed(image))
    if not missing:
        return
    for folder in (scratch / "lists/partial", scratch / "archives/partial"):
        folder.mkdir(mode=0o755, parents=True)
    options = (
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
    flags = [part for option in options for part in ("-o", option)]
    run("apt-get", *flags, "--quiet", "update")
    run("apt-get", *flags, "--quiet", "--yes", "--no-install-recommends", "--download-only", "install", *missing)
    for archive in (scratch / "archives").glob("*.deb"):
        archive.rename(into / archive.name)

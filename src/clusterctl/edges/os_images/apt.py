"""Where this machine's apt gets its packages, so that an image is built from the same places."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator

from clusterctl.edges.os_images.recipe import SUITES, Recipe
from clusterctl.edges.processes import Surroundings, run
from clusterctl.fleet.errors import EnvironmentBrokenError, UsageError
from clusterctl.ports import Deadline

_COMPONENTS = {
    "debian": ("main", "contrib", "non-free", "non-free-firmware"),
    "ubuntu": ("main", "restricted", "universe", "multiverse"),
}
_MIRROR_COMPONENTS = {"debian": "main", "ubuntu": "main restricted universe"}
_INDEX_FIELDS = "$(REPO_URI)|$(RELEASE)|$(CODENAME)|$(COMPONENT)|$(ORIGIN)"


def own_suite() -> str:
    """Return the codename of this machine's release. Raise `EnvironmentBrokenError` for one without a recipe."""
    facts = platform.freedesktop_os_release()
    suite = facts.get("VERSION_CODENAME", "")
    if suite not in SUITES:
        raise EnvironmentBrokenError(
            f"images are built from Debian or Ubuntu, this machine runs {facts.get('PRETTY_NAME', 'neither')}",
            remedy="name a suite and its mirror: clusterctl image build --suite bookworm --mirror URL.",
        )
    return suite


def sources(recipe: Recipe) -> tuple[str, ...]:
    """Return one-line entries of apt: the recipe's mirror, else the machine's own sources of the same suite."""
    if recipe.mirror:
        return tuple(_of_mirror(recipe))
    found = tuple(_of_machine(recipe))
    if not found:
        raise UsageError(
            f"apt on this machine has no source for {recipe.os} ({recipe.suite})",
            where="/etc/apt/sources.list.d",
            remedy="name one with --mirror URL, or add the distribution's archive to apt's sources",
        )
    return found


def bare(source: str) -> str:
    """Return a source line without the user and password that its address may carry, and without the keyring's path."""
    return re.sub(r"\[signed-by=[^]]*\] ", "", re.sub(r"://[^/@\s]*@", "://", source))


def network_options() -> str:
    """Return the machine's options of apt for its mirrors (proxies, time-outs). May hold a password."""
    wanted = ("Acquire::http", "Acquire::https", "Acquire::Check-", "Acquire::Retries")
    lines = _output("apt-config", "dump").splitlines()
    return "".join(f"{line}\n" for line in lines if line.startswith(wanted))


def _of_mirror(recipe: Recipe) -> Iterator[str]:
    trust = f"[signed-by={recipe.keyring}] " if recipe.keyring else ""
    components = _MIRROR_COMPONENTS[recipe.distribution]
    suites = [recipe.suite, f"{recipe.suite}-updates"]
    if recipe.distribution == "ubuntu":
        suites.append(f"{recipe.suite}-security")
    for suite in suites:
        yield f"deb {trust}{recipe.mirror} {suite} {components}"


def _of_machine(recipe: Recipe) -> Iterator[str]:
    suites = {recipe.suite, f"{recipe.suite}-updates", f"{recipe.suite}-security"}
    listing = _output("apt-get", "indextargets", "--format", _INDEX_FIELDS, "Created-By: Packages")
    for line in listing.splitlines():
        uri, release, named, component, origin = line.split("|")
        own = origin.lower() == recipe.distribution or origin.startswith("$(")
        if own and component in _COMPONENTS[recipe.distribution] and suites & {release, named}:
            yield f"deb {uri} {release} {component}"


def _output(*argv: str) -> str:
    result = run(argv, Deadline.after(60), Surroundings(missing="build images on Debian or Ubuntu"))
    if result.exit_status != 0:
        raise EnvironmentBrokenError(
            f"`{argv[0]} {argv[1]}` failed: {result.stderr.strip()[-300:]}", remedy="Repair apt on this machine."
        )
    return result.stdout

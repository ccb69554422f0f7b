"""mmdebstrap: packages of a release put into a folder, as installed or merely unpacked."""

from __future__ import annotations

import enum
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from clusterctl.edges.os_images.apt import network_options, sources
from clusterctl.edges.os_images.recipe import Recipe
from clusterctl.edges.processes import Surroundings, run
from clusterctl.fleet.errors import EnvironmentBrokenError, UnreachableError, UsageError
from clusterctl.ports import Deadline

BUILD_SECONDS = 1800
TOOLS = {"mmdebstrap": "mmdebstrap", "zstd": "zstd", "setpriv": "util-linux", "tar": "tar"}
"""Tool → Debian package."""

_LEFT_OUT = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*")
_KEPT = ("/usr/share/doc/*/copyright",)


class Variant(enum.Enum):
    """INSTALLED ran the packages' scripts and can boot; UNPACKED is only files, and quick."""

    INSTALLED = "minbase"
    UNPACKED = "extract"


def require_tools() -> None:
    """Raise `UsageError` without root, `EnvironmentBrokenError` where a tool is missing."""
    if os.geteuid() != 0:
        raise UsageError("building an image needs root", remedy="Run the command through sudo.")
    missing = [package for tool, package in TOOLS.items() if shutil.which(tool) is None]
    if missing:
        remedy = f"Install it: apt-get install {' '.join(missing)}."
        raise EnvironmentBrokenError(f"missing to build images: {', '.join(missing)}", remedy=remedy)


def bootstrap(
    recipe: Recipe,
    packages: Sequence[str],
    variant: Variant,
    target: Path,
    *,
    seed: Path | None = None,
    left_out: Sequence[str] = (),
) -> None:
    """Fill `target`, which must not exist.

    `seed`      files laid in before the packages are installed
    `left_out`  patterns of paths that are not unpacked

    Runs in its own mount namespace and is killed with us: what a killed build leaves is files and nothing else.
    Raises `EnvironmentBrokenError`.
    """
    options = target.with_name(f"{target.name}.apt.conf")
    options.touch(mode=0o600)  # a proxy's address may carry a password
    options.write_text(network_options())
    argv = [
        *("unshare", "--mount", "--propagation", "private"),
        *("mmdebstrap", "--quiet", "--mode=root", "--architectures=amd64"),
        *(f"--variant={variant.value}", f"--include={','.join(packages)}"),
        *(f"--dpkgopt=path-exclude={path}" for path in (*_LEFT_OUT, *left_out)),
        *(f"--dpkgopt=path-include={path}" for path in _KEPT),
        *((f"--essential-hook=sync-in {seed} /",) if seed else ()),
        *(f"--aptopt={options}", recipe.suite, str(target), "-"),
    ]
    try:
        _run_mmdebstrap(argv, sources(recipe))
    finally:
        options.unlink()


def _run_mmdebstrap(argv: Sequence[str], package_sources: Sequence[str]) -> None:
    surroundings = Surroundings(
        missing="apt-get install util-linux",
        inherited=("http_proxy", "https_proxy", "no_proxy"),
        stdin="\n".join(package_sources).encode(),
    )
    try:
        result = run(argv, Deadline.after(BUILD_SECONDS), surroundings)
    except UnreachableError as error:
        raise EnvironmentBrokenError(
            f"mmdebstrap did not finish within {BUILD_SECONDS} s",
            remedy="Check that `apt-get update` works on this machine, then try again.",
        ) from error
    if result.exit_status != 0:
        lines = [line for line in result.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("E:")] or lines
        raise EnvironmentBrokenError(
            f"mmdebstrap failed: {' | '.join(errors[-3:])}",
            remedy="Check that this machine's apt can install these packages of this suite, then try again.",
        )

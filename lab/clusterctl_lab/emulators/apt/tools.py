"""Runs the packaging tools of the distribution."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from clusterctl.fleet.errors import EnvironmentBrokenError

SECONDS = 300
_PACKAGE_OF = {
    "apt-ftparchive": "apt-utils",
    "apt-get": "apt",
    "dpkg-deb": "dpkg",
    "dpkg-query": "dpkg",
    "gpg": "gnupg",
    "gpgconf": "gnupg",
}


def run(*argv: str, cwd: Path | None = None, environment: Mapping[str, str] | None = None) -> str:
    """Return the tool's output; raise `EnvironmentBrokenError` with its last lines when it is missing, fails or takes
    too long.
    """
    try:
        result = subprocess.run(
            argv,
            cwd=cwd,
            env=None if environment is None else dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except FileNotFoundError as error:
        raise EnvironmentBrokenError(
            f"{argv[0]} is missing", remedy=f"Install it: apt-get install {_PACKAGE_OF.get(argv[0], argv[0])}."
        ) from error
    except subprocess.TimeoutExpired as error:
        raise EnvironmentBrokenError(
            f"{argv[0]} did not finish within {SECONDS} s", remedy="Check that `apt-get update` works on this machine."
        ) from error
    if result.returncode != 0:
        last = " | ".join((result.stderr.strip() or result.stdout.strip()).splitlines()[-3:])
        raise EnvironmentBrokenError(
            f"{argv[0]} failed: {last}",
            remedy="Check that `apt-get update` and `apt-get install` work on this machine.",
        )
    return result.stdout

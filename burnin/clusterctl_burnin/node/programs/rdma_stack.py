"""Runs on a node, as the built-in probe `rdma-stack`: which OFED is installed, which mlx5_core runs, which rdma-core.

Standard library only, Python 3.9. `ofed_info` comes with NVIDIA's OFED only. The kernel's own mlx5_core has no version
since Linux 5.17; its source version (`srcversion`) shows whether the next boot loads the module that runs now.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, Callable, Optional

from clusterctl_burnin.node.processes import NOT_FOUND, Result
from clusterctl_burnin.node.processes import ask as ask_tool

MODULE = Path("/sys/module/mlx5_core")
SECONDS = 10.0
PACKAGES = ("ibverbs-providers", "libibverbs", "rdma-core")  # of Debian and Ubuntu, and of others
Ask = Callable[..., Result]


def text(path: Path) -> Optional[str]:
    """Return what the file holds; None where there is none."""
    try:
        return path.read_text().strip()
    except OSError:
        return None


def installed(field: str, ask: Ask) -> Optional[str]:
    """Return a field of the module that the next boot loads; None where modinfo does not know the module."""
    code, output, _ = ask("modinfo", "-F", field, "mlx5_core", seconds=SECONDS)
    return output.strip() or None if code == 0 else None


def packages(ask: Ask) -> dict[str, str]:
    """Return the versions of the RDMA libraries, by package; empty where no package manager is known."""
    code, output, _ = ask("dpkg-query", "-W", "-f", "${Package} ${Version}\\n", *PACKAGES, seconds=SECONDS)
    if code == NOT_FOUND:
        _, output, _ = ask("rpm", "-q", "--qf", "%{NAME} %{VERSION}-%{RELEASE}\\n", *PACKAGES, seconds=SECONDS)
    pairs = (line.split(" ") for line in output.splitlines())
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2 and pair[0] in PACKAGES and pair[1]}


def main(requirements: dict[str, Any], module: Path = MODULE, ask: Ask = ask_tool) -> int:
    """Print `{"wanted", "ofed", "module", "packages"}`: `ofed` null without ofed_info, `module` null if not loaded."""
    code, output, stderr = ask("ofed_info", "-s", seconds=SECONDS)
    if code not in (0, NOT_FOUND):
        sys.stderr.write(stderr or f"ofed_info -s ended with exit code {code}\n")
        return 1
    loaded = {"version": text(module / "version"), "source": text(module / "srcversion")}
    document = {
        "wanted": requirements.get("ofed") or "",
        "ofed": output.strip() if code == 0 else None,
        "module": {**loaded, "next_source": installed("srcversion", ask)} if module.is_dir() else None,
        "packages": packages(ask),
    }
    json.dump(document, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main(json.loads(os.environ.get("CLUSTERCTL_REQUIREMENTS", "{}"))))

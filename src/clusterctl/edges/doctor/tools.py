"""Programs of the system that runs call: ssh (by Ansible), and what reads the fabric."""

from __future__ import annotations

import shutil
from collections.abc import Mapping

from clusterctl.edges.site import Site
from clusterctl.fleet.diagnosis import Diagnosis, broken, ok

NAME = "tools"
PACKAGES = {
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "ibnetdiscover": "infiniband-diags",
    "sminfo": "infiniband-diags",
    "sudo": "sudo",
}
"""Program → the Debian package that has it."""


def check(site: Site | None) -> Diagnosis:
    return judge({name: shutil.which(name) for name in needed(site)})


def needed(site: Site | None) -> tuple[str, ...]:
    """Ssh always; the fabric's readers as the site names them."""
    if site is None:
        return ("ssh", "ssh-keygen")
    fabric = site.settings.fabric
    readers = [argv[0] for argv in (fabric.ibnetdiscover, fabric.sminfo) if argv]
    return tuple(dict.fromkeys(["ssh", *readers]))


def judge(found: Mapping[str, str | None]) -> Diagnosis:
    """`found`: program → its path, None where there is none."""
    missing = [name for name, path in found.items() if path is None]
    if not missing:
        return ok(NAME, ", ".join(found))
    packages = sorted({PACKAGES[name] for name in missing if name in PACKAGES})
    remedy = f"apt-get install {' '.join(packages)}" if packages else "correct fabric.ibnetdiscover or fabric.sminfo"
    return broken(NAME, f"not found: {', '.join(missing)}", remedy)

"""Every secret that the site names can be read by us and by nobody else; and what we write stays private too."""

from __future__ import annotations

import re
import stat
from pathlib import Path

from clusterctl.edges.site import Site
from clusterctl.edges.site.contents import check_secrets
from clusterctl.fleet.diagnosis import Diagnosis, broken, not_measured, ok, warn
from clusterctl.fleet.errors import ClusterctlError

OTHERS_WRITE = 0o002
_UMASK = re.compile(r"^Umask:\s*([0-7]+)$", re.MULTILINE)


def check(site: Site) -> Diagnosis:
    """Reads each once; says only whether it could be read."""
    name = "secrets"
    try:
        check_secrets(site)
        site.journal_url()
    except ClusterctlError as error:
        return broken(name, f"{error.where}: {error.message}", error.remedy)
    folder = site.folder / "secrets"
    if folder.is_dir() and stat.S_IMODE(folder.stat().st_mode) & stat.S_IRWXO:
        return warn(name, f"{folder} is open to others", f"chmod 700 {folder}")
    return ok(name, "all that the site names can be read, and only by you")


def check_umask() -> Diagnosis:
    """Read, not set: umask(2) can only be read by changing it."""
    match = _UMASK.search(Path("/proc/self/status").read_text(encoding="utf-8"))
    return judge_umask(int(match[1], 8) if match else None)


def judge_umask(mask: int | None) -> Diagnosis:
    if mask is None:
        return not_measured("umask", "/proc/self/status does not tell it")
    if not mask & OTHERS_WRITE:
        return warn("umask", f"{mask:04o}: others may write what you create", "umask 022, or 077")
    return ok("umask", f"{mask:04o}")

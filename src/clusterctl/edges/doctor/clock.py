"""The controller's clock against MAAS's and the BMCs', and whether anything keeps it right."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from statistics import median

from clusterctl.edges.doctor.patient import Answer
from clusterctl.fleet.diagnosis import Diagnosis, broken, enumerated, not_measured, ok, warn

NAME = "clock"
MAAS_LIMIT_S = 240
"""MAAS refuses signatures (OAuth 1.0, RFC 5849, 3.3) whose time is five minutes off; one minute is kept in reserve."""
BMC_LIMIT_S = 60
SECONDS = 3.0


def check(names: Mapping[str, str], maas: Answer, bmcs: Mapping[str, Answer]) -> Diagnosis:
    told = {names[host]: answer.offset_s for host, answer in bmcs.items() if answer.offset_s is not None}
    return judge(maas.offset_s, told, kept=_is_kept())


def judge(maas: float | None, bmcs: Mapping[str, float], *, kept: bool | None) -> Diagnosis:
    """Offsets in seconds, positive where the other clock is before ours; `kept`: a time service is in step, or None."""
    if maas is not None and abs(maas) > MAAS_LIMIT_S:
        return broken(NAME, f"MAAS's clock differs by {maas:+.0f} s: it will refuse our key", _REMEDY)
    if maas is None and not bmcs:
        found = {True: "a time service keeps it", False: "no time service keeps it", None: "nothing tells its error"}
        return ok(NAME, found[kept]) if kept else not_measured(NAME, found[kept], _REMEDY)
    off = {name: offset for name, offset in bmcs.items() if abs(offset) > BMC_LIMIT_S}
    if off and len(off) > len(bmcs) / 2:
        return warn(NAME, f"differs from the BMCs' by {median(bmcs.values()):+.0f} s (median of {len(bmcs)})", _REMEDY)
    if off:
        message = f"{len(off)} BMCs' clocks are more than {BMC_LIMIT_S} s off: {enumerated(sorted(off))}"
        return warn(NAME, message, "set NTP on those BMCs: their event logs are dated by these clocks")
    others = " and ".join(([f"{len(bmcs)} BMCs"] if bmcs else []) + (["MAAS"] if maas is not None else []))
    worst = max(abs(offset) for offset in [*bmcs.values(), *([] if maas is None else [maas])])
    doubt = "; no time service keeps it" if kept is False else ""
    return ok(NAME, f"within {worst:.0f} s of {others}{doubt}")


_REMEDY = "set up a time service: apt-get install chrony"


def _is_kept() -> bool | None:
    """What systemd knows of NTP (timedatectl(1)); None where there is no systemd to ask."""
    program = shutil.which("timedatectl")
    if program is None:
        return None
    argv = [program, "show", "--property=NTPSynchronized", "--value"]
    try:
        ran = subprocess.run(
            argv, capture_output=True, text=True, check=False, timeout=SECONDS, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return {"yes": True, "no": False}.get(ran.stdout.strip()) if ran.returncode == 0 else None

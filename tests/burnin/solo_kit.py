"""Real output of fio and stress-ng, as the node's programs hand it on, and what the loads make of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from clusterctl.fleet.finding import Finding, Origin
from clusterctl_burnin.node.programs import nvme_read
from clusterctl_burnin.probe import ProbeResult, Readings, Status
from clusterctl_burnin.registry import NODE_LOADS
from tests.burnin.kit import LIMITS, START, expected

RECORDED = Path(__file__).parent / "data" / "solo"
Document = dict[str, Any]


def fio(name: str) -> nvme_read.Result:
    """What a recorded run of fio printed; its exit code is that of its first job's error."""
    out, err = RECORDED / f"{name}.txt", RECORDED / f"{name}.stderr.txt"
    code = 0 if name == "fio_read" else 2
    return code, out.read_text(), err.read_text() if err.exists() else ""


def drives(**message: nvme_read.Result) -> Document:
    """The document of `nvme-read` for drives by their names."""
    reported = [
        nvme_read.entry(name, {"serial": f"S-{name}", "model": "M"}, f"/dev/{name}", answer)
        for name, answer in message.items()
    ]
    return {"drives": reported, "system": []}


def package(number: int, recorded: str = "stress_ng_well", code: int | None = 0) -> Document:
    """One package of `cpu-memory-load` as stress-ng was recorded."""
    message, metrics = ((RECORDED / f"{recorded}.{kind}").read_text() for kind in ("txt", "yaml"))
    head = {"package": number, "cpus": 2, "bytes": 2**30, "code": code}
    return {**head, "output": message.strip(), "metrics": metrics.strip()}


def counted(corrected: int = 0, uncorrected: int = 0, throttled: int = 0, machine_checks: int = 0) -> Document:
    """Counters of one module and two packages; only the second package's are reported."""
    module = {"name": "A3", "location": "channel 1 slot 0", "corrected": corrected, "uncorrected": uncorrected}
    still = {"package": 0, "throttled": 5, "machine_checks": 0}
    other = {"package": 1, "throttled": 5 + throttled, "machine_checks": machine_checks}
    return {"modules": [module], "packages": [still, other]}


def loaded(*packages: Document, after: Document | None = None) -> Document:
    return {"seconds": 60.0, "before": counted(), "after": after or counted(), "packages": list(packages)}


def readings(load: str, document: Document | str, rc: int = 0, stderr: str = "") -> Readings:
    text = document if isinstance(document, str) else json.dumps(document)
    (probe,) = NODE_LOADS[load].probes(LIMITS, None)
    result = ProbeResult(probe.name, probe.argv, Status.OK, rc, text, stderr, START, 60.0)
    return Readings("node001", "boot-1", Origin.REAL, START, START, {probe.name: result})


def findings(load: str, document: Document | str, rc: int = 0, stderr: str = "", **changes: object) -> list[Finding]:
    check = NODE_LOADS[load].check(LIMITS)
    return list(check.findings(readings(load, document, rc, stderr), expected(**changes)))

"""What `clusterctl report --format html` costs over a fleet, whole process, and how large the page is.

    python -m benchmarks.fleet_report [--nodes 4096] [--keep FILE]

A journal is made of nodes with thirty findings each: one in twenty-five is in quarantine with three findings, their raw
output among the evidence; in each group of eight every node measured its next three partners on eight rails, one in
forty of those slowly.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from clusterctl.fleet.codec import inventory_to_data, report_to_data
from clusterctl.fleet.event import Kind, NewEvent
from clusterctl.fleet.finding import Digest, Evidence, Finding, Origin, Report, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.node import Gpu, Inventory, Serial
from clusterctl.fleet.quantity import Quantity, at_least, at_most
from clusterctl.operations.context import SiteContext, open_site
from clusterctl_burnin.limits.reading import shipped_limits
from clusterctl_burnin.registry import CHECKS
from tests.events import new_event

GROUP = 8
RAILS = 8
FLOOR = 380.0
LIMITS = shipped_limits("h100-sxm-ndr400")
AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SKU = "dell-xe9680-h100"
_TABLE = """---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 8388608    20000            {0:.2f}            {0:.2f}		   0.005900
---------------------------------------------------------------------------------------
"""


def name_of(number: int) -> str:
    return f"node{number + 1:04d}"


def address_of(number: int) -> str:
    return f"10.1.{number // 250}.{number % 250 + 1}"


def pair_evidence(number: int, chance: random.Random, *, slow: bool) -> Iterator[tuple[Evidence, float]]:
    """What this node measured with its partners as their client."""
    base = number - number % GROUP
    for partner in range(1, 4):
        other = base + (number - base + partner) % GROUP
        for rail in range(RAILS):
            speed = 212.0 if slow and rail == 3 else chance.gauss(394, 1.2)
            command = f"ib_write_bw -d mlx5_{rail} -p {18515 + rail} -s 8388608 -n 20000 -F --report_gbits"
            content = f"[ok, exit code 0, 12.5 s]\n{_TABLE.format(speed)}".encode()
            yield Evidence(f"{command} {address_of(other)}", name_of(number), AT, Origin.REAL, content), speed


def _inventory(number: int) -> Inventory:
    gpus = tuple(
        Gpu(f"Video.Slot.{21 + at}-1", "NVIDIA H100 80GB HBM3", Serial(f"16530{number:05d}{at:02d}")) for at in range(8)
    )
    return Inventory("Dell Inc.", "PowerEdge XE9680", Serial(f"SN{number:05d}"), gpus=gpus)


def _bad(number: int, kind: int, log: Evidence, smi: Evidence) -> list[Finding]:
    serial = f"16530{number:05d}03"
    ecc = Finding(
        check="gpu_ecc",
        verdict=Verdict.FAIL,
        code=Code.GPU_ECC_UNCORRECTABLE,
        subject="gpu 3",
        cause="2 uncorrectable memory errors since the driver was loaded",
        measured=Quantity(2, "errors"),
        expected=at_most(0, "errors"),
        remedy="drain the node, reset the GPU; if the errors come back, replace it",
        evidence=(smi.digest,),
        limits=LIMITS.digest,
        serial=serial,
    )
    cause = "Xid 79: GPU has fallen off the bus, at PCI:0000:9b:00"
    remedy = "power the node off and on; if the GPU falls off the bus again, replace it"
    xid = Finding(
        check="kernel_log",
        verdict=Verdict.FAIL,
        code=Code.XID_OFF_THE_BUS,
        subject="gpu 3",
        cause=cause,
        measured="Xid 79",
        remedy=remedy,
        evidence=(log.digest,),
        limits=LIMITS.digest,
        serial=serial,
    )
    return [ecc, xid] if kind else [ecc]


def _evidence(number: int) -> tuple[Evidence, Evidence]:
    head = b"[ok, exit code 0, 0.4 s]\n"
    lines = [f"[ {at}.000001] mlx5_core 0000:{at % 90 + 10}:00.0: Port module event\n" for at in range(60)]
    lines.insert(40, "[ 40.5] NVRM: Xid (PCI:0000:9b:00): 79, pid='<unknown>', GPU has fallen off the bus.\n")
    smi = [f"    Product Name {at}                          : NVIDIA H100 80GB HBM3\n" for at in range(120)]
    smi.insert(70, f"    Serial Number                         : 16530{number:05d}03\n")
    where = name_of(number)
    return (
        Evidence("dmesg --time-format iso", where, AT, Origin.REAL, head + "".join(lines).encode()),
        Evidence("nvidia-smi -q", where, AT, Origin.REAL, head + "".join(smi).encode()),
    )


def _findings(chance: random.Random, slowest: float, pairs: Sequence[Digest]) -> list[Finding]:
    rests_on = (Digest("0" * 64),)
    passes = [
        replace(passed(check, "all is as it should be"), limits=LIMITS.digest, evidence=rests_on)
        for check in sorted(CHECKS)
        if check not in ("cpu_frequency", "clock_offset")
    ]
    clock, offset, sums = chance.gauss(3050, 25), abs(chance.gauss(0, 0.0006)), chance.gauss(481, 1.5)
    passes += [
        passed("cpu_frequency", "", measured=Quantity(clock, "MHz"), expected=at_least(2500, "MHz")),
        passed("clock_offset", "", measured=Quantity(offset, "s"), expected=at_most(0.1, "s")),
        passed("all_reduce", "", measured=Quantity(sums, "GB/s"), expected=at_least(460, "GB/s")),
    ]
    fails = slowest < FLOOR
    load = Finding(
        check="ib_write_bw",
        verdict=Verdict.FAIL if fails else Verdict.PASS,
        code=Code.LOAD_SLOW,
        subject="mlx5_3" if fails else "node",
        cause="ib_write_bw goes wrong with this node, whichever partner it has" if fails else "fast enough",
        measured=Quantity(slowest, "Gb/s"),
        expected=at_least(FLOOR, "Gb/s"),
        remedy=(
            "look at the adapter's PCIe link, cable and error counters; reseat the cable, then the adapter"
            if fails
            else ""
        ),
        limits=LIMITS.digest,
        evidence=tuple(pairs),
    )
    return [*passes, load]


def fill(context: SiteContext, count: int) -> None:
    """The journal of a fleet after its burn-in; the same for the same `count`."""
    chance = random.Random(count)
    for number in range(count):
        bad, slow = number % 25 == 7, number % 40 == 11
        log, smi = _evidence(number)
        pairs = list(pair_evidence(number, chance, slow=slow))
        findings = _findings(chance, min(speed for _, speed in pairs), [item.digest for item, _ in pairs])
        if bad:
            findings += _bad(number, number // 25 % 2, log, smi)
        report = Report("burnin", "bootstrap", tuple(findings), frozenset({Origin.REAL}))
        whole = count <= 64 or slow
        context.journal.store([*((log, smi) if bad else ()), *((item for item, _ in pairs) if whole else ())])
        context.journal.append(list(_events(number, report)))


def _events(number: int, report: Report) -> Iterator[NewEvent]:
    node = f"id{number:05d}"
    place = {"rack": f"R{number // 16 + 1:02d}", "unit": 2 + number % 16 * 2}
    described = {"name": name_of(number), "bmc": f"10.0.{number // 250}.{number % 250 + 1}", "serial": None, **place}
    yield new_event("node", node, Kind.NODE_DESCRIBED, described)
    known = {"inventory": inventory_to_data(_inventory(number)), "sku": SKU, "root_disk": f"D{number}"}
    yield new_event("node", node, Kind.NODE_IDENTIFIED, known)
    yield new_event("node", node, Kind.NODE_ADDRESSED, {"address": address_of(number)})
    for stage in ("discovered", "installed", "configured", "cabled"):
        yield new_event("node", node, Kind.STAGE_ADVANCED, {"to": stage, "verdict": "pass"})
    yield new_event("node", node, Kind.REPORT_RECORDED, {"report": report_to_data(report)})
    roots = report.roots()
    if not roots:
        yield new_event("node", node, Kind.STAGE_ADVANCED, {"to": "burned-in", "verdict": "pass"})
        yield new_event("node", node, Kind.STAGE_ADVANCED, {"to": "gold", "verdict": "pass"})
        return
    first = roots[0]
    subject = {"check": first.check, "subject": first.subject, "serial": first.serial}
    stop = {"step": "burnin", "cause": first.cause, "remedy": first.remedy, "verdict": "fail", **subject}
    yield new_event("node", node, Kind.NODE_QUARANTINED, stop)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=4096)
    parser.add_argument("--keep", type=Path, help="Leave the page there.")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder) / "site"
        command = [sys.executable, "-m", "clusterctl_cli.main"]
        subprocess.run([*command, "init", str(site)], check=True, stdout=subprocess.DEVNULL)
        fill(open_site(site), arguments.nodes)
        page = arguments.keep or Path(folder) / "page.html"
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        begin = time.monotonic()
        argv = [*command, "report", "--format", "html", "--output", str(page), "--force", "--site", str(site)]
        ran = subprocess.run(argv, check=True)
        wall = time.monotonic() - begin
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
        print(f"{os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f}")
        print(
            f"{arguments.nodes} nodes: {wall:.1f} s wall, {cpu:.1f} s CPU, {used.ru_maxrss / 1024:.0f} MiB, "
            f"page {page.stat().st_size / 1e6:.2f} MB, exit {ran.returncode}"
        )


if __name__ == "__main__":
    main()

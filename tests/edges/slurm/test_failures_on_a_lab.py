"""Thirteen kinds of failure of a training with PyTorch on eight lab hosts with a real Slurm, followed by `clusterctl job run --watch`.

Each host has systemd, addresses and a file system of its own; ranks are started by its slurmd, and gloo's traffic goes over a rail of the lab. What is
real of each failure, and what is a text, is in docs/reference/attribution.md with the table of a run. `make soak` runs it where
`CLUSTERCTL_TORCH_PYTHON` names an interpreter with PyTorch of the version of Python that the hosts have.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lab.tests.lab_kit import eventually, needs_lab
from tests.edges.slurm.lab_pool import LabPool, share
from tests.edges.slurm.lab_training import BATCH, EVERY, FAILS_AT, WIDTH, Fault, Story, torch_pool

pytestmark = [pytest.mark.lab, pytest.mark.soak, needs_lab, pytest.mark.timeout(4 * 3600)]

LINK_DOWN_S = 40
CLOCKS_S = 2.0
"""Slurm's times have whole seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A fault, and what is right: failure, layer, whether the host is named, and whether the job ends by itself."""

    name: str
    fault: Fault
    failure: str
    layer: str
    host: bool
    goes_on: bool


def inject(*faults: str) -> Fault:
    """Break the host by faults of the lab, each `FAULT:PART`."""

    def do(story: Story) -> None:
        for fault in faults:
            name, _, part = fault.partition(":")
            story.pool.lab("inject", name, f"{story.victim}:{part}" if part else story.victim)

    return Fault(inject=do)


def on_host(command: str) -> Fault:
    """Run a command as root on the host; `PID` is the rank's process."""
    return Fault(
        inject=lambda story: print(story.pool.ssh(story.victim, f"sudo -n {command.replace('PID', str(story.pid))}"))
    )


def power_off(story: Story) -> None:
    story.pool.lab("power", story.victim, "off")


def flap(story: Story) -> None:
    """Take the link of the rail that gloo uses down, and up again after a while; the driver's messages are the lab's."""
    story.pool.lab("inject", "flapping-port", f"{story.victim}:mlx5_0")
    story.pool.ssh(story.victim, "sudo -n ip link set ib0 down")
    (story.folder / "go").touch()
    time.sleep(LINK_DOWN_S)
    story.pool.ssh(story.victim, "sudo -n ip link set ib0 up")


def no_numbers(story: Story) -> None:
    """Let the second rank's batch of this step hold NaN."""
    (story.data / f"{FAILS_AT}-1").write_bytes(b"\0\0\xc0\x7f" * (BATCH * WIDTH))


def stop_the_file_server(story: Story) -> None:
    os.kill(file_server(story.data), signal.SIGSTOP)


def file_server(folder: Path) -> int:
    """Return the process that serves a FUSE file system."""
    for one in Path("/proc").glob("[0-9]*"):
        words = (one / "cmdline").read_bytes().split(b"\0") if (one / "cmdline").exists() else []
        if words and words[0].endswith(b"bindfs") and str(folder).encode() in words:
            return int(one.name)
    raise AssertionError(f"no file server of {folder}")


def raising(text: str, kind: str = "RuntimeError") -> str:
    return f"raise {kind}({text!r})"


LOADER = """\
loader = torch.utils.data.DataLoader(range(64), num_workers=1, prefetch_factor=2)
    batches = iter(loader)
    next(batches)
    os.kill(loader._iterator._workers[0].pid if loader._iterator else batches._workers[0].pid, 9)
    for one in batches: time.sleep(0.1)"""
LOST = "print('RuntimeError: CUDA error: unspecified launch failure', file=sys.stderr, flush=True); os._exit(1)"
DIES = "sh -c 'kill -KILL $(systemctl show -p MainPID --value slurmd); systemctl stop slurmd'"
"""Ranks go on without it. The unit restarts a slurmd that dies by itself after a minute, and the training does not notice: it stays down here."""
KINDS = (
    Kind(name="GPU lost", fault=replace(inject("gpu-off-the-bus:gpu0"), body=LOST), failure="crash", layer="hardware",
         host=True, goes_on=True),
    Kind(name="uncorrectable ECC error", fault=replace(
        inject("uncorrectable-ecc:gpu3", "row-remap-failure:gpu3"), body=raising("CUDA error: uncorrectable ECC error encountered")
    ), failure="crash", layer="hardware", host=True, goes_on=True),
    Kind(name="link of an adapter flaps", fault=Fault(inject=flap, timeout_s=15), failure="hang", layer="fabric", host=True,
         goes_on=True),
    Kind(name="host switched off", fault=Fault(inject=power_off), failure="crash", layer="hardware", host=True, goes_on=True),
    Kind(name="rank stopped", fault=replace(on_host("kill -STOP PID"), options=("--hang-after", "20s")), failure="hang",
         layer="system software", host=True, goes_on=True),
    Kind(name="host slow by a quota", fault=replace(
        inject("cpu-straggler:2"), steps=300, options=("--abort-if-slower-than", "100% for 5 batches")
    ), failure="slow", layer="system software", host=True, goes_on=True),
    Kind(name="NaN in the data", fault=Fault(inject=no_numbers, always=True), failure="crash", layer="application",
         host=False, goes_on=False),
    Kind(name="CUDA out of memory", fault=Fault(body=raising(
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.11 GiB of which 1.06 GiB is free.",
        "torch.OutOfMemoryError"), always=True), failure="crash", layer="application", host=False, goes_on=False),
    Kind(name="file server stops", fault=Fault(inject=stop_the_file_server, options=("--hang-after", "20s")), failure="hang",
         layer="storage", host=False, goes_on=False),
    Kind(name="slurmd killed", fault=replace(on_host(DIES), steps=60, pace_s=3.0), failure="crash",
         layer="system software", host=True, goes_on=True),
    Kind(name="disk full", fault=replace(
        inject("full-disk:/tmp"), body="torch.save(torch.zeros(1 << 20), '/tmp/shard.pt')"
    ), failure="crash", layer="storage", host=True, goes_on=True),
    Kind(name="error of the program", fault=Fault(body="return torch.zeros(32, 63)", always=True), failure="crash",
         layer="application", host=False, goes_on=False),
    Kind(name="data loader killed", fault=Fault(body=LOADER, always=True), failure="crash", layer="data", host=False,
         goes_on=False),
)  # fmt: skip


@pytest.fixture(scope="module")
def pool() -> Iterator[LabPool]:
    with torch_pool("failures", "10.198.0.0/16", "drain") as found:
        yield found


@contextmanager
def served_data(pool: LabPool, name: str) -> Iterator[Path]:
    """Serve a folder to all hosts by a file system in user space, whose process may be stopped."""
    if shutil.which("bindfs") is None:
        pytest.skip("bindfs is not installed")
    source, target = pool.shared / f"{name}-data", pool.shared.parent / f"{name}-served"
    source.mkdir()
    target.mkdir()
    subprocess.run(["bindfs", "-o", "allow_other", str(source), str(target)], check=True)
    try:
        for node in pool.nodes:
            share(pool.lab.name, node, target)
        yield target
    finally:
        os.kill(file_server(target), signal.SIGKILL)  # the hosts' mounts of it end with it
        subprocess.run(["umount", "-l", str(target)], check=False)


def recover(pool: LabPool, story: Story) -> None:
    """Repair the host of a story, and give it back to Slurm: all nodes are idle afterwards."""
    victim = story.victim
    pool.lab("heal", victim)
    if pool.lab.machine(victim)["power"] != "on":
        pool.lab("power", victim, "on")
        assert eventually(lambda: pool.answers(victim)), victim
        pool.give(victim)
    pool.ssh(victim, "sudo -n systemctl restart slurmd")
    assert eventually(lambda: pool.undrained(victim) == dict.fromkeys(pool.nodes, "idle"), 600), pool.states()


def row(kind: Kind, story: Story) -> str:
    """Return a line of the table in docs/reference/attribution.md."""
    first, attempts = story.found["attempts"][0], story.found["attempts"]
    host = "right" if first["hosts"] == [story.victim] else ", ".join(first["hosts"]) or "none"
    lost = (first["last_step"] or 0) - (first["checkpoint"] or 0)
    state = story.found["state"] + (f", {len(attempts)} attempts" if len(attempts) > 1 else "")
    return f"| {kind.name} | {first['failure']} | {first['layer']} | {first['certainty']} | {host} | {state} | {lost} |"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_training_survives_what_it_can(pool: LabPool, kind: Kind) -> None:
    """Failure, layer and host are right; a job that may go on completes, and loses at most one checkpoint interval."""
    name = kind.name.replace(" ", "-")
    with served_data(pool, name) if kind.fault.inject is stop_the_file_server else nullcontext() as data:
        story = Story(pool, name, kind.fault, data)
        done = story.run()
        print(f"\n{row(kind, story)}")
        shown = story.output() + done.stderr
    recover(pool, story)
    first = story.found["attempts"][0]
    assert (first["failure"], first["layer"]) == (kind.failure, kind.layer), shown
    assert first["hosts"] == ([story.victim] if kind.host else first["hosts"]), shown
    assert (done.returncode == 0) is kind.goes_on, shown
    assert first["last_step"] - first["checkpoint"] <= EVERY
    for later in story.found["attempts"][1:]:
        assert later["first_step"] == first["checkpoint"] + 1


def test_the_downtime_adds_up_to_the_wall_clock(pool: LabPool) -> None:
    """The terms of each run add up to the time from its first start to its last end, as slurmdbd has them.

    An attempt that completed has useful time, although its steps take less than the time between two looks.
    """
    report = json.loads(pool.ordered("report", "--downtime", "-o", "json"))
    assert report["runs"]
    terms = ("startup", "useful", "saving", "lost", "detection", "shutdown", "wait")
    for run in report["runs"]:
        jobs = ",".join(one["job"] for one in run["attempts"])
        lines = pool.slurm("sacct", "-j", jobs, "-X", "-D", "-n", "-P", "--format=Start,End").split()
        begins, ends = zip(*(line.split("|") for line in lines), strict=True)
        clock = (max(map(parsed, ends)) - min(map(parsed, begins))).total_seconds()
        added = sum(one[term] for one in run["attempts"] for term in terms)
        useful = [one["useful"] for one in run["attempts"] if not one["failed"]]
        print(f"\n| {run['name']} | {len(run['attempts'])} | {clock:.0f} | {added:.1f} | {useful} |")
        assert all(useful)
        assert added == pytest.approx(clock, abs=CLOCKS_S)
        assert run["elapsed"] == pytest.approx(clock, abs=CLOCKS_S)


def parsed(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)

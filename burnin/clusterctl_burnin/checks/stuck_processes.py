"""stuck_processes: nothing hangs in the kernel: no process sleeps uninterruptibly (state D) and never runs.

Such a process keeps its resources, cannot be killed, and is a sign of a dead file server, drive or GPU driver. Threads
of the kernel are a warning: some drivers let theirs wait like this while idle.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import Quantity, exactly
from clusterctl.formats.host.linux import StuckProcess, parse_stuck_processes
from clusterctl_burnin.check import Area, Cause, Check, Expected
from clusterctl_burnin.probe import Probe, Readings

WATCHED_S = "10"
STUCK = Probe("stuck_processes", ("stuck-processes", WATCHED_S), timeout=30.0, waits=True)
_NAME = "stuck_processes"
_FILE_SERVER = ("nfs", "rpc_", "lustre", "ll_", "ceph", "cifs", "fuse_")
_DISK = ("io_schedule", "blk_", "bit_wait_io", "folio_wait", "jbd2", "xfs_", "ext4_", "cv_wait", "txg_")
_GPU = ("nv", "uvm", "os_acquire")


def _judge(readings: Readings, _expected: Expected) -> Iterator[Finding]:
    stuck = parse_stuck_processes(readings.text(STUCK))
    for process in stuck:
        yield _finding(process)
    if not stuck:
        yield passed(
            _NAME, "no process hangs in the kernel", measured=Quantity(0, "processes"), expected=exactly(0, "processes")
        )


def _finding(process: StuckProcess) -> Finding:
    where = f" in {process.waits_in}" if process.waits_in else ""
    what = "a thread of the kernel" if process.kernel else "a process"
    cause = f"{what} hangs in the kernel{where} and did not run for {process.seconds:g} s"
    verdict = Verdict.WARN if process.kernel else Verdict.FAIL
    subject = f"{process.name} (process {process.pid})"
    return Finding(
        check=_NAME,
        verdict=verdict,
        code=Code.PROCESS_HUNG,
        subject=subject,
        cause=cause,
        measured="D",
        remedy=_remedy(process.waits_in),
        deterministic=False,
    )


def _remedy(function: str) -> str:
    """Return what to look at, by the kernel's function that it waits in."""
    if function.startswith(_FILE_SERVER):
        return "check that the file servers of its mounts answer (findmnt, rpcinfo), repair them, then reboot the node"
    if function.startswith(_DISK):
        return (
            "look for I/O errors in the kernel log and in the drives' health, replace the drive, then reboot the node"
        )
    if function.startswith(_GPU):
        return "look for Xid messages in the kernel log, then power the node off and on"
    return "read /proc/PID/stack for what it waits for, and the kernel log for the driver; then reboot the node"


CHECK = Check(_NAME, (STUCK,), _judge, area=Area.NODE, causes=(Cause("identity"),))

"""Runs on a node: what it holds of one job, for `clusterctl job why JOBID` and `job stacks JOBID`.

Standard library only, Python 3.9. The controller sends this file to `python3 -`, followed by one line that calls
`main`. It reads the kernel's log of the job's time, error counters of the InfiniBand ports, the stacks of the job's
processes, and the job's own files. Those are read by a process with the rights of the job's user: their paths are
the user's to choose. Every part has its own bounds of time and bytes; a part that fails is named and the others go on.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import zlib
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

PROC = Path("/proc")
DEVICES = Path("/sys/class/infiniband")
COUNTERS = ("symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors", "local_link_integrity_errors")
NETWORKED = ("nfs", "nfs4", "lustre", "gpfs", "beegfs", "ceph", "cifs", "9p", "wekafs", "fuse.glusterfs")
MOST_FILES = 400
MOST_RANKS = 64
PY_SPY_S = 20.0
OBSERVED_S = 1.0

Found = Dict[str, Any]  # evaluated on Python 3.9

READER = r"""
import base64, glob, json, os, stat, sys, zlib
request = json.loads(sys.argv[1])
left, found, missing, seen = request["bytes"], [], [], set()
types = {}
for line in open("/proc/self/mountinfo"):
    fields = line.split()
    types[fields[2]] = fields[fields.index("-") + 1]
def add(path):
    global left
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        return missing.append("%s: %s" % (path, error.strerror))
    with os.fdopen(number, "rb") as file:
        about = os.fstat(number)
        kind = types.get("%d:%d" % (os.major(about.st_dev), os.minor(about.st_dev)), "")
        if not stat.S_ISREG(about.st_mode):
            return missing.append("%s: is no plain file" % path)
        if not request["shared"] and kind in request["networked"]:
            return
        most = min(request["each"], left)
        if most <= 0:
            return missing.append("%s: the files of this job are larger than what is read of them" % path)
        if about.st_size <= most:
            content = file.read(most)
        else:
            content = file.read(most // 2)
            file.seek(about.st_size - most // 2)
            content += b"\n" + file.read(most // 2)
            missing.append("%s: %d bytes, of which the middle was not read" % (path, about.st_size))
        left -= len(content)
        found.append({"path": path, "content": base64.b64encode(zlib.compress(content, 3)).decode()})
for path in request["paths"]:
    if path not in seen and (request["shared"] or os.path.exists(path)):
        seen.add(path)
        add(path)
for pattern in request["patterns"]:
    for path in sorted(glob.glob(pattern))[: request["most"]]:
        if path not in seen:
            seen.add(path)
            add(path)
json.dump({"files": found, "missing": missing}, sys.stdout)
"""


class Report:
    """What was found so far: files by name, and what could not be read."""

    def __init__(self, seconds: float) -> None:
        self.until = time.monotonic() + seconds
        self.files: List[Found] = []
        self.missing: List[str] = []
        self.ranks: Dict[str, int] = {}

    def left(self, most: float) -> float:
        """Return the seconds that a part may take."""
        return max(0.5, min(most, self.until - time.monotonic()))

    def add(self, name: str, content: bytes) -> None:
        self.files.append({"name": name, "content": base64.b64encode(zlib.compress(content, 3)).decode()})


def ask(argv: List[str], seconds: float, most: int, **options: Any) -> Tuple[Optional[int], bytes, bytes]:
    """Return exit status, output and errors; None where it did not end in time or wrote more than `most` bytes.

    A process that hangs in the kernel is left behind: nothing can end it.
    """
    process = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        **options,
    )
    stdout, stderr = process.stdout, process.stderr
    if stdout is None or stderr is None:
        raise OSError(0, "no pipe")
    output, errors, status = [b""], [b""], []  # type: List[bytes], List[bytes], List[int]

    def read() -> None:
        output[0] = stdout.read(most + 1)
        stdout.close()
        status.append(process.wait())

    def read_errors() -> None:
        errors[0] = stderr.read(4096)
        stderr.close()

    threads = [threading.Thread(target=call, daemon=True) for call in (read, read_errors)]
    for thread in threads:
        thread.start()
    threads[0].join(seconds)
    if threads[0].is_alive():
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        return None, b"", b"it did not end in time"
    threads[1].join(1.0)
    too_long = len(output[0]) > most
    return (None if too_long else status[0]), output[0][:most], errors[0]


def kernel(report: Report, request: Found) -> None:
    """Add the kernel's log of the job's time, also of boots before this one; without a journal, dmesg's."""
    most, since, until = request["kernel_bytes"], int(request["since"]), int(request["until"])
    window = ["--since=@{}".format(since), "--until=@{}".format(until)]
    tried = []
    journal = ["journalctl", "--no-pager", "-q", "-o", "short-iso-precise", "_TRANSPORT=kernel", *window]
    for argv in (journal, ["dmesg", "-T", "-x"]):
        if shutil.which(argv[0]) is None:
            tried.append("{} is not installed".format(argv[0]))
            continue
        status, output, errors = ask(argv, report.left(30.0), most)
        if output.strip():
            report.add("kernel.log", output)
            if status != 0:
                report.missing.append("kernel.log: the log of {} was not read to its end".format(argv[0]))
            return
        if status == 0 and argv[0] == "journalctl" and has_kernel_journal(report):
            report.add("kernel.log", b"")
            return
        tried.append("{}: {}".format(argv[0], errors.decode(errors="replace").strip()[:200] or "prints nothing"))
    report.missing.append("kernel.log: " + "; ".join(tried))


def has_kernel_journal(report: Report) -> bool:
    """Return whether the journal has messages of the kernel at all: then a quiet window is a finding."""
    argv = ["journalctl", "--no-pager", "-q", "-n", "1", "_TRANSPORT=kernel"]
    return bool(ask(argv, report.left(10.0), 1 << 16)[1].strip())


def counters(report: Report, devices: Path = DEVICES) -> None:
    """Add the error counters of the InfiniBand ports; a node without adapters has none."""
    found = {}  # type: Dict[str, Dict[str, int]]
    for port in sorted(devices.glob("*/ports/*")):
        values = {}
        for name in COUNTERS:
            try:
                values[name] = int((port / "counters" / name).read_text())
            except (OSError, ValueError):
                continue
        if values:
            found["{}/{}".format(port.parent.parent.name, port.name)] = values
    if found:
        report.add("ib_counters.json", json.dumps({"version": 1, "ports": found}).encode())


def environment(folder: Path) -> Dict[str, str]:
    """Return the environment of a process; nothing where it has ended or may not be read."""
    try:
        raw = (folder / "environ").read_bytes()
    except OSError:
        return {}
    pairs = (entry.partition(b"=") for entry in raw.split(b"\0"))
    return {name.decode(errors="replace"): value.decode(errors="replace") for name, _, value in pairs}


def parent_of(folder: Path) -> int:
    """Return the process id of the parent; 0 where it has ended."""
    try:
        return int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def state_of(folder: Path) -> str:
    """Return the state as the kernel prints it: `D` hangs in the kernel."""
    try:
        return (folder / "stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


def is_python(folder: Path) -> bool:
    """Return whether the process runs a Python interpreter."""
    try:
        return (folder / "exe").readlink().name.startswith("python")
    except OSError:
        return False


def ranks(job: str, node: str, proc: Path = PROC) -> Dict[int, int]:
    """Return the process of each rank: the outermost interpreter with its number, else the outermost process.

    Several nodes of Slurm may be one machine: a process that names another node is of that one.
    """
    chosen = {}  # type: Dict[int, List[Tuple[int, int]]]
    for folder in proc.iterdir():
        if not folder.name.isdigit():
            continue
        found = environment(folder)
        rank = found.get("RANK") or found.get("SLURM_PROCID") or ""
        if found.get("SLURMD_NODENAME", node) != node:
            continue
        if found.get("SLURM_JOB_ID") == job and rank.isdigit() and len(rank) < 8:
            chosen.setdefault(int(rank), []).append((int(folder.name), parent_of(folder)))
    return {rank: outermost(members, proc) for rank, members in chosen.items()}


def outermost(members: List[Tuple[int, int]], proc: Path) -> int:
    """Return the process whose parent is not among `members`; interpreters first."""
    interpreters = [one for one in members if is_python(proc / str(one[0]))]
    group = interpreters or members
    own = {pid for pid, _ in group}
    return min(pid for pid, parent in group if parent not in own) if own else 0


def hierarchies(table: Path = PROC / "self/mountinfo") -> Dict[str, Path]:
    """Return where hierarchies of cgroups with processor quotas are mounted: `0` the unified one, and `cpu`."""
    found = {}  # type: Dict[str, Path]
    try:
        lines = table.read_text().splitlines()
    except OSError:
        return found
    for line in lines:
        fields = line.split()
        kind, options = fields[fields.index("-") + 1], fields[-1].split(",")
        if kind == "cgroup2":
            found.setdefault("0", Path(fields[4]))
        elif kind == "cgroup" and "cpu" in options:
            found.setdefault("cpu", Path(fields[4]))
    return found


def periods(folder: Path, mounts: Dict[str, Path]) -> Tuple[int, int]:
    """Return the periods of the processor quota that holds a process back most, and in how many it did: cgroups(7).

    `mounts` as `hierarchies` returns it.
    """
    found = (0, 0)
    try:
        lines = (folder / "cgroup").read_text().splitlines()
    except OSError:
        return found
    for line in lines:
        number, controllers, path = line.split(":", 2)
        root = mounts.get("0" if number == "0" else "cpu" if "cpu" in controllers.split(",") else "")
        if root is None:
            continue
        group = root / path.lstrip("/")
        for one in [group, *group.parents][: len(Path(path).parts)]:
            try:
                values = dict(row.split() for row in (one / "cpu.stat").read_text().splitlines())
                found = max(found, (int(values["nr_periods"]), int(values["nr_throttled"])), key=lambda it: it[1])
            except (OSError, ValueError, KeyError):
                continue
    return found


def processes(report: Report, found: Dict[int, int], proc: Path = PROC) -> None:
    """Add what keeps ranks off the processor for a second: a signal that stopped them, a quota of their cgroup."""
    mounts = hierarchies()
    seen = []  # type: List[Dict[int, Tuple[str, int, int]]]
    for pause in (0.0, OBSERVED_S):
        time.sleep(pause)
        seen.append(
            {rank: (state_of(proc / str(pid)), *periods(proc / str(pid), mounts)) for rank, pid in found.items()}
        )
    states = {}  # type: Dict[str, Found]
    for rank, (state, passed, held) in seen[1].items():
        before = seen[0][rank]
        stopped = state == before[0] == "T"
        throttled = (held - before[2]) / (passed - before[1]) if passed > before[1] else 0.0
        states[str(rank)] = {"stopped": stopped, "throttled": round(min(1.0, max(0.0, throttled)), 3)}
    if states:
        report.add("processes.json", json.dumps({"version": 1, "ranks": states}).encode())


def stacks(report: Report, request: Found, proc: Path = PROC) -> None:
    """Add the kernel's stack of each rank, and the interpreter's where it is safe to attach."""
    found = ranks(request["job"], request["node"], proc)
    report.ranks = {str(rank): pid for rank, pid in sorted(found.items())}
    processes(report, found, proc)
    for rank, pid in sorted(found.items())[:MOST_RANKS]:
        try:
            report.add("kernel_stack_rank_{}".format(rank), (proc / str(pid) / "stack").read_bytes()[: 1 << 16])
        except OSError as error:
            report.missing.append("kernel_stack_rank_{}: {}".format(rank, error.strerror))
        if state_of(proc / str(pid)) == "D":
            report.missing.append("pyspy_rank_{}: process {} hangs in the kernel (state D)".format(rank, pid))
        elif is_python(proc / str(pid)):
            interpreter(report, rank, pid)
        if time.monotonic() > report.until:
            report.missing.append("stacks: there was no time for all ranks")
            return


def interpreter(report: Report, rank: int, pid: int) -> None:
    """Add what py-spy of root's own path prints of a process, and let the process run again whatever happened."""
    name = "pyspy_rank_{}.json".format(rank)
    program = shutil.which("py-spy")
    if program is None:
        report.missing.append(name + ": py-spy is not installed")
        return
    argv = [program, "dump", "--json", "--nonblocking", "--pid", str(pid)]
    status, output, errors = ask(argv, report.left(PY_SPY_S), 16 << 20)
    if status == 0:
        report.add(name, output)
        return
    report.missing.append("{}: {}".format(name, errors.decode(errors="replace").strip()[:200] or "py-spy failed"))
    if status is None and state_of(PROC / str(pid)) in ("T", "t"):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGCONT)


def of_the_user(report: Report, request: Found) -> None:
    """Add the job's own files, read with the rights of its user."""
    uid, gid = int(request["uid"]), int(request["gid"])
    wish = {
        "paths": request["paths"],
        "patterns": request["patterns"],
        "shared": request["shared"],
        "networked": NETWORKED,
        "bytes": request["file_bytes"],
        "each": request["each_bytes"],
        "most": MOST_FILES,
    }
    argv = [sys.executable, "-I", "-c", READER, json.dumps(wish)]
    options = {}  # type: Found
    if os.geteuid() == 0 and uid != 0:
        try:
            groups = os.getgrouplist(pwd.getpwuid(uid).pw_name, gid)
        except KeyError:
            groups = [gid]
        options = {"user": uid, "group": gid, "extra_groups": groups, "cwd": "/"}
    status, output, errors = ask(argv, report.left(60.0), 2 * int(request["file_bytes"]) + (1 << 20), **options)
    if status != 0:
        report.missing.append("the job's files: " + (errors.decode(errors="replace").strip()[-200:] or "not read"))
        return
    found = json.loads(output)
    report.missing.extend(found["missing"])
    for number, file in enumerate(found["files"]):
        name = re.sub(r"[^A-Za-z0-9._-]", "_", Path(file["path"]).name)[:120]
        report.files.append({"name": "{:03d}-{}".format(number, name), "content": file["content"]})


def addresses(report: Report) -> List[str]:
    """Return the node's own addresses, as NCCL would print them."""
    if shutil.which("ip") is None:
        return []
    output = ask(["ip", "-j", "address"], report.left(5.0), 1 << 20)[1]
    try:
        found = [one["local"] for link in json.loads(output) for one in link.get("addr_info", [])]
    except (ValueError, KeyError, TypeError):
        return []
    return [one for one in found if not one.startswith(("127.", "::1", "fe80"))][:64]


def booted(stat: Path = PROC / "stat") -> int:
    """Return when the node booted, in seconds since 1970; 0 where that is not known: proc(5), btime."""
    try:
        found = re.search(r"^btime (\d{1,12})$", stat.read_text(), re.MULTILINE)
    except OSError:
        return 0
    return int(found[1]) if found else 0


def main(request: Found) -> None:
    """Print `{"version", "utc_offset", "booted", "addresses", "ranks", "files": [{name, content}], "missing"}`."""
    os.environ["LC_ALL"] = "C"
    report = Report(float(request["seconds"]))
    parts = {"kernel": kernel, "stacks": stacks, "files": of_the_user}
    for name, part in parts.items():
        if request["want"].get(name):
            try:
                part(report, request)
            except (OSError, ValueError, KeyError) as error:
                report.missing.append("{}: {}".format(name, error))
    if request["want"].get("kernel"):
        counters(report)
    document = {
        "version": 1,
        "utc_offset": time.strftime("%z"),
        "booted": booted(),
        "addresses": addresses(report),
        "ranks": report.ranks,
        "files": report.files,
        "missing": report.missing,
    }
    json.dump(document, sys.stdout)

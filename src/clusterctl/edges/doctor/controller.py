"""Checks of the controller itself: Python, Ansible, programs, kernel, limits. They need no site."""

from __future__ import annotations

import ctypes
import platform
import re
import resource
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from clusterctl.edges.ansible.workspace import tool_path
from clusterctl.edges.processes import Surroundings, run
from clusterctl.edges.site import Site
from clusterctl.fleet.diagnosis import Diagnosis, broken, enumerated, not_measured, ok, warn
from clusterctl.fleet.errors import UnreachableError
from clusterctl.ports import Deadline
from clusterctl_burnin.node.processes import TIMED_OUT

OLDEST_PYTHON = (3, 11)
ANSIBLE_SECONDS = 10.0
PACKAGES = {
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "ibnetdiscover": "infiniband-diags",
    "sminfo": "infiniband-diags",
    "sudo": "sudo",
}
"""Program → the Debian package that contains it."""
PR_GET_CHILD_SUBREAPER = 37
FILES_BASE = 128
FILES_PER_NODE = 6
"""A connection, its socket pair, and three pipes of the process behind it."""
MEMORY_BASE_MIB = 300
MEMORY_PER_FORK_MIB = 60
"""Resident memory of one of Ansible's processes, measured: 45 to 60 MiB."""
UNLIMITED = 2**62
OTHERS_WRITE = 0o002
_UMASK = re.compile(r"^Umask:\s*([0-7]+)$", re.MULTILINE)
_REINSTALL = "install clusterctl again with its dependencies: pip install --force-reinstall clusterctl"


# --- python -----------------------------------------------------------------------------------------------------------


def check_python(_site: Site | None) -> Diagnosis:
    """Compare the installed libraries with what clusterctl's own metadata requires."""
    try:
        lines = metadata.requires("clusterctl") or []
    except metadata.PackageNotFoundError:
        return judge_python(sys.version_info[:2], None, {})
    required = [Requirement(line) for line in lines]
    return judge_python(sys.version_info[:2], required, dict(_installed(required)))


def judge_python(
    python: tuple[int, int], required: list[Requirement] | None, installed: Mapping[str, str]
) -> Diagnosis:
    """Judge versions by name. `required` is None where clusterctl runs from a folder without package metadata."""
    name, version = "python", f"Python {python[0]}.{python[1]}"
    if python < OLDEST_PYTHON:
        return broken(name, f"{version} is too old", f"install Python {OLDEST_PYTHON[0]}.{OLDEST_PYTHON[1]} or newer")
    if required is None:
        return not_measured(name, f"{version}; clusterctl is not installed as a package: its requirements are unknown")
    wrong = [
        f"{need.name} {installed.get(need.name, 'is missing')} (needs {need.specifier})"
        for need in required
        if (need.marker is None or need.marker.evaluate({"extra": ""}))
        and not need.specifier.contains(installed.get(need.name, "0"), prereleases=True)
    ]
    if wrong:
        return broken(name, f"{version}; {enumerated(wrong)}", _REINSTALL)
    return ok(name, f"{version} and {len(required)} libraries as required")


def _installed(required: list[Requirement]) -> Iterator[tuple[str, str]]:
    for need in required:
        try:
            yield need.name, metadata.version(need.name)
        except metadata.PackageNotFoundError:
            continue


# --- ansible ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AnsibleRun:
    """Path of `ansible-playbook` (empty: not found), and exit status and output of its `--version`."""

    program: str
    status: int = 0
    output: str = ""


def check_ansible(_site: Site | None) -> Diagnosis:
    """Start Ansible as runs do. Every module that the roles use ships with ansible-core."""
    return judge_ansible(probe_ansible(tool_path()))


def probe_ansible(path: str) -> AnsibleRun:
    """Run `ansible-playbook --version` of this search path."""
    program = shutil.which("ansible-playbook", path=path)
    if program is None:
        return AnsibleRun("")
    try:
        with tempfile.TemporaryDirectory(prefix="clusterctl-doctor-") as home:
            (Path(home) / "ansible.cfg").touch()  # so that the user's or system's settings do not apply
            settings = {"ANSIBLE_CONFIG": f"{home}/ansible.cfg", "ANSIBLE_HOME": f"{home}/home"}
            variables = {"PATH": path, "LC_ALL": "C.UTF-8", "HOME": home, **settings}
            ran = run(
                (program, "--version"),
                Deadline.after(ANSIBLE_SECONDS),
                Surroundings(variables=variables, folder=Path(home)),
            )
    except UnreachableError:
        return AnsibleRun(program, TIMED_OUT, f"no answer within {ANSIBLE_SECONDS:.0f} s")
    return AnsibleRun(program, ran.exit_status, ran.stdout or ran.stderr)


def judge_ansible(ran: AnsibleRun) -> Diagnosis:
    """Judge whether it is there and starts."""
    name = "ansible"
    remedy = "install clusterctl again with its dependencies: they include ansible-core and ansible-runner"
    if not ran.program:
        return broken(name, "ansible-playbook is not installed in clusterctl's environment", remedy)
    first = next(iter(ran.output.strip().splitlines()), "no output")
    if ran.status != 0:
        return broken(name, f"{ran.program} does not start: {first}", remedy)
    return ok(name, first)


# --- tools ------------------------------------------------------------------------------------------------------------


def check_tools(site: Site | None) -> Diagnosis:
    """Find the system's programs that runs start: ssh, and the fabric's readers as the site names them."""
    names = ["ssh", "ssh-keygen"]
    if site is not None:
        fabric = site.settings.fabric
        names = ["ssh", *(argv[0] for argv in (fabric.ibnetdiscover, fabric.sminfo) if argv)]
    return judge_tools({name: shutil.which(name) for name in dict.fromkeys(names)})


def judge_tools(found: Mapping[str, str | None]) -> Diagnosis:
    """Judge a map of programs to their paths; None where there is no such program."""
    name = "tools"
    missing = [program for program, path in found.items() if path is None]
    if not missing:
        return ok(name, ", ".join(found))
    packages = sorted({PACKAGES[program] for program in missing if program in PACKAGES})
    remedy = f"apt-get install {' '.join(packages)}" if packages else "correct fabric.ibnetdiscover or fabric.sminfo"
    return broken(name, f"not found: {', '.join(missing)}", remedy)


# --- kernel -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Kernel:
    """`subreaper`: prctl(2) knows PR_SET_CHILD_SUBREAPER; `proc`: /proc shows our own processes."""

    system: str
    release: str
    subreaper: bool
    proc: bool


def check_kernel(_site: Site | None) -> Diagnosis:
    """Check that no process of a play can outlive its run: `edges/ansible/supervisor.py` needs a subreaper."""
    value = ctypes.c_int(0)
    subreaper = ctypes.CDLL(None).prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(value), 0, 0, 0) == 0
    return judge_kernel(Kernel(platform.system(), platform.release(), subreaper, Path("/proc/self/stat").exists()))


def judge_kernel(kernel: Kernel) -> Diagnosis:
    """Judge what the kernel offers."""
    name = "kernel"
    if kernel.system != "Linux":
        return broken(name, f"this is {kernel.system}", "run clusterctl on a Linux machine")
    if not kernel.subreaper:
        message = f"Linux {kernel.release} cannot adopt orphaned processes"
        return broken(name, message, "use a kernel of version 3.4 or newer, outside of sandboxes that forbid prctl")
    if not kernel.proc:
        return broken(name, "/proc is not mounted", "mount it: mount -t proc proc /proc")
    return ok(name, f"Linux {kernel.release}")


# --- open files and memory --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ControllerLoad:
    """Work done at once: nodes in the widest step, and Ansible's processes."""

    nodes: int
    forks: int


def _load(site: Site | None) -> ControllerLoad:
    if site is None:
        return ControllerLoad(64, 25)
    batch = site.settings.batch
    widest = max(batch.discover, batch.install, batch.configure, batch.burnin)
    return ControllerLoad(min(widest, len(site.nodes)), min(site.settings.configure.forks, len(site.nodes)))


def check_open_files(site: Site | None) -> Diagnosis:
    """Compare the soft limit of open files with what the site's batches need."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return judge_open_files(UNLIMITED if soft == resource.RLIM_INFINITY else soft, _load(site))


def judge_open_files(limit: int, load: ControllerLoad) -> Diagnosis:
    """Judge a limit; `UNLIMITED` and more is no limit."""
    name, needed = "open_files", FILES_BASE + FILES_PER_NODE * load.nodes
    if limit < needed:
        message = f"{limit} files may be open, {load.nodes} nodes at once need about {needed}"
        return warn(name, message, f"ulimit -n {needed}, or smaller batches in the site file")
    allowed = "any number of" if limit >= UNLIMITED else str(limit)
    return ok(name, f"{allowed} files may be open, about {needed} are needed")


def check_memory(site: Site | None) -> Diagnosis:
    """Compare the available memory with what Ansible's forks need."""
    lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
    available = next((int(line.split()[1]) // 1024 for line in lines if line.startswith("MemAvailable:")), None)
    return judge_memory(available, _load(site))


def judge_memory(available_mib: int | None, load: ControllerLoad) -> Diagnosis:
    """Judge available memory; None where the kernel does not report it."""
    name, needed = "memory", MEMORY_BASE_MIB + MEMORY_PER_FORK_MIB * load.forks
    if available_mib is None:
        return not_measured(name, "/proc/meminfo does not report it")
    if available_mib < needed:
        message = f"{available_mib} MiB are available, {load.forks} of Ansible's processes need about {needed}"
        return warn(name, message, "lower configure.forks, or free memory")
    return ok(name, f"{available_mib} MiB available, about {needed} are needed")


# --- umask ------------------------------------------------------------------------------------------------------------


def check_umask(_site: Site | None) -> Diagnosis:
    """Read the umask from /proc: umask(2) can only be read by changing it."""
    match = _UMASK.search(Path("/proc/self/status").read_text(encoding="utf-8"))
    return judge_umask(int(match[1], 8) if match else None)


def judge_umask(mask: int | None) -> Diagnosis:
    """Judge whether other users may write what we create; None where the kernel does not report the umask."""
    name = "umask"
    if mask is None:
        return not_measured(name, "/proc/self/status does not report it")
    if not mask & OTHERS_WRITE:
        return warn(name, f"{mask:04o}: other users may write the files that you create", "umask 022, or 077")
    return ok(name, f"{mask:04o}")


CHECKS: Mapping[str, Callable[[Site | None], Diagnosis]] = {
    "python": check_python,
    "ansible": check_ansible,
    "tools": check_tools,
    "kernel": check_kernel,
    "open_files": check_open_files,
    "memory": check_memory,
    "umask": check_umask,
}
"""Each check gets the site, or None where there is none."""

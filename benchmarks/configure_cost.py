"""What configuring a node costs the controller: its processor time per host, way by way, over hosts of a lab.

    sudo python -m benchmarks.configure_cost [--hosts 8] [--ways plain pipelining … ssh host]

Each way configures the same hosts once more, after one run that is not measured has brought them there: nothing changes
any more, so that all ways do the same. The controller is a process of its own for each way. Counted is user and system
time of it and of all that it started, ssh's detached masters included, which it adopts and reaps
(`PR_SET_CHILD_SUBREAPER`); the hosts are no children of it. What needs a reboot is taken out of configure.yml first,
as lab hosts share this machine's kernel. Prints at the end whether every way had as many tasks ok and skipped on
each host; that they are the same ones is held by `tests/edges/ansible/test_transports_lab.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from typing import Any

import yaml

from clusterctl.edges.ansible.supervisor import adopt_orphans, kill_descendants
from clusterctl.edges.ansible.transports import AnsiblePlaybooks, Transport
from clusterctl.edges.ansible.workspace import PlayLimits, RunSettings, inventory, known_hosts_line
from clusterctl.edges.resources import resource
from clusterctl.fleet.finding import Origin
from clusterctl.ports import Deadline, HostAddress
from tests.edges.ansible.rehearsal import rehearsal
from tests.edges.ansible.support import FixedClock

NAME, SUBNET = "benchcf", "10.162.0.0/16"
RUN_S = 3600.0
PIPELINING = {"ANSIBLE_PIPELINING": "true"}
FACTS = {"ANSIBLE_GATHERING": "smart", "ANSIBLE_CACHE_PLUGIN": "ansible.builtin.jsonfile"}
PLAIN: Mapping[str, tuple[str, int, Mapping[str, str]]] = {
    "plain": ("ansible.builtin.linear", 50, {}),
    "pipelining": ("ansible.builtin.linear", 50, PIPELINING),
    "free": ("ansible.builtin.free", 50, PIPELINING),
    "forks-5": ("ansible.builtin.free", 5, PIPELINING),
    "facts": ("ansible.builtin.free", 50, {**PIPELINING, **FACTS}),
    "no-persist": ("ansible.builtin.linear", 50, {"PERSIST": "no"}),
}
"""ansible-playbook by itself: strategy, forks, environment. `plain` is Ansible as it comes, and 50 forks."""
OURS = {"ssh": Transport.SSH, "host": Transport.HOST}
WAYS = (*PLAIN, *OURS)


@dataclass(frozen=True, slots=True)
class Job:
    """What one controller does; travels as JSON."""

    way: str
    folder: str
    hosts: Sequence[Mapping[str, Any]]
    variables: Mapping[str, Any]
    roles: Sequence[str] = ()


def playbook(folder: Path, strategy: str, roles: Sequence[str]) -> Path:
    """configure.yml without its reboot, in a folder of its own; with `roles` only those."""
    (play,) = yaml.safe_load((resource("playbooks") / "configure.yml").read_text())
    play["strategy"] = strategy
    play["post_tasks"] = [task for task in play.get("post_tasks", ()) if "ansible.builtin.reboot" not in task]
    if roles:
        play["roles"] = [{"role": role} for role in roles]
        del play["post_tasks"]
    folder.mkdir(exist_ok=True)
    (folder / "configure.yml").write_text(yaml.safe_dump([play]))
    return folder


def clusterctl_way(folder: Path, transport: Transport, roles: Sequence[str]) -> AnsiblePlaybooks:
    return AnsiblePlaybooks(
        RunSettings(
            work_dir=folder / "w",
            playbooks_dir=playbook(folder / "free", "ansible.builtin.free", roles),
            roles_dir=resource("roles"),
            limits=PlayLimits(50),
            origin=Origin.SIMULATED,
            clock=FixedClock(),
        ),
        bundles_dir=folder / "w",
        transport=transport,
    )


def ours(job: Job, hosts: Sequence[HostAddress]) -> Mapping[str, str]:
    """By clusterctl: how many tasks were ok, and how many skipped, by host."""
    playbooks = clusterctl_way(Path(job.folder), OURS[job.way], job.roles)
    found = {}
    for observed in playbooks.run("configure.yml", hosts, job.variables, Deadline.after(RUN_S)):
        assert observed.value.ok, observed
        assert observed.value.changed == 0, observed
        tasks = [json.loads(line) for line in observed.evidence[0].content.splitlines()]
        found[observed.value.host] = " ".join(f"{status}={_count(tasks, status)}" for status in ("ok", "skipped"))
    return found


def _count(tasks: Sequence[Mapping[str, Any]], status: str) -> int:
    return sum(task["status"] == status for task in tasks)


def plain(job: Job, hosts: Sequence[HostAddress]) -> Mapping[str, str]:
    """By ansible-playbook alone: its summary for each host."""
    strategy, forks, settings = PLAIN[job.way]
    folder = Path(job.folder) / job.way
    book = playbook(folder, strategy, job.roles) / "configure.yml"
    (folder / "inventory.json").write_text(json.dumps(inventory(hosts)))
    (folder / "variables.json").write_text(json.dumps(dict(job.variables)))
    (folder / "known_hosts").write_text("".join(map(known_hosts_line, hosts)))
    persist = "no" if "PERSIST" in settings else "60s"
    master = f"-o ControlMaster={'no' if 'PERSIST' in settings else 'auto'} -o ControlPersist={persist}"
    environment = {
        **settings,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "ANSIBLE_ROLES_PATH": str(resource("roles")),
        "ANSIBLE_SSH_ARGS": f"-F none -C {master} -o UserKnownHostsFile={folder}/known_hosts",
        "ANSIBLE_SSH_CONTROL_PATH_DIR": tempfile.mkdtemp(prefix="cp", dir="/tmp"),
        "ANSIBLE_CACHE_PLUGIN_CONNECTION": str(folder / "facts"),
    }
    names = ("-i", str(folder / "inventory.json"), "-e", f"@{folder}/variables.json", "-f", str(forks), str(book))
    output = subprocess.run(["ansible-playbook", *names], env=environment, capture_output=True, text=True, check=False)
    kill_descendants()
    shutil.rmtree(environment["ANSIBLE_SSH_CONTROL_PATH_DIR"])
    assert output.returncode == 0, output.stdout[-3000:] + output.stderr[-3000:]
    return recap(output.stdout)


def recap(output: str) -> Mapping[str, str]:
    """Each host's counts of the last lines, where a looped include_role counts once for each role but is one task."""
    included: Counter[str] = Counter()
    for line in output.splitlines():
        if line.startswith("included: "):
            included.update(line.partition(" for ")[2].partition(" => ")[0].split(", "))
    found = {}
    for line in output.rpartition("PLAY RECAP")[2].splitlines()[1:]:
        host, _, counts = (part.strip() for part in line.partition(" : "))
        if counts:
            count = dict(word.split("=") for word in counts.split())
            ok = int(count["ok"]) - max(0, included[host] - 1)
            found[host] = f"ok={ok} skipped={count['skipped']}"
    return found


def controller(job: Job) -> None:
    """The process that is measured: prints its processor time and the results."""
    adopt_orphans()
    hosts = [HostAddress(**host) for host in job.hosts]
    found = ours(job, hosts) if job.way in OURS else plain(job, hosts)
    kill_descendants()
    usages = [getrusage(scope) for scope in (RUSAGE_SELF, RUSAGE_CHILDREN)]
    cpu_s = sum(usage.ru_utime + usage.ru_stime for usage in usages)
    print(json.dumps({"cpu_s": cpu_s, "found": found, "memory_kib": sum(usage.ru_maxrss for usage in usages)}))


def measured(job: Job) -> Mapping[str, Any]:
    file = Path(job.folder) / "job.json"
    file.write_text(json.dumps(asdict(job)))
    argv = [sys.executable, "-m", "benchmarks.configure_cost", "--controller", str(file)]
    began = time.monotonic()
    output = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True).stdout
    return {**json.loads(output.splitlines()[-1]), "wall_s": time.monotonic() - began}


def compare(
    ways: Sequence[str],
    folder: str,
    hosts: Sequence[HostAddress],
    variables: Mapping[str, Any],
    roles: Sequence[str],
) -> None:
    """The first run converges; then each way, compared with the first of them."""
    jobs = {way: Job(way, folder, [asdict(host) for host in hosts], variables, roles) for way in ways}
    converge(jobs[ways[0]])
    print(f"{os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f}; {len(hosts)} hosts", flush=True)
    results, first = {}, 0.0
    for way in ways:
        result = measured(jobs[way])
        per_host = result["cpu_s"] / len(hosts)
        first = first or per_host
        results[way] = result["found"]
        ratio = f"1/{first / per_host:.1f} of {ways[0]}"
        print(f"{way:12s} {1000 * per_host:8.0f} ms CPU per host  {ratio:22s} {result['wall_s']:7.1f} s", flush=True)
    same = all(found == results[ways[0]] for found in results.values())
    print("every way: as many tasks ok, and as many skipped, on each host" if same else f"NOT the same: {results}")


def converge(job: Job) -> None:
    """Unmeasured: until nothing changes any more. Played by the hosts, which also brings Ansible to them.

    `base` goes before the wanted roles: it reads the package index.
    """
    roles = tuple(dict.fromkeys(("base", *job.roles))) if job.roles else ()
    playbooks = clusterctl_way(Path(job.folder), Transport.HOST, roles)
    hosts = [HostAddress(**host) for host in job.hosts]
    for observed in playbooks.run("configure.yml", hosts, job.variables, Deadline.after(RUN_S)):
        assert observed.value.ok, observed.value


def state(folder: str) -> Path:
    path = Path(folder) / "lab"
    path.mkdir()
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=8)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--roles", nargs="+", default=(), help="only these, instead of all of configure.yml")
    parser.add_argument("--controller", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.controller:
        controller(Job(**json.loads(options.controller.read_text())))
        return
    with (
        tempfile.TemporaryDirectory(prefix="bcf", dir="/var/tmp") as folder,
        rehearsal(state(folder), lab=NAME, network=SUBNET, count=options.hosts) as lab,
    ):
        compare(options.ways, folder, lab.hosts, lab.variables, options.roles)


if __name__ == "__main__":
    main()

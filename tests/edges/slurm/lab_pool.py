"""A pool of lab hosts with Slurm as an operator sets it up: real Ansible, slurmd on each host, slurmctld and slurmdbd on one.

What lab hosts lack is given here: one folder of this machine, mounted into each of them, stands in for a parallel file
system, and empty files for the device files of GPUs.
"""

from __future__ import annotations

import ctypes
import json
import os
import secrets
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from clusterctl_lab.hosts.cgroups import MOUNTS, LabCgroup, mount_point
from clusterctl_lab.hosts.names import LabNames
from clusterctl_lab.hosts.quota import legacy_mount
from lab.tests.lab_kit import RunningLab, clusterctl
from tests.edges.slurm.cluster import PATH, end
from tests.paths import ROOT

SIZE = int(os.environ.get("CLUSTERCTL_POOL_NODES", "8"))
"""Nodes of the pool; the host after the last one has the controllers. A training needs three, one of them to spare."""
NODES = tuple(f"node{number:03}" for number in range(1, SIZE + 1))
CONTROLLER = f"node{SIZE + 1:03}"
GPUS = "/srv/gpus/nvidia"
SECONDS = 3600.0
SETTINGS = """
scheduler:
  kind: slurm
  cluster:
    name: pool
    controllers: ["{controller}({address})"]
    accounting: {address}
    gpu_device: {gpus}
    settings:
      SlurmdParameters: config_overrides         # a lab host has the processors and the memory of this machine
      ProctrackType: proctrack/pgid              # and no cgroups that Slurm could use
      TaskPlugin: task/none
      JobAcctGatherType: jobacct_gather/linux
      Prolog: /usr/bin/true
      Epilog: /usr/bin/true
      HealthCheckInterval: "0"
      SlurmdTimeout: "60"                        # a node that does not answer for so long is down
jobs: {{proven_fault: {proven_fault}}}
"""
_OPEN_TREE, _MOVE_MOUNT = 428, 429
_AT_FDCWD, _CLONE, _EMPTY_PATH, _NEW_MOUNTS = -100, 1, 4, 0x20000


@dataclass
class LabPool:
    """Gold nodes that are nodes of a Slurm. `shared` has the same path on this machine and on all hosts.

    `proven_fault`: as in the site's section jobs.
    """

    lab: RunningLab
    folder: Path
    shared: Path
    nodes: Sequence[str] = NODES
    controller: str = CONTROLLER
    proven_fault: str = "revalidate"
    hosts: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def site(self) -> Path:
        return self.lab.site

    @property
    def environment(self) -> Mapping[str, str]:
        """What Slurm's own commands need on this machine, which submits jobs."""
        return {"SLURM_CONF": str(self.folder / "client.conf"), "PATH": PATH}

    def clusterctl(self, *words: str) -> subprocess.CompletedProcess[str]:
        return clusterctl(*words, "--site", str(self.site), timeout_s=SECONDS)

    def ordered(self, *words: str) -> str:
        """Return the output of a command that must succeed."""
        done = self.clusterctl(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def ssh(self, node: str, command: str) -> str:
        """Return the output of a command on a host, reached as the site's inventory has it. The command must succeed."""
        if node not in self.hosts:
            self.hosts.update(json.loads(self.ordered("inventory", "--list"))["_meta"]["hostvars"])
        host = self.hosts[node]
        options = (*shlex.split(host["ansible_ssh_common_args"]), "-i", host["ansible_ssh_private_key_file"])
        argv = ("ssh", *options, "-o", "BatchMode=yes", f"{host['ansible_user']}@{host['ansible_host']}", command)
        done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    def slurm(self, *argv: str) -> str:
        done = subprocess.run(argv, env=self.environment, check=False, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def states(self) -> dict[str, str]:
        """Return sinfo's state of each node."""
        return dict(line.split() for line in self.slurm("sinfo", "-h", "-N", "-o", "%N %T").splitlines())

    def answers(self, node: str) -> bool:
        """Return whether a host that boots takes sessions again."""
        try:
            return self.ssh(node, "systemctl is-system-running --wait || true") in ("running", "degraded")
        except AssertionError:
            return False

    def undrained(self, node: str) -> dict[str, str]:
        """Give a node back where it is drained or down, as an administrator does; return the states of all."""
        if self.states()[node].startswith(("drain", "down")):
            subprocess.run(
                ["scontrol", "update", f"NodeName={node}", "State=RESUME"], env=self.environment, check=False, capture_output=True
            )  # fmt: skip
        return self.states()

    def stage(self, node: str) -> str:
        (found,) = json.loads(self.ordered("nodes", node, "-o", "json"))["nodes"]
        return str(found["stage"])

    def set_up(self) -> None:
        """Make all nodes gold, export Slurm's files, and have Ansible set the hosts up with them."""
        self.ordered("bootstrap", "--limit", self.controller, "--until", "configure", "--yes")
        self.ordered("bootstrap", *(word for name in self.nodes for word in ("--limit", name)), "--yes")
        self.serve_jobs()

    def serve_jobs(self) -> None:
        """Export Slurm's files for the gold nodes, have Ansible set the hosts up with them, and make this machine a client."""
        address = self.lab.machine(self.controller)["address"]
        with (self.site / "site.yml").open("a") as file:
            words = {"controller": self.controller, "address": address, "gpus": GPUS}
            file.write(SETTINGS.format(**words, proven_fault=self.proven_fault))
        self.ordered("export", "slurm", "--out", str(self.folder / "slurm"), "--yes")
        cgroups = (
            self.folder / "slurm/cgroup.conf"
        )  # where a machine has cgroups of both versions, Slurm wants one named
        cgroups.write_text(cgroups.read_text().replace("CgroupPlugin=autodetect", "CgroupPlugin=cgroup/v1"))
        for node in self.nodes:
            self.give(node)
        self.play(address)
        self.become_client()

    def give(self, node: str) -> None:
        """Give a host that has booted what lab hosts lack: the shared folder, and files for the devices of its GPUs."""
        share(self.lab.name, node, self.shared)
        self.ssh(node, f"sudo -n sh -c 'mkdir -p /srv/gpus; for n in 0 1 2 3 4 5 6 7; do : >{GPUS}$n; done'")
        if (
            legacy_mount(MOUNTS.read_text()) is not None
        ):  # lab hosts do not mount the hierarchy with the machine's quotas
            self.ssh(node, "sudo -n sh -c 'mkdir -p /run/cgroup-cpu && mount -t cgroup -o cpu cgroup /run/cgroup-cpu'")
        if (self.shared / "py-spy").exists():
            self.ssh(node, f"sudo -n ln -sf {self.shared}/py-spy /usr/local/bin/py-spy")

    def play(self, address: str) -> None:
        """Run `playbooks/slurm.yml` with the fleet as the inventory, as docs/how-to/slurm.md has it."""
        hosts = {"slurm_controllers": {"hosts": {self.controller: {}}}, "slurm_nodes": {"children": {"gold": {}}}}
        (self.folder / "slurm-hosts.yml").write_text(yaml.safe_dump(hosts))
        key = secrets.token_hex(64)
        (self.folder / "munge.key").write_text(key)
        variables = {"munge_secret": key, "slurm_node_controllers": [address], "slurm_controller_buffer_pool": "64M"}
        (self.folder / "munge.yml").write_text(yaml.safe_dump(variables))
        for name in ("munge.yml", "munge.key"):
            (self.folder / name).chmod(0o600)
        argv = (
            str(Path(sys.executable).with_name("ansible-playbook")), "-i", str(ROOT / "inventory/clusterctl"),
            "-i", str(self.folder / "slurm-hosts.yml"), str(ROOT / "playbooks/slurm.yml"),
            "-e", f"slurm_files={self.folder / 'slurm'}", "-e", f"@{self.folder / 'munge.yml'}",
        )  # fmt: skip
        own = {"CLUSTERCTL_SITE": str(self.site), "ANSIBLE_ROLES_PATH": str(ROOT / "roles"), "ANSIBLE_FORKS": "6"}
        own |= {"ANSIBLE_PIPELINING": "true"}
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        done = subprocess.run(
            argv, env={**os.environ, **own, "PATH": path}, check=False, capture_output=True, text=True, timeout=SECONDS
        )
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr + self.what_slurm_logs()

    def what_slurm_logs(self) -> str:
        """Return the last lines of slurmctld, and of a node's slurmd: why a node has not registered."""
        units = {self.controller: "slurmctld", self.nodes[0]: "slurmd"}
        show = "sudo -n sh -c 'systemctl status --no-pager {0}; journalctl -n 60 --no-pager -u {0}; tail -n 60 /var/log/slurm/{0}.log; true'"
        return "".join(f"\n{host}:\n{self.ssh(host, show.format(unit))}" for host, unit in units.items())

    def become_client(self) -> None:
        """Let this machine submit jobs: munge with the cluster's key, and the files with a socket of its own."""
        socket = self.folder / "munge.sock"
        options = {"socket": "munge.sock", "key-file": "munge.key", "log-file": "munged.log", "pid-file": "munged.pid"}
        options["seed-file"] = "munge.seed"
        argv = ("munged", "--force", *(f"--{name}={self.folder / file}" for name, file in options.items()))
        subprocess.run(argv, env={"PATH": PATH}, check=True, capture_output=True, timeout=300)
        conf = (self.folder / "slurm/slurm.conf").read_text()
        (self.folder / "client.conf").write_text(f"{conf}AuthInfo=socket={socket}\nAccountingStoragePass={socket}\n")

    def stop(self) -> None:
        end(self.folder / "munged.pid")


@contextmanager
def lab_pool(pool: LabPool) -> Iterator[LabPool]:
    """Set a pool up, with this machine as a client of its Slurm, while the context lasts."""
    pool.folder.mkdir()
    pool.folder.chmod(0o755)
    before = os.environ.get("SLURM_CONF")
    try:
        pool.set_up()
        os.environ["SLURM_CONF"] = pool.environment["SLURM_CONF"]
        yield pool
    finally:
        os.environ.pop("SLURM_CONF", None)
        if before is not None:
            os.environ["SLURM_CONF"] = before
        pool.stop()
        shutil.rmtree(pool.folder, ignore_errors=True)


def share(lab: str, host: str, folder: Path) -> None:
    """Mount a folder of this machine into a running lab host, at the same path.

    A process of its own does it: it enters the host's mount namespace for good (open_tree(2), setns(2), move_mount(2)).
    """
    cgroup = LabCgroup(mount_point(MOUNTS.read_text()) / LabNames(lab).cgroup)
    init = (cgroup.path / host / "init.scope/cgroup.procs").read_text().split()[0]
    argv = (sys.executable, "-m", "tests.edges.slurm.lab_pool", init, str(folder))
    subprocess.run(argv, cwd=ROOT, check=True, timeout=300)


def _share(init: str, folder: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)

    def require(result: int, call: str) -> int:
        if result < 0:
            raise OSError(ctypes.get_errno(), call)
        return result

    tree = require(libc.syscall(_OPEN_TREE, _AT_FDCWD, folder.encode(), _CLONE), "open_tree")
    with Path(f"/proc/{init}/ns/mnt").open() as namespace:
        require(libc.setns(namespace.fileno(), _NEW_MOUNTS), "setns")
    Path(folder).mkdir(parents=True, exist_ok=True)
    require(libc.syscall(_MOVE_MOUNT, tree, b"", _AT_FDCWD, folder.encode(), _EMPTY_PATH), "move_mount")


if __name__ == "__main__":
    _share(sys.argv[1], sys.argv[2])

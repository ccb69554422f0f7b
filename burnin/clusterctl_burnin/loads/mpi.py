"""How mpirun (Open MPI 4) starts nccl-tests on the nodes of a group, and with which of NCCL's variables.

NCCL gets what it would else guess: the adapters by their exact names (a leading `=`; without it `mlx5_1` is also
`mlx5_10`), the interface for its own messages, and to print on stdout why it failed. Over two nodes it would choose
NVLSTree. Its figures (469 to 487 GB/s over NDR) show nothing of the fabric: there it is held to rings
(https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from clusterctl_burnin.loads.model import Participant
from clusterctl_burnin.probe import ProbeResult

NOT_STARTED = re.compile(
    r"unable to (?:find|access|reliably start|launch)|No such file or directory|Host key verification"
)
_PLAIN = re.compile(r"^(?!-+$)(?=.*[a-z])", re.IGNORECASE)
_WARNING = re.compile(r"NCCL WARN (?P<words>\S.*)$", re.MULTILINE)
_AS_ROOT = ("env", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")

Environment = Callable[[Participant], Mapping[str, str]]
"""The variables of the ranks on one member."""


def mpirun(
    members: Sequence[Participant], ranks_per_node: int, user: str, interface: str, environment: Environment
) -> Callable[[Sequence[str]], tuple[str, ...]]:
    """Return the command that runs a program on `members`, led by the first; `interface`: for MPI's own messages.

    One application context where the variables are the same for all; else one for each member, between colons.
    """
    common = ["--mca", "plm_rsh_args", "-o BatchMode=yes"]
    if interface:
        common += ["--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", interface]
    else:
        common += ["--bind-to", "numa"]
    alike = len({tuple(environment(member).items()) for member in members}) == 1
    contexts = [tuple(members)] if alike else [(member,) for member in members]

    def runs(program: Sequence[str]) -> tuple[str, ...]:
        argv = [*(_AS_ROOT if user == "root" else ()), "mpirun"]
        for number, mine in enumerate(contexts):
            hosts = ",".join(f"{member.address}:{ranks_per_node}" for member in mine)
            argv += [":"] if number else []
            argv += ["-np", str(len(mine) * ranks_per_node), "--host", hosts, *(() if number else common)]
            for name, value in environment(mine[0]).items():
                argv += ["-x", f"{name}={value}"]
            argv += program
        return tuple(argv)

    return runs


def nccl_variables(member: Participant, devices: Sequence[str], nodes: int) -> Mapping[str, str]:
    """Return NCCL's variables for a rank on `member` that may use `devices`, in a group of `nodes` nodes."""
    found = {"NCCL_DEBUG": "WARN"}
    if devices:
        found["NCCL_IB_HCA"] = f"={','.join(devices)}"
    if member.interface:
        found["NCCL_SOCKET_IFNAME"] = f"={member.interface}"
    if nodes == 2:
        found["NCCL_ALGO"] = "Ring"
    return found


def all_reduce_perf(message_bytes: int, iterations: int) -> tuple[str, ...]:
    """Return the arguments for one size: the average over many shows nothing. Each element of the sum is checked."""
    size = str(message_bytes)
    return ("all_reduce_perf", "-b", size, "-e", size, "-f", "2", "-g", "1", "-c", "1", "-n", str(iterations))


def started(result: ProbeResult) -> bool:
    """Return whether ranks ran at all, for a result with an error."""
    return not NOT_STARTED.search(result.stderr)


def first_error(result: ProbeResult) -> str:
    """Return NCCL's own first warning; else mpirun's first line, which has the reason."""
    warned = _WARNING.search(result.stdout + result.stderr)
    if warned is not None:
        return warned["words"].strip()[:200]
    lines = (line.strip() for line in result.stderr.splitlines())
    return next((line[:200] for line in lines if _PLAIN.match(line)), result.error_output)

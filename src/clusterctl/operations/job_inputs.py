"""What a user names of a run: the user's part of its manifest, and what is submitted of each attempt.

Nothing here needs the journal or the site: a user's command on a login node has neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clusterctl.edges.workspace import code_of, digest_of, reachable
from clusterctl.fleet.job_policy import JobPolicy
from clusterctl.fleet.payloads.jobs import JobRunOrdered
from clusterctl.ports import Deadline
from clusterctl.ports.jobs import Submission

EXPORTED = ("NCCL_", "UCX_", "CUDA_", "TORCH_", "SHARP_", "GLOO_", "OMP_", "MELLANOX_")
"""Prefixes of environment variables that a run gets from its user, and that its manifest records."""
GIT_S = 120.0
"""What git may take to describe a checkout."""
_DUMPS = 2000
"""Operations that PyTorch's flight recorder keeps of each rank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestInputs:
    """What the user names: `code` is a folder with a checkout; `image` a reference with its digest."""

    code: Path
    image: str = ""
    configs: tuple[Path, ...] = ()
    seed: str = ""
    services: tuple[str, ...] = ()


def user_part(inputs: ManifestInputs, deadline: Deadline) -> Mapping[str, Any]:
    """Return the part of the manifest that is the same for all attempts of a run, as of now."""
    return {
        "code": dict(code_of(inputs.code, deadline)),
        "image": inputs.image,
        "configs": {str(file): digest_of(file) for file in inputs.configs},
        "seed": inputs.seed,
        "services": list(inputs.services),
    }


def user_part_reached(inputs: ManifestInputs, deadline: Deadline) -> Mapping[str, Any]:
    """Return the same part with how this machine reaches each service: the service of clusterctl does not try them."""
    part = user_part(inputs, deadline)
    return {**part, "services": {service: reachable(service) for service in inputs.services}}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRunRequest:
    """What is run, on how many nodes, and how it goes on after failures.

    script, arguments, options  of sbatch; `variables` are set for the job; an absolute path
    folder                      for logs, on a file system that it shares with the nodes; an absolute path
    readers, heartbeat          by which progress is seen (`jobs.progress`); a path on the nodes
    part                        the user's part of the manifest: code, image, configs, seed, and the services: their
                                names, or how the user's machine has reached each
    """

    script: str
    folder: str
    nodes: int = 1
    spares: int = 0
    arguments: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    readers: tuple[str, ...] = ("frameworks", "mllog", "jsonl")
    heartbeat: str = ""
    policy: JobPolicy = field(default_factory=JobPolicy)
    part: Mapping[str, Any] = field(default_factory=dict)

    def ordered(self, user: str = "") -> JobRunOrdered:
        """Return the order as the journal has it, with the user who submits; empty for the service itself."""
        return JobRunOrdered(
            script=self.script,
            arguments=self.arguments,
            options=self.options,
            variables=self.variables,
            nodes=self.nodes,
            spares=self.spares,
            folder=self.folder,
            readers=self.readers,
            heartbeat=self.heartbeat,
            policy=self.policy,
            submitter=user,
        )


def attempt_path(folder: str, attempt: int) -> Path:
    """Return the folder for an attempt's logs."""
    return Path(folder) / f"attempt-{attempt}"


def comment_of(run: str, attempt: int) -> str:
    """Return the comment by which the submission of an attempt is found in the scheduler."""
    return f"clusterctl:{run}:{attempt}"


def submissions(run: str, ordered: JobRunOrdered, first: tuple[str, ...]) -> tuple[Submission, ...]:
    """Return what the user of a run submits: the first attempt with its nodes, each further one held."""
    numbers = range(1, ordered.policy.retries + 2)
    return tuple(submission(run, ordered, number, first if number == 1 else ()) for number in numbers)


def submission(run: str, ordered: JobRunOrdered, number: int, nodes: tuple[str, ...]) -> Submission:
    """Return what is submitted of an attempt; without nodes it is held."""
    folder = attempt_path(ordered.folder, number)
    dumps = str(folder / "nccl_trace_rank_")
    own = {
        "CLUSTERCTL_RUN": run,
        "CLUSTERCTL_ATTEMPT": str(number),
        "CLUSTERCTL_LOGS": str(folder),
        "TORCH_FR_BUFFER_SIZE": str(_DUMPS),
        "TORCH_NCCL_TRACE_BUFFER_SIZE": str(_DUMPS),
        "TORCH_FR_DUMP_TEMP_FILE": dumps,
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": dumps,
        "TORCH_NCCL_DUMP_ON_TIMEOUT": "1",
    }
    return Submission(
        script=ordered.script,
        comment=comment_of(run, number),
        nodes=nodes,
        output=str(folder / "slurm-%j.out"),
        arguments=ordered.arguments,
        options=ordered.options,
        variables=tuple({**own, **dict(ordered.variables)}.items()),
        count=ordered.nodes,
        held=not nodes,
    )

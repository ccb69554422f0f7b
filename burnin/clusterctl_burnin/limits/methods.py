"""How each load of a limits file is run, so that its figures are comparable. One class per load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from clusterctl.formats.documents import Count, Within

Positive = Annotated[int, Within(gt=0)]


class Strict:
    """A part of a limits file: unknown fields are errors where pydantic reads it."""

    __slots__ = ()
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PairMethod(Strict):
    """How ib_write_bw is run for `ib_write_bw_min` to apply; time-out for one rail of one pair, in seconds.

    `gpu_memory`: the adapters read and write the host's memory (`none`), or that of the GPU nearest to each, which the
    module nvidia-peermem (`peermem`) or the kernel's dma-buf (`dmabuf`) gives them. perftest must be built with CUDA.
    """

    message_bytes: Positive
    iterations: Positive
    timeout_seconds: Positive
    gpu_memory: Literal["none", "peermem", "dmabuf"] = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMethod(Strict):
    """How a group of nodes sums a buffer. It has `group_nodes` nodes where there are as many, never fewer than
    `min_nodes`. `widest_nodes`: the limit also applies to groups of up to so many, in which many pairs of nodes are
    together at once; 0: it does not.
    """

    message_bytes: Positive
    iterations: Positive
    group_nodes: Positive
    min_nodes: Positive
    widest_nodes: Count = 0
    timeout_seconds: Positive


@dataclass(frozen=True, slots=True, kw_only=True)
class AllReduceMethod(GroupMethod):
    """How the sum is run for `all_reduce_busbw_min` to apply. `mpi_interface` is the network interface for MPI's own
    messages; empty leaves the choice to MPI.

    `engine`: nccl-tests started by mpirun, or PyTorch in the Python of `gpu_load`, over NCCL or (`backend`) gloo.
    """

    ranks_per_node: Positive
    mpi_interface: str = ""
    engine: Literal["nccl_tests", "torch"] = "nccl_tests"
    backend: Literal["gloo", "nccl"] = "nccl"


@dataclass(frozen=True, slots=True, kw_only=True)
class RailMethod(GroupMethod):
    """How it is run on each rail for `all_reduce_rail_busbw_min` to apply: one rank a node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HangMethod(Strict):
    """How a group sums for hours until it hangs. `stall_seconds` without a step are a hang; `seconds` is the default
    of a suite. It runs by PyTorch in the Python of `gpu_load`.
    """

    message_bytes: Positive
    ranks_per_node: Positive
    group_nodes: Positive
    min_nodes: Positive
    seconds: Positive
    stall_seconds: Positive
    backend: Literal["gloo", "nccl"] = "nccl"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingMethod(Strict):
    """How a group trains: a transformer of `layers` of a `width`, on each rank `batch` sequences a step, for `seconds`.

    `stall_seconds` without a step are a hang. It runs by PyTorch in the Python of `gpu_load`. As given here the
    gradients are 1.6 GB, and the model with its activations takes some 8 GB of a GPU.
    """

    layers: Positive = 2
    width: Annotated[int, Within(ge=8)] = 4096
    sequence: Positive = 1024
    batch: Positive = 8
    ranks_per_node: Positive = 8
    group_nodes: Positive = 8
    min_nodes: Annotated[int, Within(ge=2)] = 2
    seconds: Positive = 60
    stall_seconds: Positive = 120
    backend: Literal["gloo", "nccl"] = "nccl"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeMethod(Strict):
    """How the GPUs of one node sum a buffer for `all_reduce_node_busbw_min` to apply: `ranks`, one each."""

    message_bytes: Positive
    iterations: Positive
    ranks: Annotated[int, Within(ge=2)]
    timeout_seconds: Positive


@dataclass(frozen=True, slots=True, kw_only=True)
class StartMethod(Strict):
    """How often NCCL is started on one node, and the seconds that one start may take at most."""

    starts: Positive = 200
    start_seconds: Positive = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class EthernetPairMethod(Strict):
    """How iperf3 sends for `ethernet_pair_min` to apply: `processes`, each with `streams`, for `seconds` each way.

    `timeout_seconds`: for start and end of both ways.
    """

    processes: Annotated[int, Within(ge=1, le=64)] = 8
    streams: Annotated[int, Within(ge=1, le=64)] = 2
    seconds: Positive = 15
    timeout_seconds: Positive = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuLoadMethod(Strict):
    """How GPUs are loaded for the limits of `gpu_load` to apply: the side of the square matrices, the buffers copied.

    `seconds` is the default of a suite. `python` is a Python on the node that has PyTorch for CUDA.
    """

    python: Annotated[str, Within(pattern=r"^/")]
    seconds: Positive
    matrix_size: Positive
    buffer_mib: Annotated[int, Within(ge=4)]


@dataclass(frozen=True, slots=True, kw_only=True)
class NvmeReadMethod(Strict):
    """How fio reads for `nvme_read_iops_min` to apply: `jobs` processes a drive, each with `depth` reads waiting."""

    seconds: Positive
    ramp_seconds: Count
    jobs: Positive
    depth: Positive


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageReadMethod(Strict):
    """How long a node reads from the site's storage, and with how many processes at once."""

    seconds: Positive = 30
    readers: Annotated[int, Within(ge=1, le=64)] = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class StressNgMethod(Strict):
    """How long stress-ng works, and on how much of the memory that is available."""

    seconds: Positive
    memory_percent: Annotated[int, Within(ge=1, le=90)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Methods(Strict):
    """How each load is run."""

    ib_write_bw: PairMethod
    all_reduce: AllReduceMethod
    all_reduce_rail: RailMethod
    all_reduce_node: NodeMethod
    gpu_load: GpuLoadMethod
    nvme_read: NvmeReadMethod
    stress_ng: StressNgMethod
    hang_hunt: HangMethod
    training: TrainingMethod = TrainingMethod()
    nccl_init: StartMethod = StartMethod()
    ethernet_pairs: EthernetPairMethod = EthernetPairMethod()
    storage_read: StorageReadMethod = StorageReadMethod()

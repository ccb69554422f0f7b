"""What the dashboards of the role grafana show: panels and their queries. `grafana_dashboards` builds them.

Labels are those that the role prometheus gives: instance, node, rack, unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WHOLE, HALF, THIRD = 24, 12, 8

Query = tuple[str, str]
"""A PromQL expression and the legend of its series."""


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A graph over time, or with `now` the values of this moment. `unit`: as Grafana names it."""

    title: str
    queries: Sequence[Query]
    unit: str = "short"
    now: bool = False
    span: int = HALF
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class Board:
    """A dashboard; its uid is `clusterctl-NAME`. `variable`: a label of `up` to choose from."""

    name: str
    title: str
    panels: Sequence[Panel]
    variable: str = ""


CHECK = "instance, check, unit"
LOWEST = f'min by ({CHECK}) (clusterctl_burnin_limit{{side="min"}})'
HIGHEST = f'max by ({CHECK}) (clusterctl_burnin_limit{{side="max"}})'
GPU = "instance, node, rack, unit, gpu"
FILESYSTEMS = 'fstype!~"tmpfs|ramfs|squashfs|iso9660|overlay|fuse.*|nfs.*"'

FLEET = Board(
    name="fleet",
    title="Fleet",
    panels=(
        Panel(title="Nodes by stage", queries=(("sum by (stage) (clusterctl_nodes)", "{{stage}}"),)),
        Panel(
            title="Stopped nodes by cause",
            queries=(("sum by (code) (clusterctl_nodes_stopped)", "{{code}}"),),
            text="The code of the worst finding; docs/reference/finding-codes.md explains each.",
        ),
        Panel(
            title="Open incidents",
            queries=(("sum by (about, severity) (clusterctl_incidents)", "{{about}} {{severity}}"),),
            span=THIRD,
        ),
        Panel(
            title="Gold nodes: needed, spares, missing",
            queries=(("max by (what) (clusterctl_pool_nodes)", "{{what}}"),),
            now=True,
            span=THIRD,
        ),
        Panel(title="On hold", queries=(("clusterctl_nodes_on_hold", "held"),), now=True, span=THIRD),
        Panel(title="Exporters that do not answer", queries=(("sum by (job) (up == bool 0)", "{{job}}"),)),
        Panel(title="Acts in flight", queries=(("sum by (act) (clusterctl_acts_in_flight)", "{{act}}"),)),
        Panel(
            title="Age of clusterctl's metrics",
            queries=(("time() - clusterctl_metrics_timestamp_seconds", "{{instance}}"),),
            unit="s",
            span=THIRD,
        ),
        Panel(
            title="Size of the journal",
            queries=(("clusterctl_journal_bytes", "{{instance}}"),),
            unit="bytes",
            span=THIRD,
        ),
        Panel(title="Nodes that a run acts on", queries=(("clusterctl_claims", "{{instance}}"),), span=THIRD),
    ),
)

NODE = Board(
    name="node",
    title="Node",
    variable="node",
    panels=(
        Panel(
            title="Processors at work",
            queries=(
                ('1 - avg by (instance) (rate(node_cpu_seconds_total{node="$node",mode="idle"}[5m]))', "busy"),
                ('avg by (mode) (rate(node_cpu_seconds_total{node="$node",mode=~"iowait|steal"}[5m]))', "{{mode}}"),
            ),
            unit="percentunit",
        ),
        Panel(
            title="Memory available",
            queries=(
                ('node_memory_MemAvailable_bytes{node="$node"}', "available"),
                ('node_memory_MemTotal_bytes{node="$node"}', "total"),
            ),
            unit="bytes",
        ),
        Panel(
            title="GPU temperatures",
            queries=(('max by (gpu) (DCGM_FI_DEV_GPU_TEMP{node="$node"})', "GPU {{gpu}}"),),
            unit="celsius",
        ),
        Panel(
            title="GPU power",
            queries=(('max by (gpu) (DCGM_FI_DEV_POWER_USAGE{node="$node"})', "GPU {{gpu}}"),),
            unit="watt",
        ),
        Panel(
            title="GPUs at work",
            queries=(('max by (gpu) (DCGM_FI_DEV_GPU_UTIL{node="$node"})', "GPU {{gpu}}"),),
            unit="percent",
        ),
        Panel(
            title="InfiniBand traffic",
            queries=(
                ('rate(node_infiniband_port_data_received_bytes_total{node="$node"}[5m])', "{{device}} received"),
                ('-rate(node_infiniband_port_data_transmitted_bytes_total{node="$node"}[5m])', "{{device}} sent"),
            ),
            unit="Bps",
        ),
        Panel(
            title="Ethernet traffic",
            queries=(
                ('rate(node_network_receive_bytes_total{node="$node",device!="lo"}[5m])', "{{device}} received"),
                ('-rate(node_network_transmit_bytes_total{node="$node",device!="lo"}[5m])', "{{device}} sent"),
            ),
            unit="Bps",
        ),
        Panel(
            title="File systems",
            queries=(
                (
                    f'1 - node_filesystem_avail_bytes{{node="$node",{FILESYSTEMS}}} / node_filesystem_size_bytes',
                    "{{mountpoint}}",
                ),
            ),
            unit="percentunit",
        ),
        Panel(
            title="Memory errors",
            queries=(
                (
                    'increase(node_edac_correctable_errors_total{node="$node"}[1h])',
                    "corrected, controller {{controller}}",
                ),
                ('node_edac_uncorrectable_errors_total{node="$node"}', "uncorrectable, controller {{controller}}"),
            ),
        ),
        Panel(title="Clock offset", queries=(('node_timex_offset_seconds{node="$node"}', "offset"),), unit="s"),
        Panel(
            title="Burn-in figures of the worst part",
            queries=(('clusterctl_burnin_figure{node="$node"}', "{{check}} ({{unit}})"),),
            now=True,
            span=WHOLE,
        ),
    ),
)

GPUS = Board(
    name="gpus",
    title="GPUs",
    panels=(
        Panel(
            title="Hottest GPUs",
            queries=((f"topk(10, max by ({GPU}) (DCGM_FI_DEV_GPU_TEMP))", "{{instance}} GPU {{gpu}}"),),
            unit="celsius",
        ),
        Panel(
            title="Slowed down by heat",
            queries=(
                (
                    f"topk(10, max by ({GPU}) (rate(DCGM_FI_DEV_THERMAL_VIOLATION[10m])) / 1e9)",
                    "{{instance}} GPU {{gpu}}",
                ),
            ),
            unit="percentunit",
            text="Share of the time in which a GPU ran slower because of heat.",
        ),
        Panel(title="Power by rack", queries=(("sum by (rack) (DCGM_FI_DEV_POWER_USAGE)", "{{rack}}"),), unit="watt"),
        Panel(
            title="At work, by rack", queries=(("avg by (rack) (DCGM_FI_DEV_GPU_UTIL)", "{{rack}}"),), unit="percent"
        ),
        Panel(
            title="Tensor cores at work, by rack",
            queries=(("avg by (rack) (DCGM_FI_PROF_PIPE_TENSOR_ACTIVE)", "{{rack}}"),),
            unit="percentunit",
        ),
        Panel(
            title="Memory in use, by rack",
            queries=(
                (
                    "sum by (rack) (DCGM_FI_DEV_FB_USED) / sum by (rack) (DCGM_FI_DEV_FB_USED + DCGM_FI_DEV_FB_FREE)",
                    "{{rack}}",
                ),
            ),
            unit="percentunit",
        ),
        Panel(
            title="GPUs with an Xid",
            queries=((f"max by ({GPU}) (DCGM_FI_DEV_XID_ERRORS > 0)", "{{instance}} GPU {{gpu}}"),),
            now=True,
            text="The last Xid since the exporter was started, harmless ones included.",
        ),
        Panel(
            title="NVSwitches: last fatal SXid",
            queries=(
                (
                    "max by (instance, node, rack, nvswitch) (DCGM_FI_DEV_NVSWITCH_FATAL_ERRORS < 1e6)",
                    "{{instance}} {{nvswitch}}",
                ),
            ),
            now=True,
        ),
        Panel(
            title="Memory errors",
            queries=(
                (f"sum by ({GPU}) (DCGM_FI_DEV_ECC_DBE_VOL_TOTAL < 1e15)", "uncorrectable {{instance}} GPU {{gpu}}"),
                (
                    f"topk(10, sum by ({GPU}) (increase(DCGM_FI_DEV_ECC_SBE_VOL_TOTAL[1h])))",
                    "corrected {{instance}} GPU {{gpu}}",
                ),
            ),
        ),
        Panel(
            title="Replaced rows of memory",
            queries=((f"max by ({GPU}) (DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS)", "{{instance}} GPU {{gpu}}"),),
        ),
        Panel(
            title="PCIe replays within an hour",
            queries=(
                (
                    f"topk(10, max by ({GPU}) (increase(DCGM_FI_DEV_PCIE_REPLAY_COUNTER[1h])))",
                    "{{instance}} GPU {{gpu}}",
                ),
            ),
        ),
        Panel(
            title="GPUs that report",
            queries=(("count by (rack) (count by (rack, instance, UUID) (DCGM_FI_DEV_GPU_TEMP))", "{{rack}}"),),
        ),
    ),
)

INFINIBAND = Board(
    name="infiniband",
    title="InfiniBand",
    panels=(
        Panel(
            title="Links of the last judgement",
            queries=(("max by (what) (clusterctl_links)", "{{what}}"),),
            now=True,
            span=THIRD,
            text="By clusterctl cable and the nights, switches included.",
        ),
        Panel(
            title="Bad links by kind and rack",
            queries=(("sum by (kind, rack) (clusterctl_bad_links)", "{{kind}} {{rack}}"),),
            span=THIRD,
        ),
        Panel(
            title="Faults of the fabric",
            queries=(("sum by (kind) (clusterctl_fabric_faults)", "{{kind}}"),),
            span=THIRD,
        ),
        Panel(
            title="Ports by physical state",
            queries=(
                ('count_values by (rack) ("state", node_infiniband_physical_state_id)', "{{rack}} state {{state}}"),
            ),
            text="5: link up; 3: switched off; 2: polling.",
        ),
        Panel(
            title="Links that went down within an hour",
            queries=(("increase(node_infiniband_link_downed_total[1h])", "{{instance}} {{device}}/{{port}}"),),
        ),
        Panel(
            title="Symbol errors within an hour",
            queries=(
                ("topk(10, increase(node_infiniband_symbol_error_total[1h]))", "{{instance}} {{device}}/{{port}}"),
            ),
        ),
        Panel(
            title="Recoveries within an hour",
            queries=(
                (
                    "topk(10, increase(node_infiniband_link_error_recovery_total[1h]))",
                    "{{instance}} {{device}}/{{port}}",
                ),
            ),
        ),
        Panel(
            title="Traffic by rack",
            queries=(
                ("sum by (rack) (rate(node_infiniband_port_data_received_bytes_total[5m]))", "{{rack}} received"),
                ("-sum by (rack) (rate(node_infiniband_port_data_transmitted_bytes_total[5m]))", "{{rack}} sent"),
            ),
            unit="Bps",
        ),
        Panel(
            title="Waiting to send",
            queries=(
                ("topk(10, rate(node_infiniband_port_transmit_wait_total[5m]))", "{{instance}} {{device}}/{{port}}"),
            ),
            text="Ticks of the port in which it had data and no credit: congestion.",
        ),
    ),
)

STORAGE = Board(
    name="storage",
    title="Storage",
    panels=(
        Panel(
            title="Fullest file systems",
            queries=(
                (
                    f"topk(10, 1 - node_filesystem_avail_bytes{{{FILESYSTEMS}}} / node_filesystem_size_bytes)",
                    "{{instance}} {{mountpoint}}",
                ),
            ),
            unit="percentunit",
        ),
        Panel(
            title="ZFS pools by state",
            queries=(("sum by (state) (node_zfs_zpool_state == 1)", "{{state}}"),),
            now=True,
        ),
        Panel(
            title="Read",
            queries=(("topk(10, sum by (instance) (rate(node_disk_read_bytes_total[5m])))", "{{instance}}"),),
            unit="Bps",
        ),
        Panel(
            title="Written",
            queries=(("topk(10, sum by (instance) (rate(node_disk_written_bytes_total[5m])))", "{{instance}}"),),
            unit="Bps",
        ),
        Panel(
            title="Busiest drives",
            queries=(("topk(10, rate(node_disk_io_time_seconds_total[5m]))", "{{instance}} {{device}}"),),
            unit="percentunit",
        ),
        Panel(
            title="NFS: requests that were sent again",
            queries=(("topk(10, rate(node_nfs_rpc_retransmissions_total[5m]))", "{{instance}}"),),
        ),
        Panel(
            title="NFS: requests for metadata",
            queries=(
                (
                    'topk(10, sum by (instance) (rate(node_nfs_requests_total{method!~"Read|Write|Commit|Null"}[5m])))',
                    "{{instance}}",
                ),
            ),
            unit="reqps",
        ),
        Panel(
            title="NFS: requests to read and write",
            queries=(
                (
                    'topk(10, sum by (instance, method) (rate(node_nfs_requests_total{method=~"Read|Write"}[5m])))',
                    "{{instance}} {{method}}",
                ),
            ),
            unit="reqps",
        ),
        Panel(title="RAID: drives by state", queries=(("sum by (state) (node_md_disks)", "{{state}}"),), now=True),
        Panel(
            title="NVMe drives by firmware",
            queries=(("count by (model, firmware_revision) (node_nvme_info)", "{{model}} {{firmware_revision}}"),),
            now=True,
        ),
    ),
)

INSTALLS = Board(
    name="installs",
    title="Installs",
    panels=(
        Panel(
            title="Installs in flight",
            queries=(('sum by (act) (clusterctl_acts_in_flight{act=~"install.*"})', "{{act}}"),),
            span=THIRD,
        ),
        Panel(
            title="On the way to gold",
            queries=(('sum by (stage) (clusterctl_nodes{stage!~"gold|retired"})', "{{stage}}"),),
            span=THIRD,
        ),
        Panel(
            title="Stopped by a step",
            queries=(("sum by (step, code) (clusterctl_nodes_stopped)", "{{step}} {{code}}"),),
            span=THIRD,
        ),
        Panel(
            title="Durations of steps: median",
            queries=(('clusterctl_step_duration_seconds{quantile="0.5"}', "{{step}}"),),
            unit="s",
        ),
        Panel(
            title="Durations of steps: longest",
            queries=(('clusterctl_step_duration_seconds{quantile="1"}', "{{step}}"),),
            unit="s",
        ),
        Panel(
            title="Reports of the last 24 hours",
            queries=(("sum by (step, verdict) (clusterctl_step_reports)", "{{step}} {{verdict}}"),),
            now=True,
            span=WHOLE,
        ),
    ),
)

NIGHTS = Board(
    name="nights",
    title="Nights",
    panels=(
        Panel(
            title="Since the last night's end",
            queries=(("time() - clusterctl_nightly_last_end_timestamp_seconds", "{{instance}}"),),
            unit="s",
            span=THIRD,
        ),
        Panel(
            title="Nodes of the last night",
            queries=(
                ("clusterctl_nightly_tested_nodes", "tested"),
                ("clusterctl_nightly_failed_nodes", "failed"),
                ("clusterctl_nightly_overdue_nodes", "overdue"),
            ),
            now=True,
            span=THIRD,
        ),
        Panel(title="Repeat offenders", queries=(("clusterctl_repeat_offenders", "{{what}}"),), now=True, span=THIRD),
        Panel(
            title="Oldest evidence of gold nodes",
            queries=(("topk(10, time() - clusterctl_evidence_timestamp_seconds)", "{{node}}"),),
            unit="s",
        ),
        Panel(
            title="Lowest figures against their limit",
            queries=(
                (
                    f"bottomk(10, clusterctl_burnin_figure / on ({CHECK}) group_left () {LOWEST})",
                    "{{node}} {{check}}",
                ),
            ),
            unit="percentunit",
            text="Of checks with a lowest value: below 100 % the limit is missed.",
        ),
        Panel(
            title="Highest figures against their limit",
            queries=(
                (
                    f"topk(10, clusterctl_burnin_figure / on ({CHECK}) group_left () {HIGHEST})",
                    "{{node}} {{check}}",
                ),
            ),
            unit="percentunit",
            text="Of checks with a highest value: above 100 % the limit is missed.",
        ),
    ),
)

JOBS = Board(
    name="jobs",
    title="Jobs",
    panels=(
        Panel(
            title="Failures of the last 7 days by layer",
            queries=(("sum by (layer) (clusterctl_job_failures)", "{{layer}}"),),
            text="What clusterctl job why --record has attributed.",
        ),
        Panel(
            title="Failures of the last 7 days by certainty",
            queries=(("sum by (certainty) (clusterctl_job_failures)", "{{certainty}}"),),
        ),
        Panel(
            title="Work of all GPUs",
            queries=(
                ("avg(DCGM_FI_DEV_GPU_UTIL) / 100", "at work"),
                ("avg(DCGM_FI_PROF_PIPE_TENSOR_ACTIVE)", "tensor cores"),
            ),
            unit="percentunit",
        ),
        Panel(
            title="GPUs without work",
            queries=(("count by (rack) (DCGM_FI_DEV_GPU_UTIL == 0)", "{{rack}}"),),
        ),
        Panel(
            title="Gold nodes that work lacks",
            queries=(('clusterctl_pool_nodes{what="missing"}', "missing"),),
            now=True,
        ),
        Panel(
            title="Open incidents of nodes and links",
            queries=(('sum by (about) (clusterctl_incidents{about=~"nodes|links|fabric"})', "{{about}}"),),
        ),
    ),
)

BOARDS = (FLEET, NODE, GPUS, INFINIBAND, STORAGE, INSTALLS, NIGHTS, JOBS)

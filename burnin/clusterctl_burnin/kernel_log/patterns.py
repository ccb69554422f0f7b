"""Kernel messages, other than NVIDIA's, that keep a node from training. One line each: add what the field teaches."""

from __future__ import annotations

import re
from dataclasses import dataclass

from clusterctl.fleet.finding import Verdict


@dataclass(frozen=True, slots=True)
class Pattern:
    """`regex` may name the part with a group `part`; else the finding is about `subject`."""

    subject: str
    regex: re.Pattern[str]
    verdict: Verdict
    cause: str
    remedy: str


PATTERNS = (
    Pattern(
        "hca",
        re.compile(r"mlx5_core (?P<part>[0-9a-f:.]+):.*timeout\. Will cause a leak of a command resource"),
        Verdict.FAIL,
        "the adapter's firmware does not answer",
        "reboot the node; if it comes back, replace the adapter",
    ),
    Pattern(
        "hca",
        re.compile(r"mlx5_core (?P<part>[0-9a-f:.]+):.*(?:health compromised|unrecoverable hardware error)"),
        Verdict.FAIL,
        "the adapter's firmware is dead",
        "reboot the node; if it comes back, replace the adapter",
    ),
    Pattern(
        "hca",
        re.compile(r"mlx5_core (?P<part>[0-9a-f:.]+):.*Detected insufficient power on the PCIe slot"),
        Verdict.FAIL,
        "the adapter's slot gives too little power",
        "check that the slot's or riser's power lead is plugged in",
    ),
    Pattern(
        "hca",
        re.compile(r"mlx5_core (?P<part>[0-9a-f:.]+):.*Port module event.*High Temp"),
        Verdict.FAIL,
        "a transceiver is too hot",
        "check that air reaches the adapter and no blanking panel is missing",
    ),
    Pattern(
        "node",
        re.compile(r"EDAC .*\b[1-9]\d* UE\b|mce: \[Hardware Error\]:.*\bUncorrected\b"),
        Verdict.FAIL,
        "an uncorrectable error of the machine's memory or processor",
        "find the module in the BMC's event log and replace it",
    ),
    Pattern(
        "pci",
        re.compile(
            r"(?P<part>[0-9a-f]{4}:[0-9a-f:.]+): (?:PCIe Bus Error|AER):.*severity=Uncorrect(?:ed|able) \(Fatal\)"
        ),
        Verdict.FAIL,
        "a fatal PCIe error",
        "power off, reseat the device and its cable or riser",
    ),
    Pattern(
        "nvme",
        re.compile(
            r"nvme (?P<part>nvme\d+): (?:I/O .* timeout|controller is down|Device not ready|Removing after probe)"
        ),
        Verdict.FAIL,
        "a drive does not answer",
        "update its firmware, reseat it, then replace it",
    ),
    Pattern(
        "node",
        re.compile(r"EXT4-fs error|Remounting filesystem read-only|XFS \(\S+\): Corruption"),
        Verdict.FAIL,
        "a file system is damaged",
        "look for errors of the drive below it; install the node again",
    ),
    Pattern(
        "node",
        re.compile(
            r"soft lockup - CPU#\d+ stuck|Watchdog detected hard LOCKUP|"
            r"rcu: INFO: .*detected stall|self-detected stall on CPU"
        ),
        Verdict.FAIL,
        "a processor was stuck in the kernel",
        "look for driver errors in the same minute; reboot the node",
    ),
    Pattern(
        "node",
        re.compile(r"invoked oom-killer|Out of memory: Killed process"),
        Verdict.WARN,
        "the kernel ran out of memory and killed a process",
        "find which process it was; reboot the node before it goes to gold",
    ),
    Pattern(
        "gpu",
        re.compile(
            r"NVRM: (?:GPU (?P<part>[0-9a-f:.]+): )?(?:RmInitAdapter|rm_init_adapter) failed|NV_ERR_RESET_REQUIRED"
        ),
        Verdict.FAIL,
        "the driver cannot start a GPU",
        "power the node off and on; if it comes back, reseat the GPU, then replace it",
    ),
    Pattern(
        "node",
        re.compile(r"NVRM: (?:knvlinkUpdatePostRxDetectLinkMask|knvlinkDiscoverPostRxDetLinks)_"),
        Verdict.FAIL,
        "an NVLink was not detected when the driver started",
        "power the node off and on; if it comes back, reseat the GPU's tray, then replace it",
    ),
    Pattern(
        "node",
        re.compile(r"nvidia[_-]peermem.*(?:invalid context|ERROR|[Ff]ailed)"),
        Verdict.FAIL,
        "nvidia-peermem cannot hand GPU memory to the adapters",
        "build the NVIDIA driver again after the OFED (configure the node), then reboot it",
    ),
    Pattern(
        "pci",
        re.compile(
            r"(?P<part>[0-9a-f]{4}:[0-9a-f:.]+): (?:PCIe Bus Error|AER):.*"
            r"(?:severity=Uncorrect(?:ed|able) \(Non-Fatal\)|Uncorrect(?:ed|able) \(Non-Fatal\) error)"
        ),
        Verdict.WARN,
        "a PCIe error that could not be corrected",
        "if it comes back, reseat the device and its cable or riser",
    ),
    Pattern(
        "pci",
        re.compile(
            r"pcieport (?P<part>[0-9a-f]{4}:[0-9a-f:.]+): (?:pciehp: Slot\([^)]*\): Link Down|"
            r"broken device, retraining|"
            r"Data Link Layer Link Active not set)"
        ),
        Verdict.FAIL,
        "a PCIe link went down",
        "power the node off and on; if it comes back, reseat the device below this port and its cable or riser",
    ),
    Pattern(
        "node",
        re.compile(
            r"(?:Core|Package) temperature(?:/speed)? above threshold, cpu clock throttled|CPU\d+: .*temperature above"
        ),
        Verdict.FAIL,
        "a processor was slowed down by heat",
        "check that the fans run, the heat sink is seated and the inlet air is cold",
    ),
    Pattern(
        "node",
        re.compile(r"Hardware error from APEI.*(?:fatal|uncorrect)|mce: \[Hardware Error\]: (?:Machine check|CPU \d+)"),
        Verdict.FAIL,
        "the processor reported a hardware error",
        "find the part in the BMC's event log and replace it",
    ),
    Pattern(
        "node",
        re.compile(r"EDAC .*\b[1-9]\d* CE\b"),
        Verdict.WARN,
        "a memory error was corrected",
        "watch the module that the message names; ten a day are a reason to replace it",
    ),
    Pattern(
        "drive",
        re.compile(r"(?:Buffer I/O error on dev|I/O error, dev|md/raid.*: Disk failure on) (?P<part>\w+)"),
        Verdict.FAIL,
        "a drive does not read or write",
        "read smartctl -a of the drive; reseat it, then replace it",
    ),
    Pattern(
        "node",
        re.compile(r"WARNING: Pool '[^']+' has encountered an uncorrectable I/O failure"),
        Verdict.FAIL,
        "a ZFS pool has lost its disks and is suspended",
        "read zpool status on the node, reseat or replace the disk, then zpool clear",
    ),
    Pattern(
        "node",
        re.compile(r"Kernel panic - not syncing|BUG: unable to handle|general protection fault|kernel BUG at"),
        Verdict.FAIL,
        "the kernel has hit an error of its own",
        "reboot the node; if it comes back, look for the driver that the stack names",
    ),
    Pattern(
        "node",
        re.compile(r"task \S+:\d+ blocked for more than \d+ seconds"),
        Verdict.WARN,
        "a process hung in the kernel",
        "read the stack below the message: a file system, or the GPU's driver",
    ),
    Pattern(
        "node",
        re.compile(r"nfs: server \S+ not responding|LustreError: .*(?:evicted|ETIMEDOUT|-110)|LNetError"),
        Verdict.WARN,
        "shared storage did not answer",
        "if several nodes log this in the same minute, check the storage; else check this node's network",
    ),
    Pattern(
        "hca",
        re.compile(r"NETDEV WATCHDOG:.*mlx5_core.*timed out|mlx5_core (?P<part>[0-9a-f:.]+).*TX timeout detected"),
        Verdict.WARN,
        "an adapter did not send for a while",
        "if it comes back within the hour, reboot the node and open a case with NVIDIA",
    ),
)

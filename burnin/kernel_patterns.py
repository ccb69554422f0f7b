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
        "the adapter's firmware has stopped to answer",
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
        "see that the slot's or riser's power lead is plugged in",
    ),
    Pattern(
        "hca",
        re.compile(r"mlx5_core (?P<part>[0-9a-f:.]+):.*Port module event.*High Temp"),
        Verdict.FAIL,
        "a transceiver is too hot",
        "see that air reaches the adapter and no blanking panel is missing",
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
        "a drive has stopped to answer",
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
        re.compile(r"soft lockup - CPU#\d+ stuck|Watchdog detected hard LOCKUP|self-detected stall on CPU"),
        Verdict.FAIL,
        "a processor was stuck in the kernel",
        "look for driver errors in the same minute; reboot the node",
    ),
    Pattern(
        "node",
        re.compile(r"invoked oom-killer"),
        Verdict.WARN,
        "the kernel ran out of memory and killed a process",
        "see which process it was; reboot the node before it goes to gold",
    ),
)

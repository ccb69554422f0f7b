"""What one line means: the answer of `lines` for logs of jobs, and of `kernel_lines` for logs of kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from clusterctl.fleet.blame import Blame, Failure

MAX_LINE = 4096
"""Characters of a line that rules read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What a line means by one rule.

    rule     name of the rule: `cuda_ecc`, `xid_79`, `sxid_22013`, `kernel_nvme`
    parts    what the line names: rank, peer, device, node, gpu, iteration …
    source   where the format and the meaning are from
    """

    rule: str
    blame: Blame
    failure: Failure
    meaning: str
    remedy: str
    source: str
    parts: Mapping[str, str] = field(default_factory=dict)

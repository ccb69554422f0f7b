"""One obscure line: what it means, what is to blame, what to do."""

from __future__ import annotations

from clusterctl.jobs.kernel_lines import from_kernel, kernel_meaning
from clusterctl.jobs.line_rules import shipped_lines
from clusterctl.jobs.meaning import Meaning


def explain(line: str) -> Meaning | None:
    """Return what a line of whatever log means; None where no rule knows it.

    A line in the form of a kernel log is read by the kernel's rules alone: text of programs is wrong there.
    """
    if from_kernel(line):
        return kernel_meaning(line)
    return shipped_lines().meaning(line) or kernel_meaning(line)

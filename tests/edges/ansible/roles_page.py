"""docs/reference/roles.md, generated from the roles and their cases: nothing on it is written by hand."""

from __future__ import annotations

from tests.edges.ansible.role_cases import LabCase, lab_case, load, templates
from tests.paths import ROOT

PAGE = ROOT / "docs/reference/roles.md"

_HEAD = """\
# Roles

What each role does, and where it was seen at work: written by `make roles-table` from each role's specification and from
tests/edges/ansible/roles/ROLE/lab.yml. *Namespace host*: a lab host with systemd, apt and a network of its own on this machine's
kernel, Debian 12; each role that is not left out there is predicted by check mode, applied, applied again without a change,
and once more as after a run that broke off (tests/edges/ansible/test_roles_lab.py). *Virtual metal*: a machine in QEMU with a kernel of its own. Every template of
every role is rendered and held against a golden file. On 2026-11-24 the column
*namespace host* was run with Ubuntu 24.04 hosts, too (63 passed in 21 min; [how](../how-to/lab.md#hosts-of-another-release)). The
cells of tests/metal/test_roles_on_metal.py hold for Debian 12 and for Ubuntu 24.04, installed by clusterctl's own PXE from its own image
(2026-11-28, kernel 6.8, ZFS of the kernel's package: [11 passed](../soak/2026-11-28-roles-on-ubuntu.md)); other cells of *virtual metal* ran Debian 12 only.
Ubuntu 22.04 is supported by what its packages are known to hold. **None of them has run on real hardware yet.**

| role | what it does | namespace host | virtual metal | templates rendered |
| --- | --- | --- | --- | --- |
"""


def page(roles: tuple[str, ...]) -> str:
    """The whole page."""
    return _HEAD + "".join(_row(role) for role in roles)


def _row(role: str) -> str:
    case = lab_case(role)
    does = load(role, "meta/argument_specs.yml")["argument_specs"]["main"]["short_description"]
    cells = (
        f"[{role}](../../roles/{role}/README.md)",
        does,
        _on_namespaces(case),
        case.metal or "never",
        len(templates(role)),
    )
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |\n"


def _on_namespaces(case: LabCase) -> str:
    if case.not_here:
        return f"never: {case.not_here}"
    if case.elsewhere:
        return f"applied by {case.elsewhere}: {case.really}"
    return f"applied: {case.really}" if case.really else "applied"


def _cell(value: object) -> str:
    return " ".join(str(value).split()).replace("|", "\\|")

"""docs/reference/roles.md has for each role what its own files have, and no more than was tried."""

from __future__ import annotations

import os
from collections.abc import Iterable

from tests.edges.ansible.role_cases import CASES, ROLES, LabCase, lab_case
from tests.edges.ansible.roles_page import PAGE, page
from tests.paths import needs_checkout


@needs_checkout
def test_the_page_follows_the_cases() -> None:
    """Written where CLUSTERCTL_WRITE_PAGES is set; never edited by hand."""
    text = page(ROLES)
    if os.environ.get("CLUSTERCTL_WRITE_PAGES"):
        PAGE.write_text(text, encoding="utf-8")

    assert PAGE.read_text(encoding="utf-8") == text


def test_no_case_is_left_of_a_role_that_is_gone() -> None:
    """A folder of cases without its role would never be read."""
    assert {path.name for path in CASES.iterdir() if path.is_dir()} == set(ROLES)


def test_a_role_is_either_applied_or_left_out() -> None:
    """A role that was never applied claims nothing real, and needs no variables."""
    assert [case.role for case in _cases() if case.not_here and (case.really or case.variables or case.after)] == []


def _cases() -> Iterable[LabCase]:
    return (lab_case(role) for role in ROLES)

"""One line of a log: layer, certainty and role, held against labels that were written before the rules."""

from __future__ import annotations

import pytest

from clusterctl.operations.line_explanation import explain
from tests.jobs.labels import Labelled, labelled


@pytest.mark.parametrize("case", labelled(), ids=lambda case: f"{case.source}-{case.line[:40]}")
def test_a_line_means_what_its_label_has(case: Labelled) -> None:
    """Real lines of public threads; those with the label `none` mean nothing."""
    found = explain(case.line)
    if case.layer == "none":
        assert found is None or found.blame.role.value == "context", found
        return
    assert found is not None
    blame = found.blame
    assert (blame.layer.value, blame.certainty.value, blame.role.value) == (case.layer, case.certainty, case.role), (
        found
    )
    assert found.meaning
    assert found.remedy
    assert found.source

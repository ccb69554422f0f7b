"""What roles refuse before they touch anything, and what they let pass: one play, a host for each case."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from clusterctl.ports import Deadline, PlayOutcome
from tests.edges.ansible.support import DATA, host, playbooks

CASES: Mapping[str, Mapping[str, Any]] = yaml.safe_load((DATA / "preflight_cases.yml").read_text())


@pytest.fixture(scope="module")
def outcomes() -> Mapping[str, PlayOutcome]:
    variables = {"preflight_cases": CASES, "data_folder": str(DATA)}
    with tempfile.TemporaryDirectory(prefix="pb", dir="/tmp") as work_dir:
        hosts = [host(name) for name in CASES]
        observed = playbooks(Path(work_dir)).run("preflight.yml", hosts, variables, Deadline.after(900))
        return {each.value.host: each.value for each in observed}


@pytest.mark.parametrize("name", CASES)
def test_preflight(outcomes: Mapping[str, PlayOutcome], name: str) -> None:
    """A value that cannot work is refused in words that name it; what can work goes on. Nothing is changed."""
    refused, outcome = CASES[name].get("refused", []), outcomes[name]

    assert outcome.ok == (not refused), outcome.message
    assert [words for words in refused if words not in outcome.message] == []
    assert outcome.changed == 0

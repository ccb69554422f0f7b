"""Labs of tests in different files may run at the same time: each file has networks of its own."""

from __future__ import annotations

import re
from collections import defaultdict

from tests.paths import ROOT

NETWORK = re.compile(r'"(10\.\d+\.0\.0/16)"')
STARTS_LABS = re.compile(r"\bmark\.lab\b|\b(?:running_lab|metal_site)\(")


def test_no_two_files_use_one_network() -> None:
    """The second lab on a network would be refused."""
    users: dict[str, set[str]] = defaultdict(set)
    for file in [*ROOT.glob("tests/**/*.py"), *ROOT.glob("lab/tests/**/*.py")]:
        text = file.read_text()
        if STARTS_LABS.search(text):
            for network in NETWORK.findall(text):
                users[network].add(str(file.relative_to(ROOT)))
    assert len(users) > 20
    assert {network: sorted(files) for network, files in users.items() if len(files) > 1} == {}

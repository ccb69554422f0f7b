"""Nothing is broken: every machine becomes gold, and nothing is held against any of them.

tests/kills holds a fault-free site to the same, and kills its controller again and again: this is for a longer campaign.
"""

from __future__ import annotations

import pytest

from lab.tests.lab_kit import needs_lab, running_lab
from tests.e2e.promises import broken_promises
from tests.e2e.site_kit import Site

pytestmark = [pytest.mark.lab, pytest.mark.soak, needs_lab, pytest.mark.timeout(1800)]

HOSTS = 8


def test_eight_sound_machines_become_gold(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Exit code 0, all gold, and over the whole journal no finding that is not PASS."""
    folder = tmp_path_factory.mktemp("f")
    with running_lab("e2ef", "10.159.0.0/16", folder, "--hosts", str(HOSTS)) as lab:
        site = Site(lab, folder / "runs")
        run = site.run("bootstrap", "--yes")
        assert run.wait() == 0, run.stderr + run.stdout
        assert set(site.stages().values()) == {"gold"}
        assert not broken_promises(site, HOSTS)

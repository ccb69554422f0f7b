"""The watch of a fabric of 480 links under 1,800 alarms in an hour: 40 bad links, 2 at a time, and 20 kills."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.ufm.storm import Storm, bad_links
from tests.ufm.watch_world import fat_tree, watched

pytestmark = [pytest.mark.soak, pytest.mark.timeout(0)]


@pytest.mark.parametrize("kills", [0, 20])
def test_forty_bad_links(tmp_path: Path, kills: int) -> None:
    """All 40 are out once and back, one ticket each, no other port is touched; kills change nothing of it."""
    site = watched(tmp_path / "site", fat_tree(40, 4, 4))
    storm = Storm(site, bad_links(site, 40), 1800, kills)
    began = time.process_time()
    storm.play()
    storm.hold()
    print(f"{kills} kills: {site.runs} passes, {time.process_time() - began:.0f} s of processor time")

"""1,800 alarms of many kinds in an hour, links that are really bad, and a process that is killed on the way."""

from __future__ import annotations

from pathlib import Path

from tests.ufm.storm import Storm, bad_links
from tests.ufm.watch_world import fat_tree, watched


def test_an_hour_of_alarms(tmp_path: Path) -> None:
    """The bad links are out one after the other within the budget, one ticket each; no other port is touched.

    The process is killed 20 times, before or after a call of the fabric, of UFM, of the ticket system or of the journal:
    that changes nothing. The soak test has 40 bad links.
    """
    site = watched(tmp_path / "site", fat_tree(6, 2, 2))
    storm = Storm(site, bad_links(site, 3), 1800, 20)
    storm.play()
    storm.hold()

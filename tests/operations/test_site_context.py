"""A site that one process opens more than once, as a web page does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from clusterctl.operations.context import open_site
from tests.edges.site.ready import write_ready_site

READ = """
import sys
from pathlib import Path
from clusterctl.operations.context import open_site
context = open_site(Path(sys.argv[1]))
print(*(node.name for node in context.journal.summaries()))
context.journal.close()
"""


def names(site: Path) -> str:
    """What another process reads in the journal, the only one to connect to it and to close it."""
    return subprocess.run([sys.executable, "-c", READ, site], capture_output=True, text=True, check=True).stdout.strip()


def test_what_one_process_writes_is_not_lost_when_another_closes_the_journal(tmp_path: Path) -> None:
    """A second opening drops no lock of the first: SQLite of another process then removes no log that is written to."""
    site = write_ready_site(tmp_path / "site")
    first = open_site(site)
    second = open_site(site)
    assert names(site) == ""
    first.describe()
    assert names(site) == "node001"
    for context in (first, second):
        context.journal.close()
    assert names(site) == "node001"

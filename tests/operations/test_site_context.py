"""A site that one process opens more than once, as a web page does."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

from clusterctl.fleet.event import Kind
from clusterctl.operations.context import open_site
from tests.edges.site.ready import write_ready_site
from tests.events import new_event

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


def test_all_nodes_read_at_once_are_those_read_one_by_one(tmp_path: Path) -> None:
    """In the order that was asked for; a node without an event is as the site describes it."""
    write_ready_site(tmp_path)
    names = ["n3", "n1", "n2", "n4"]
    (tmp_path / "bmcs.csv").write_text("name,bmc_address\n" + "".join(f"{name},10.0.0.{name[1:]}\n" for name in names))
    context = open_site(tmp_path)
    with closing(context.journal):
        for name in names[:3]:
            described = new_event("node", name, Kind.NODE_DESCRIBED, {"name": name, "bmc": f"10.0.0.{name[1:]}"})
            context.journal.append([described])
        found = context.states(names)
        assert [state.name for state in found] == names
        assert [one for name in names for one in context.states([name])] == found
        assert found[3] == context.unseen("n4")

"""What the claims of a whole fleet cost: taken, renewed, released, on SQLite and on PostgreSQL.

    python -m benchmarks.claims [--nodes 4096]

Renewals are medians of five; the PostgreSQL server is the tests' own.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable

from clusterctl.edges.journal import open_journal
from clusterctl.fleet.node import NodeId
from tests.edges.journal.life import StepClock
from tests.edges.journal.postgres import running_server


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def measured(url: str, nodes: list[NodeId]) -> str:
    """The figures for the journal at `url`."""
    journal = open_journal(url, StepClock(), run="benchmark")
    began = time.perf_counter()
    claims = journal.claim(nodes, "benchmark").granted
    took = time.perf_counter() - began
    renewed = statistics.median(seconds(lambda: journal.renew(claims.values())) for _ in range(5))
    released = seconds(lambda: journal.release(claims.values()))
    lost = seconds(lambda: journal.renew(claims.values()))
    journal.close()
    return f"take {took:.3f} s   renew {renewed:.3f} s   release {released:.3f} s   renew what is lost {lost:.3f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=4096)
    nodes = [NodeId(f"node{number:04d}") for number in range(parser.parse_args().nodes)]
    with running_server() as server, tempfile.TemporaryDirectory() as folder:
        print(f"SQLite      {measured(f'sqlite:///{folder}/journal.db', nodes)}")
        print(f"PostgreSQL  {measured(server.url(), nodes)}")


if __name__ == "__main__":
    main()

"""A program that claims nodes: `python -m tests.edges.journal.claimant URL RUN NODE …`.

It prints `ready`, claims when it is sent a line, prints what it was granted (token by node) and refused, and lives until its
stdin closes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from clusterctl.edges.journal import Holder, open_journal
from clusterctl.fleet.node import NodeId
from tests.edges.journal.life import StepClock
from tests.paths import ROOT


@dataclass(frozen=True)
class Claimant:
    """The program, started and ready."""

    process: subprocess.Popen[str]

    def claim(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        return dict(json.loads(self.process.stdout.readline()))


@contextmanager
def claimant(url: str, run: str, nodes: Sequence[str]) -> Iterator[Claimant]:
    argv = (sys.executable, "-m", "tests.edges.journal.claimant", url, run, *nodes)
    root = ROOT
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, cwd=root, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield Claimant(process)
        finally:
            process.stdin.close()
            process.wait(600)


def main(url: str, run: str, nodes: Sequence[str]) -> None:
    book = open_journal(url, StepClock(), Holder(run, "bob", "burnin nightly"))
    print("ready", flush=True)
    sys.stdin.readline()
    claims = book.claim(map(NodeId, nodes), run)
    granted = {node: claim.token for node, claim in claims.granted.items()}
    print(json.dumps({"granted": granted, "refused": dict(claims.refused)}), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])

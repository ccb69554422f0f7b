"""Run mutation tests: `python -m tests.mutation [--seconds S] [--changed-since COMMIT | PATH…]`."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence

from tests.mutation.campaign import campaign
from tests.mutation.targets import TARGETS, Target
from tests.paths import ROOT


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("paths", nargs="*", help="modules, by default all that are listed in tests/mutation/targets.py")
    parser.add_argument("--changed-since", metavar="COMMIT", help="only modules that differ from this commit")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="for all modules together")
    options = parser.parse_args(arguments)
    paths = _changed_since(options.changed_since) if options.changed_since else options.paths
    unknown = set(options.paths) - {target.path for target in TARGETS}
    if unknown:
        parser.error(f"not in tests/mutation/targets.py: {', '.join(sorted(unknown))}")
    chosen = [target for target in TARGETS if target.path in paths or not (options.paths or options.changed_since)]
    if not chosen:
        print("mutation tests: no listed module has changed")
    return _judge_all(chosen, options.seconds)


def _judge_all(chosen: Sequence[Target], seconds: float) -> int:
    """Judge each module with its part of the time that is left; report those for which none is left."""
    until, status = time.monotonic() + seconds, 0
    for number, target in enumerate(chosen):
        left = until - time.monotonic()
        if left <= 0:
            print(f"{target.path}: not run, the time is over", flush=True)
        else:
            status = max(status, _in_own_process(target, left / (len(chosen) - number)))
    return status


def _changed_since(commit: str) -> list[str]:
    """Return the files that differ from a commit; none where git does not know it, as in a clone without history."""
    argv = ["git", "diff", "--name-only", commit]
    answer = subprocess.run(argv, cwd=ROOT, check=False, capture_output=True, text=True)
    if answer.returncode != 0:
        print(f"mutation tests: what has changed is unknown: {answer.stderr.strip()}")
    return answer.stdout.splitlines()


def _in_own_process(target: Target, seconds: float) -> int:
    """Return 1 where too few of the target's mutants were killed, in a fork: a target imports what others change."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = _judge(target, seconds)
        except BaseException as error:  # noqa: BLE001 - what pytest raises is no Exception
            print(f"{target.path}: not judged: {error}")
        finally:
            sys.stdout.flush()
            os._exit(status)
    return int(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0)


def _judge(target: Target, seconds: float) -> int:
    outcome = campaign(target, seconds, lambda line: print(line, flush=True))
    print(outcome.row, flush=True)
    for name in outcome.unused:
        print(f"  listed as equivalent, but no mutant: {name}")
    return int(outcome.failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

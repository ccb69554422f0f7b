"""What it costs to keep a fleet's passwords out of one log line, compared with looking for them one after the other.

    python -m benchmarks.redaction [--secrets 4096]

Prints how long it takes to learn the secrets, all at once and one by one, and medians of a line without a secret and of
one that holds one; then the ratio to a plain loop over all forms, which must give the same lines.
"""

from __future__ import annotations

import argparse
import secrets
import statistics
import time
from collections.abc import Callable, Sequence

from clusterctl.edges.redaction import MASK, Redaction, forms

LINE = "2026-01-01 12:00:00 DEBUG redfish run=r1 node=node0012 GET https://192.0.2.7/redfish/v1/Systems/1: "
ROUNDS = 200


def median_us(work: Callable[[], object]) -> float:
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return 1e6 * statistics.median(times)


def one_by_one(known: Sequence[str], text: str) -> str:
    for form in known:
        if form in text:
            text = text.replace(form, MASK)
    return text


def learnt_s(words: Sequence[str], at_once: int) -> tuple[float, Redaction]:
    """How long it takes to learn them, so many at once."""
    began = time.perf_counter()
    redact = Redaction()
    for first in range(0, len(words), at_once):
        redact.add(words[first : first + at_once])
        redact(LINE)
    return time.perf_counter() - began, redact


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--secrets", type=int, default=4096)
    options = parser.parse_args()
    words = [f'{secrets.token_urlsafe(12)}"/é' for _ in range(options.secrets)]
    at_once, redact = learnt_s(words, len(words))
    singly, late = learnt_s(words, 1)
    known = sorted({form for word in words for form in forms(word)}, key=lambda form: (-len(form), form))
    print(
        f"{len(words)} secrets in {len(known)} forms: learnt at once in {at_once:.2f} s, one by one in {singly:.2f} s"
    )
    for what, line in (("without a secret", f"{LINE}200 in 0.12 s"), ("with a secret", f"{LINE}{words[-1]} is wrong")):
        if not redact(line) == late(line) == one_by_one(known, line):
            raise SystemExit(f"{what}: the lines differ")
        now, grown = median_us(lambda line=line: redact(line)), median_us(lambda line=line: late(line))
        loop = median_us(lambda line=line: one_by_one(known, line))
        print(f"line {what:16s} {now:5.1f} µs, one by one {grown:5.1f} µs, loop {loop:7.1f} µs: {loop / now:.0f} ×")


if __name__ == "__main__":
    main()

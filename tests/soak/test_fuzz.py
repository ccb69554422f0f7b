"""Every parser is given variants of its seeds for a minute. What breaks one is printed: add it to tests/fuzz/corpus."""

from __future__ import annotations

import os
import random
import time

import pytest

from tests.fuzz.mutation import mutated
from tests.fuzz.targets import Target, targets

SECONDS = float(os.environ.get("CLUSTERCTL_FUZZ_SECONDS", "60"))


@pytest.mark.soak
@pytest.mark.parametrize("target", targets(), ids=lambda target: target.name)
def test_no_variant_breaks_the_parser(target: Target) -> None:
    chance, seeds = random.Random(), target.seeds
    end, tried, slowest = time.monotonic() + SECONDS, 0, 0.0
    while (began := time.monotonic()) < end:
        text = mutated(chance.choice(seeds), seeds, chance)
        try:
            target.run(text)
        except Exception as error:  # noqa: BLE001 — whatever the parser does not document
            pytest.fail(f"{target.name}: {error!r} for {text[:4000]!r}")
        tried, slowest = tried + 1, max(slowest, time.monotonic() - began)
    print(f"{target.name}: {tried} variants, the slowest {slowest:.2f} s")

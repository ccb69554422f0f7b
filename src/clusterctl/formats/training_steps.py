"""Steps in logs of training frameworks: number, and seconds where the line has them.

Megatron-LM `iteration n/m … per iteration (ms)`, NeMo 1 and 2 `global_step`, `train_step_timing in s`, torchtitan
`step: n loss: …`, transformers `'global_step': n`, nanoGPT and lit-gpt `iter n: loss …, time …ms`. A validation step of
torchtitan is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_FORMS = (
    re.compile(
        r"iteration\s{1,20}(?P<step>\d{1,12})/\s{0,20}\d{1,12} \|.{0,400}?"
        r"per iteration \(ms\):\s{0,20}(?P<ms>\d{1,12}(?:\.\d{1,6})?)"
    ),
    re.compile(
        r"global_step[:=]\s?(?P<step>\d{1,12})(?:\.0)?\b.{0,400}?step_timing in s[:=]\s?(?P<s>\d{1,9}(?:\.\d{1,6})?)"
    ),
    re.compile(r"(?<!validate )\bstep:\s{1,8}(?P<step>\d{1,12})\s{1,8}loss:"),
    re.compile(r"'global_step': (?P<step>\d{1,12})\b"),
    re.compile(r"^iter (?P<step>\d{1,12}): loss [\d.]{1,20}, time:? (?P<ms>\d{1,12}(?:\.\d{1,6})?)ms"),
)
_READ = 2000


@dataclass(frozen=True, slots=True)
class TrainingStep:
    """One step of training; `seconds` is None where the line has no time of it."""

    number: int
    seconds: float | None


def step_of(line: str) -> TrainingStep | None:
    """Return the step that a line reports; None where it reports none."""
    text = line[:_READ]
    for form in _FORMS:
        if match := form.search(text):
            found = match.groupdict()
            seconds = float(found["s"]) if found.get("s") else float(found["ms"]) / 1000 if found.get("ms") else None
            return TrainingStep(int(found["step"]), seconds)
    return None


def steps(text: str) -> Iterator[TrainingStep]:
    """Yield the steps of a log in its order; a progress bar has several in one line, divided by carriage returns."""
    for line in text.replace("\r", "\n").split("\n"):
        if (found := step_of(line)) is not None:
            yield found

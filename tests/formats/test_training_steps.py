"""Steps of training frameworks, after lines of public logs."""

from __future__ import annotations

import pytest

from clusterctl.formats.training_steps import TrainingStep, step_of, steps


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (  # epfLLM/Megatron-LLM#33
            "iteration     3383/    8000 | consumed samples:       216512 | elapsed time per iteration (ms): 7613.1 | x",
            TrainingStep(3383, 7.6131),
        ),
        (
            "Training epoch 0, iteration 2/9 | lr: 1 | global_step: 2 | train_step_timing in s: 0.53",
            TrainingStep(2, 0.53),
        ),
        ("Epoch 0: 1%| 9/99 [v_num=1, global_step=8.0, train_step_timing in s=1.25]", TrainingStep(8, 1.25)),
        ("[titan] step:  5  loss:  9.1  grad_norm: 1.2  memory: 1GiB  tps: 9,000  mfu: 40%", TrainingStep(5, None)),
        ("[titan] validate step:  5  loss:  9.1", None),
        ("{'loss': 2.29, 'learning_rate': 9.5e-05, 'epoch': 2.6, 'global_step': 4080}", TrainingStep(4080, None)),
        ("iter 83592: loss 1.5455, time: 4401.19ms, speed: - toks/s/device", TrainingStep(83592, 4.40119)),
        ("hello", None),
    ],
)
def test_a_line(line: str, expected: TrainingStep | None) -> None:
    found = step_of(line)
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        assert found.number == expected.number
        assert found.seconds == (None if expected.seconds is None else pytest.approx(expected.seconds))


def test_a_progress_bar_has_several_steps() -> None:
    text = "global_step=1, step_timing in s=0.5\rglobal_step=2, step_timing in s=0.6\n"
    assert [one.number for one in steps(text)] == [1, 2]

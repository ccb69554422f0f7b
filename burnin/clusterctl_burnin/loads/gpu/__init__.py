"""What GPUs did under load, judged: wrong results, brakes, figures below their limits or below their neighbours'."""

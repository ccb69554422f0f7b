"""An observed fabric compared with its wiring plan: each difference explained, with its repair."""

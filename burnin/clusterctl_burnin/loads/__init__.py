"""Active tests: what each node of a round runs, and what its output means."""

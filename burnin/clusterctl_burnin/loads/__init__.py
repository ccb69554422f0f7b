"""Active tests: what each host of a round runs, and what its answers mean."""

"""PURE: what the lines of a failed job mean, and what its failure is attributed to."""

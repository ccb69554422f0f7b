"""Rolling changes of the pool: plans, waves and how far a plan came. Pure."""

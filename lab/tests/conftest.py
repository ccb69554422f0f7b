"""What the lab's tests share with the product's: hypothesis without deadlines."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

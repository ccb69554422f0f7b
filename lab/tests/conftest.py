"""What the lab's tests share with the product's: hypothesis without deadlines."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("exploring", deadline=None)
settings.load_profile(os.environ.get("CLUSTERCTL_HYPOTHESIS", "same"))

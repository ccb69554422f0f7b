"""Runs on a node, as the built-in probe `container-gpus SECONDS`: which GPUs a container sees.

Standard library only, Python 3.9. The site names an image that is there already: nothing is fetched. A container that
does not end within SECONDS is removed: killing Docker's command would leave it running.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Callable

from clusterctl_burnin.node.processes import TIMED_OUT, Result
from clusterctl_burnin.node.processes import ask as ask_tool

REMOVAL = 10.0  # seconds
INSPECTION = 5.0  # seconds
NOT_STARTED = 125  # exit code of docker run where Docker itself failed

Ask = Callable[..., Result]


def image_absent(image: str, ask: Ask) -> bool:
    """Return whether a daemon that runs does not have the image."""
    inspected = ask("docker", "image", "inspect", image, seconds=INSPECTION)[0]
    return inspected == 1 and ask("docker", "ps", "--quiet", seconds=INSPECTION)[0] == 0


def main(requirements: dict[str, Any], seconds: float, ask: Ask = ask_tool) -> int:
    """Print `{"image", "image_absent", "code", "output", "complaint"}`.

    `image` is empty where the site names none; then nothing is run.
    """
    image, code, output, stderr = requirements.get("gpu_image", ""), 0, "", ""
    if image:
        name = f"clusterctl-gpus-{os.getpid()}"
        options = ("--rm", "--name", name, "--pull", "never", "--network", "none", "--gpus", "all")
        code, output, stderr = ask("docker", "run", *options, image, "nvidia-smi", "-L", seconds=seconds)
        if code == TIMED_OUT:
            ask("docker", "rm", "--force", name, seconds=REMOVAL)
    absent = code == NOT_STARTED and image_absent(image, ask)
    answer = {"image": image, "image_absent": absent, "code": code, "output": output, "complaint": stderr[-1000:]}
    json.dump(answer, sys.stdout)
    return 0


if __name__ == "__main__":
    patience = float(os.environ.get("CLUSTERCTL_PATIENCE", "1"))
    sys.exit(main(json.loads(os.environ.get("CLUSTERCTL_REQUIREMENTS", "{}")), patience * float(sys.argv[1])))

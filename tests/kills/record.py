"""Records the seams again: `python -m tests.kills.record`, as root, on a machine that does nothing else."""

from __future__ import annotations

import tempfile
from pathlib import Path

from lab.tests.lab_kit import running_lab
from tests.e2e.site_kit import Site
from tests.kills import catalogue
from tests.kills.diary import lines_of
from tests.kills.life import Life

HOSTS = 3


def main() -> None:
    with (
        tempfile.TemporaryDirectory(prefix="k") as name,
        running_lab("record", "10.161.0.0/16", Path(name), "--hosts", str(HOSTS)) as lab,
    ):
        folder = Path(name)
        life = Life(Site(lab, folder / "runs"), folder / "life")
        for run in life.live((), HOSTS):
            print(run.output)
        assert not life.broken, "\n".join(life.broken)
        catalogue.FILE.write_text(catalogue.text_of(catalogue.recorded(lines_of(life.diary))), encoding="utf-8")


if __name__ == "__main__":
    main()

"""turbostat: `--quiet --show COLUMNS [--out FILE] COMMAND`, each processor's clock while COMMAND ran.

The table is that of turbostat(8) (Linux 6.1): tab-separated, first a line of means. COMMAND is not run: it would load
the controller's processors, which are not those of this machine.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from clusterctl_lab.emulators.host_tools.host.facts import Facts, load

COLUMNS = ("Package", "Core", "CPU", "Bzy_MHz")


def main(argv: Sequence[str]) -> int:
    words, options = list(argv), {"--show": ",".join(COLUMNS), "--out": ""}
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if option in options and words:
            options[option] = words.pop(0)
        elif option != "--quiet":
            sys.stderr.write("the lab's turbostat knows --quiet, --show and --out\n")
            return 1
    columns, out = [column for column in COLUMNS if column in options["--show"].split(",")], options["--out"]
    if not words or not columns:
        sys.stderr.write("the lab's turbostat needs a command and a column that it knows\n")
        return 1
    _write("2.000000 sec\n" + "".join(f"{line}\n" for line in _table(load(), columns)), out)
    return 0


def _write(table: str, out: str) -> None:
    if out and out != "/dev/stdout":
        with open(out, "w", encoding="utf-8") as file:  # noqa: PTH123 — see small_files
            file.write(table)
    else:
        (sys.stdout if out else sys.stderr).write(table)


def _table(facts: Facts, columns: Sequence[str]) -> list[str]:
    means = {"Package": "-", "Core": "-", "CPU": "-", "Bzy_MHz": str(facts.busy_mhz)}
    rows = [means]
    for cpu in range(facts.cores):
        package, core = divmod(cpu, facts.cores // facts.cpus)
        rows.append({**means, "Package": str(package), "Core": str(core), "CPU": str(cpu)})
    return ["\t".join(columns), *("\t".join(row[column] for column in columns) for row in rows)]

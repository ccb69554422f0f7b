"""An archive shaped like nccl-tests' sources, for the lab's stand-in compiler: a Makefile and a script for each program."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile

PATH = "/usr/lib/clusterctl-lab/nccl-tests.tar.gz"
_PROGRAMS = "all_gather all_reduce alltoall broadcast reduce_scatter sendrecv"

_MAKEFILE = f"""\
ifneq ($(MPI)$(words $(MPI_HOME) $(NCCL_HOME) $(NVCC_GENCODE)),13)
$(error MPI=1, MPI_HOME, NCCL_HOME and NVCC_GENCODE have to be given)
endif
build: {" ".join(f"build/{name}_perf" for name in _PROGRAMS.split())}
build/%_perf: perf.sh
\tmkdir -p build
\t$(CUDA_HOME)/bin/nvcc -o $@ $<
"""

_PROGRAM = """\
#!/bin/sh
# Sums nothing: it knows the options, and how many GPUs nvidia-smi lists.
case "$*" in
    --help) echo "USAGE: perf [-b,--minbytes <min size in bytes>] [-g,--ngpus <gpus per thread>]"; exit 0 ;;
    *"--ngpus=$(nvidia-smi -L | grep -c '^GPU ') "*) echo "# Out of bounds values : 0 OK" ;;
    *) echo "# Out of bounds values : 1 FAILED"; exit 1 ;;
esac
"""


def nccl_archive() -> bytes:
    """A `.tar.gz` with one folder at its top; the same bytes each time."""
    buffer = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for name, content in (("Makefile", _MAKEFILE), ("perf.sh", _PROGRAM)):
            entry = tarfile.TarInfo(f"nccl-tests-0/{name}")
            entry.size = len(content.encode())
            archive.addfile(entry, io.BytesIO(content.encode()))
    return buffer.getvalue()


def sha256() -> str:
    return hashlib.sha256(nccl_archive()).hexdigest()

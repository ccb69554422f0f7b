"""Programs that run on a lab host: stand-ins for tools of missing hardware (standard library, mpi4py)."""

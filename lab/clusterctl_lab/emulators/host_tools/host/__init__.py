"""What runs inside a lab host: stand-ins for tools whose hardware is not there (standard library, mpi4py)."""

"""Programs that travel with the probes.

A probe whose command is `gpu-load` runs gpu_load.py. The text of gpu_load_worker.py, if it exists, is its first argument.
"""

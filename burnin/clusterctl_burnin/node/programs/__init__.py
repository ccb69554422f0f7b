"""Programs that travel with the probes.

A probe with the command `gpu-load` runs gpu_load.py. Its first argument is the text of
gpu_load_worker.py where that exists.
"""

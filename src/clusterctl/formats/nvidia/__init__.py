"""Output of NVIDIA tools: nvidia-smi, DCGM, nccl-tests, and the GPU load of the burn-in."""

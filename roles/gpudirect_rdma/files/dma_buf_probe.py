#!/usr/bin/python3
"""Whether each GPU can export its memory as a dma-buf: one JSON object, `{"gpus": 8, "dma_buf": 8}`, exit code 0.

Asks the CUDA driver, `cuDeviceGetAttribute` of `CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED` (124, CUDA 11.7 and later).
Exit code 2 with the reason on standard error where that cannot be asked. Standard library only.
"""

import ctypes
import json
import sys

DMA_BUF_SUPPORTED = 124


def main() -> int:
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return complain(f"the CUDA driver cannot be loaded: {error}")
    count = ctypes.c_int()
    for name, arguments in (("cuInit", (0,)), ("cuDeviceGetCount", (ctypes.byref(count),))):
        code = getattr(cuda, name)(*arguments)
        if code:
            return complain(f"{name} answered CUDA error {code}")
    able = 0
    for index in range(count.value):
        device, value = ctypes.c_int(), ctypes.c_int()
        if code := cuda.cuDeviceGet(ctypes.byref(device), index):
            return complain(f"cuDeviceGet of GPU {index} answered CUDA error {code}")
        if code := cuda.cuDeviceGetAttribute(ctypes.byref(value), DMA_BUF_SUPPORTED, device):
            return complain(f"cuDeviceGetAttribute of GPU {index} answered CUDA error {code}")
        able += value.value
    print(json.dumps({"gpus": count.value, "dma_buf": able}))
    return 0


def complain(words: str) -> int:
    sys.stderr.write(f"{words}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Measures what bench/ compares with, in PyTorch: prints a name and seconds, one pair a line."""

import os
import statistics
import tempfile
import time

# A first call is one without anything in PyTorch's own cache.
os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp(prefix="tenon-peer-")

import torch  # noqa: E402

torch.set_num_threads(os.cpu_count() or 1)
SIZES = [(64 + 8 * at, 128 + 16 * at) for at in range(40)]


def softmax_sum(x):
    return torch.softmax(x * 2, 1).sum(1)


def run_all(function, inputs):
    start = time.perf_counter()
    for x in inputs:
        function(x)
    return time.perf_counter() - start


def main():
    inputs = [torch.randn(*size) for size in SIZES]
    compiled = torch.compile(softmax_sum, dynamic=True)
    print("forty_sizes", run_all(compiled, inputs))
    print("forty_sizes_warm", statistics.median(run_all(compiled, inputs) for _ in range(7)))


if __name__ == "__main__":
    main()

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


def gpt_parameters(width=384, letters=5000, places=256, layers=12):
    """Those of bench/adam_step.cpp."""
    sizes = [(letters, width), (places, width), (width,), (width,)]
    for _ in range(layers):
        sizes += [(width,), (width,), (3 * width, width), (3 * width,), (width, width), (width,), (width,), (width,),
                  (4 * width, width), (4 * width,), (width, 4 * width), (width,)]
    parameters = [torch.randn(*size, requires_grad=True) for size in sizes]
    for each in parameters:
        each.grad = torch.randn_like(each)
    return parameters


def adam_step():
    adam = torch.optim.Adam(gpt_parameters(), lr=1e-4, fused=True)
    for _ in range(3):
        adam.step()
    times = []
    for _ in range(15):
        start = time.perf_counter()
        adam.step()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main():
    print("adam_step", adam_step())
    inputs = [torch.randn(*size) for size in SIZES]
    compiled = torch.compile(softmax_sum, dynamic=True)
    print("forty_sizes", run_all(compiled, inputs))
    print("forty_sizes_warm", statistics.median(run_all(compiled, inputs) for _ in range(7)))


if __name__ == "__main__":
    main()

"""Writes tests/data/float8.npz with PyTorch: what floats of 8 bits are as numbers, and what numbers become as such.

    $TENON_PEER_PYTHON tools/reference/peer_float8.py

tests/unit/core/float8_test.cpp and tests/unit/schedule/float8_test.cpp compare with it.
"""

import pathlib

import numpy as np
import torch

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "float8.npz"
DTYPES = {"e4m3fn": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}


def bits_of(tensor, dtype):
    return tensor.to(dtype).view(torch.uint8).numpy()


def floats(values, generator):
    """Numbers that tell roundings apart: each value of the dtype, the middle between two neighbours, what lies beside
    both, powers far below and above, and bits at random."""
    finite = np.unique(values[np.isfinite(values)])
    places = np.concatenate([finite, (finite[1:] + finite[:-1]) / 2, [448, 464, 465, 480, 57344, 61440, 65536, 1e30]])
    places = places.astype(np.float32)
    beside = [np.nextafter(places, np.float32(end)) for end in (-np.inf, np.inf)]
    powers = np.float32(2) ** np.arange(-149, 128, dtype=np.float32)
    random = generator.integers(0, 2**32, 4000, dtype=np.uint32).view(np.float32)
    near = (generator.standard_normal(4000) * np.exp(generator.uniform(-12, 12, 4000))).astype(np.float32)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan], dtype=np.float32)
    return np.concatenate([places, -places, *beside, powers, -powers, random, near, special])


def main():
    generator = np.random.default_rng(8)
    table = {}
    for name, dtype in DTYPES.items():
        every = torch.arange(256, dtype=torch.int32).to(torch.uint8)
        values = every.view(dtype).to(torch.float32).numpy()
        table[f"{name} values"] = values
        table[f"{name} from float32, given"] = given = floats(values, generator)
        table[f"{name} from float32"] = bits_of(torch.from_numpy(given), dtype)
        halves = torch.arange(65536, dtype=torch.int32).to(torch.uint16)
        table[f"{name} from float16"] = bits_of(halves.view(torch.float16), dtype)
        table[f"{name} from bfloat16"] = bits_of(halves.view(torch.bfloat16), dtype)
        for integers in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64):
            ends = torch.iinfo(integers)
            count = min(ends.max - ends.min + 1, 3000)
            numbers = generator.integers(ends.min, ends.max, count, dtype=np.int64, endpoint=True)
            numbers[: count // 2] = np.clip(numbers[: count // 2] % 1200 - 600, ends.min, ends.max)
            short = str(integers).removeprefix("torch.")
            table[f"{name} from {short}, given"] = given = numbers.astype(short)
            table[f"{name} from {short}"] = bits_of(torch.from_numpy(given), dtype)
            # What a NaN or a number out of reach is as an integer, nobody says.
            fits = np.isfinite(values) & (values > ends.min - 1.0) & (values < ends.max + 1.0)
            table[f"{name} to {short}, given"] = np.flatnonzero(fits).astype(np.uint8)
            table[f"{name} to {short}"] = every[torch.from_numpy(fits)].view(dtype).to(integers).numpy()
        table[f"{name} to bool"] = every.view(dtype).to(torch.bool).numpy()
    np.savez_compressed(OUT, **table)


if __name__ == "__main__":
    main()

"""Tenon: a compiler for tensor programs.

    import torch
    fast = torch.compile(model, backend="tenon")

The backend is found by its entry point; importing this package is only needed to look at what it did:

    import tenon
    print(tenon.torch_report())

Importing it does not import PyTorch.
"""
from tenon._core import Error, InternalError, __version__, counters, reset_counters, set_logs
from tenon._report import reset_torch_report, torch_report

__all__ = [
    "Error",
    "InternalError",
    "__version__",
    "counters",
    "reset_counters",
    "reset_torch_report",
    "set_logs",
    "torch_report",
]

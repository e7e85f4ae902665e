"""Writes tests/data/optimizers.npz with PyTorch: parameters after each of ten steps, and learning rates of schedulers.

    $TENON_PEER_PYTHON tools/reference/peer_optimizers.py

tests/unit/optim/peer_test.cpp has the same cases by name, and the same loss.
"""

import pathlib

import numpy as np
import torch

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "optimizers.npz"
STEPS = 10

OPTIMIZERS = {
    "SGD": (torch.optim.SGD, dict(lr=0.05)),
    "SGD momentum": (torch.optim.SGD, dict(lr=0.05, momentum=0.9, weight_decay=0.1, dampening=0.3)),
    "SGD nesterov": (torch.optim.SGD, dict(lr=0.05, momentum=0.9, nesterov=True, maximize=True)),
    "Adam": (torch.optim.Adam, dict(lr=0.05)),
    "Adam decay": (torch.optim.Adam, dict(lr=0.05, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1)),
    "Adam amsgrad": (torch.optim.Adam, dict(lr=0.05, amsgrad=True, maximize=True)),
    "AdamW": (torch.optim.AdamW, dict(lr=0.05)),
    "AdamW amsgrad": (torch.optim.AdamW, dict(lr=0.05, weight_decay=0.3, amsgrad=True)),
    "RMSprop": (torch.optim.RMSprop, dict(lr=0.05)),
    "RMSprop centered": (torch.optim.RMSprop, dict(lr=0.05, alpha=0.9, momentum=0.8, centered=True, weight_decay=0.1)),
    "Adagrad": (torch.optim.Adagrad, dict(lr=0.05)),
    "Adagrad decay": (torch.optim.Adagrad, dict(lr=0.05, lr_decay=0.1, weight_decay=0.1,
                                                initial_accumulator_value=0.5)),
    "Adadelta": (torch.optim.Adadelta, dict(lr=1.0)),
    "Adadelta rho": (torch.optim.Adadelta, dict(lr=0.5, rho=0.7, eps=1e-3, weight_decay=0.1)),
    "Adamax": (torch.optim.Adamax, dict(lr=0.05)),
    "Adamax decay": (torch.optim.Adamax, dict(lr=0.05, betas=(0.8, 0.95), weight_decay=0.1)),
    "NAdam": (torch.optim.NAdam, dict(lr=0.05)),
    "NAdam decay": (torch.optim.NAdam, dict(lr=0.05, weight_decay=0.1, momentum_decay=0.1,
                                            decoupled_weight_decay=True)),
    "RAdam": (torch.optim.RAdam, dict(lr=0.05)),
    "RAdam decay": (torch.optim.RAdam, dict(lr=0.05, betas=(0.8, 0.7), weight_decay=0.1,
                                            decoupled_weight_decay=True)),
    "LBFGS": (torch.optim.LBFGS, dict(lr=0.5, max_iter=4, history_size=3)),
}

SCHEDULERS = {
    "StepLR": lambda o, s: s.StepLR(o, 3, 0.5),
    "MultiStepLR": lambda o, s: s.MultiStepLR(o, [2, 5, 5], 0.5),
    "ExponentialLR": lambda o, s: s.ExponentialLR(o, 0.9),
    "CosineAnnealingLR": lambda o, s: s.CosineAnnealingLR(o, 6, 0.01),
    "CosineAnnealingWarmRestarts": lambda o, s: s.CosineAnnealingWarmRestarts(o, 3, 2, 0.01),
    "LinearLR": lambda o, s: s.LinearLR(o, 0.2, 0.9, 6),
    "ConstantLR": lambda o, s: s.ConstantLR(o, 0.5, 4),
    "PolynomialLR": lambda o, s: s.PolynomialLR(o, 8, 2.0),
    "LambdaLR": lambda o, s: s.LambdaLR(o, lambda step: 1 / (step + 1)),
    "MultiplicativeLR": lambda o, s: s.MultiplicativeLR(o, lambda step: 0.8),
    "OneCycleLR": lambda o, s: s.OneCycleLR(o, max_lr=0.5, total_steps=20),
    "OneCycleLR linear": lambda o, s: s.OneCycleLR(o, max_lr=0.5, total_steps=20, anneal_strategy="linear",
                                                   three_phase=True, pct_start=0.4),
    "SequentialLR": lambda o, s: s.SequentialLR(o, [s.LinearLR(o, 0.2, 1.0, 4), s.CosineAnnealingLR(o, 10)], [4]),
    "ChainedScheduler": lambda o, s: s.ChainedScheduler([s.LinearLR(o, 0.2, 1.0, 4), s.ExponentialLR(o, 0.9)]),
    "ReduceLROnPlateau": lambda o, s: s.ReduceLROnPlateau(o, factor=0.5, patience=1, cooldown=1),
}
MEASURES = [1.0, 0.9, 0.9, 0.91, 0.92, 0.95, 0.95, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.4, 0.5, 0.5, 0.5, 0.5, 0.5]


def parameters():
    w = (torch.arange(6, dtype=torch.float64).reshape(2, 3) / 4 - 0.6).requires_grad_()
    b = torch.tensor([0.3, -0.2, 0.1], dtype=torch.float64).requires_grad_()
    return w, b


def loss(w, b):
    return (w * w * (w.sin() + 2)).sum() + ((w[0] + b) ** 2).sum() + (w[1] * b).cos().sum()


def main():
    tables = {}
    for name, (kind, options) in OPTIMIZERS.items():
        w, b = parameters()
        optimizer = kind([w, b], **options)

        def evaluate():
            optimizer.zero_grad()
            value = loss(w, b)
            value.backward()
            return value

        for step in range(STEPS):
            if kind is torch.optim.LBFGS:
                optimizer.step(evaluate)
            else:
                evaluate()
                optimizer.step()
            tables[f"{name}/{step}/w"] = w.detach().numpy().copy()
            tables[f"{name}/{step}/b"] = b.detach().numpy().copy()
    for name, make in SCHEDULERS.items():
        optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1, momentum=0.9)
        scheduler = make(optimizer, torch.optim.lr_scheduler)
        group, rates, momenta = optimizer.param_groups[0], [], []
        for measure in MEASURES:
            rates.append(group["lr"])
            momenta.append(group["momentum"])
            optimizer.step()
            scheduler.step(*([measure] if name == "ReduceLROnPlateau" else []))
        tables[f"{name}/lr"] = np.array(rates)
        tables[f"{name}/momentum"] = np.array(momenta)
    np.savez_compressed(OUT, **tables)


if __name__ == "__main__":
    main()

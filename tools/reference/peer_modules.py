"""Writes tests/data/modules.npz with PyTorch: parameters, inputs, outputs and gradients of modules and losses.

    $TENON_PEER_PYTHON tools/reference/peer_modules.py

tests/unit/nn/peer_test.cpp makes the same modules by name.
"""

import pathlib
import zlib

import numpy as np
import torch
from torch import nn

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "modules.npz"


def some(name, shape, low=-2.0, high=2.0):
    random = np.random.RandomState(zlib.crc32(f"{name} {shape}".encode()))
    return torch.tensor(np.round(random.uniform(low, high, shape), 3), dtype=torch.float64)


def classes(name, shape, count):
    random = np.random.RandomState(zlib.crc32(f"{name} {shape}".encode()))
    return torch.tensor(random.randint(0, count, shape))


ACTIVATIONS = {
    "ReLU": nn.ReLU(), "ReLU6": nn.ReLU6(), "LeakyReLU": nn.LeakyReLU(0.1), "ELU": nn.ELU(2.0), "SELU": nn.SELU(),
    "CELU": nn.CELU(2.0), "GELU": nn.GELU(), "GELU tanh": nn.GELU("tanh"), "SiLU": nn.SiLU(), "Mish": nn.Mish(),
    "Sigmoid": nn.Sigmoid(), "Tanh": nn.Tanh(), "LogSigmoid": nn.LogSigmoid(), "Softplus": nn.Softplus(2.0, 3.0),
    "Softsign": nn.Softsign(), "Softshrink": nn.Softshrink(0.3), "Hardshrink": nn.Hardshrink(0.3),
    "Tanhshrink": nn.Tanhshrink(), "Hardtanh": nn.Hardtanh(-0.5, 0.7), "Hardsigmoid": nn.Hardsigmoid(),
    "Hardswish": nn.Hardswish(), "Threshold": nn.Threshold(0.1, 0.5), "GLU": nn.GLU(1), "Softmax": nn.Softmax(1),
    "LogSoftmax": nn.LogSoftmax(1), "Softmin": nn.Softmin(1), "PReLU": nn.PReLU(4), "RReLU": nn.RReLU().eval(),
    "Identity": nn.Identity(), "Dropout": nn.Dropout().eval(), "AlphaDropout": nn.AlphaDropout().eval(),
}
SEQ, IMG, VOL = (2, 4, 7), (2, 4, 6, 5), (2, 4, 4, 5, 3)
ONE_INPUT = {
    **{name: (module, (3, 4)) for name, module in ACTIVATIONS.items()},
    "Softmax2d": (nn.Softmax2d(), IMG),
    "Linear": (nn.Linear(4, 3), (2, 5, 4)), "Linear plain": (nn.Linear(4, 3, bias=False), (4,)),
    "Conv1d": (nn.Conv1d(4, 6, 3, stride=2, padding=1, dilation=2, groups=2), SEQ),
    "Conv1d same": (nn.Conv1d(4, 3, 4, padding="same"), SEQ),
    "Conv2d": (nn.Conv2d(4, 6, (3, 2), stride=(1, 2), padding=(1, 0), groups=2), IMG),
    "Conv2d same": (nn.Conv2d(4, 2, (2, 3), padding="same", dilation=(1, 2), bias=False), (4, 6, 5)),
    "Conv3d": (nn.Conv3d(4, 6, (2, 3, 2), stride=(2, 1, 1), padding=(1, 1, 0), dilation=(1, 2, 1), groups=2), VOL),
    "Conv3d plain": (nn.Conv3d(4, 3, 2, bias=False), (4, 4, 5, 3)),
    "ConvTranspose1d": (nn.ConvTranspose1d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2), SEQ),
    "ConvTranspose2d": (nn.ConvTranspose2d(4, 6, (3, 2), stride=(2, 3), padding=(1, 0), dilation=(2, 1)), IMG),
    "ConvTranspose2d groups": (nn.ConvTranspose2d(4, 2, 4, stride=2, padding=1, groups=2, bias=False), IMG),
    "ConvTranspose3d": (nn.ConvTranspose3d(4, 2, 2, stride=(2, 1, 2), padding=(0, 1, 0)), VOL),
    "BatchNorm1d": (nn.BatchNorm1d(4), (5, 4)), "BatchNorm1d sequence": (nn.BatchNorm1d(4, momentum=0.3), SEQ),
    "BatchNorm2d": (nn.BatchNorm2d(4, eps=1e-3), IMG), "BatchNorm2d eval": (nn.BatchNorm2d(4).eval(), IMG),
    "BatchNorm3d": (nn.BatchNorm3d(4, affine=False), VOL),
    "LayerNorm": (nn.LayerNorm(4), (3, 5, 4)), "LayerNorm two": (nn.LayerNorm((5, 4), bias=False), (3, 5, 4)),
    "RMSNorm": (nn.RMSNorm(4), (3, 5, 4)), "RMSNorm eps": (nn.RMSNorm((5, 4), eps=0.1), (3, 5, 4)),
    "GroupNorm": (nn.GroupNorm(2, 4), IMG),
    "InstanceNorm1d": (nn.InstanceNorm1d(4, affine=True), SEQ), "InstanceNorm2d": (nn.InstanceNorm2d(4), IMG),
    "InstanceNorm3d": (nn.InstanceNorm3d(4, affine=True), VOL),
    "LocalResponseNorm": (nn.LocalResponseNorm(3, alpha=0.5, k=2.0), IMG),
    "MaxPool1d": (nn.MaxPool1d(3, stride=2, padding=1), SEQ), "MaxPool2d": (nn.MaxPool2d(3, 2, 1, ceil_mode=True), IMG),
    "MaxPool2d dilated": (nn.MaxPool2d(2, 1, dilation=2), IMG), "MaxPool3d": (nn.MaxPool3d((2, 3, 2), padding=1), VOL),
    "AvgPool1d": (nn.AvgPool1d(3, stride=2, padding=1, count_include_pad=False), SEQ),
    "AvgPool2d": (nn.AvgPool2d((3, 2), padding=1), IMG),
    "AvgPool3d": (nn.AvgPool3d((2, 3, 2), stride=1, padding=(1, 1, 0)), VOL),
    "AdaptiveAvgPool1d": (nn.AdaptiveAvgPool1d(3), SEQ), "AdaptiveAvgPool2d": (nn.AdaptiveAvgPool2d((3, 2)), IMG),
    "AdaptiveAvgPool3d": (nn.AdaptiveAvgPool3d((3, 2, 2)), VOL), "AdaptiveMaxPool1d": (nn.AdaptiveMaxPool1d(3), SEQ),
    "AdaptiveMaxPool2d": (nn.AdaptiveMaxPool2d((3, 2)), IMG), "AdaptiveMaxPool3d": (nn.AdaptiveMaxPool3d(2), VOL),
    "Flatten": (nn.Flatten(), IMG), "Unflatten": (nn.Unflatten(1, (2, 2)), SEQ),
    "PixelShuffle": (nn.PixelShuffle(2), IMG), "PixelUnshuffle": (nn.PixelUnshuffle(2), (2, 3, 4, 6)),
    "ChannelShuffle": (nn.ChannelShuffle(2), IMG),
    "Upsample nearest": (nn.Upsample(scale_factor=2), IMG),
    "Upsample bilinear": (nn.Upsample(size=(7, 4), mode="bilinear", align_corners=True), IMG),
    "ZeroPad1d": (nn.ZeroPad1d((1, 2)), SEQ), "ZeroPad2d": (nn.ZeroPad2d((1, 2, 0, 1)), IMG),
    "ZeroPad3d": (nn.ZeroPad3d(1), VOL), "ConstantPad1d": (nn.ConstantPad1d(1, 3.5), SEQ),
    "ConstantPad2d": (nn.ConstantPad2d((1, -1, 2, 0), 3.5), IMG), "ConstantPad3d": (nn.ConstantPad3d(1, 3.5), VOL),
    "ReflectionPad1d": (nn.ReflectionPad1d((2, 1)), SEQ), "ReflectionPad2d": (nn.ReflectionPad2d((2, 1, 1, 3)), IMG),
    "ReflectionPad3d": (nn.ReflectionPad3d(1), VOL), "ReplicationPad1d": (nn.ReplicationPad1d((2, 1)), SEQ),
    "ReplicationPad2d": (nn.ReplicationPad2d((2, 1, 1, 3)), IMG), "ReplicationPad3d": (nn.ReplicationPad3d(1), VOL),
    "CircularPad1d": (nn.CircularPad1d((2, 1)), SEQ), "CircularPad2d": (nn.CircularPad2d((2, 1, 1, 3)), IMG),
    "CircularPad3d": (nn.CircularPad3d(1), VOL),
    "Sequential": (nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Sequential(nn.Linear(6, 2), nn.Softplus())), (3, 4)),
    "TransformerEncoderLayer": (nn.TransformerEncoderLayer(8, 2, 12, dropout=0.0, batch_first=True), (2, 5, 8)),
    "TransformerEncoderLayer first": (nn.TransformerEncoderLayer(8, 2, 12, dropout=0.0, activation="gelu",
                                                                 norm_first=True), (5, 2, 8)),
    "TransformerEncoder": (nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 12, dropout=0.0), 2,
                                                 enable_nested_tensor=False), (5, 2, 8)),
    "LSTM": (nn.LSTM(4, 3), (5, 2, 4)),
    "LSTM layers": (nn.LSTM(4, 3, num_layers=2, bidirectional=True, batch_first=True), (2, 5, 4)),
    "GRU": (nn.GRU(4, 3), (5, 2, 4)),
    "GRU layers": (nn.GRU(4, 3, num_layers=2, bidirectional=True, batch_first=True, bias=False), (2, 5, 4)),
    "RNN": (nn.RNN(4, 3), (5, 4)), "RNN relu": (nn.RNN(4, 3, nonlinearity="relu", num_layers=2), (5, 2, 4)),
    "RNNCell": (nn.RNNCell(4, 3, nonlinearity="relu"), (2, 4)), "GRUCell": (nn.GRUCell(4, 3), (2, 4)),
    "LSTMCell": (nn.LSTMCell(4, 3), (2, 4)),
}
P = some("probabilities", (3, 4), 0.1, 0.9)
T = some("targets", (3, 4), 0.1, 0.9)
SIGNS = torch.sign(some("signs", (3, 4)))
LOSSES = {  # the module and its further arguments; the first is drawn, or is P
    "L1Loss": (nn.L1Loss(), [T]), "L1Loss sum": (nn.L1Loss(reduction="sum"), [T]),
    "MSELoss": (nn.MSELoss(), [T]), "MSELoss none": (nn.MSELoss(reduction="none"), [T]),
    "SmoothL1Loss": (nn.SmoothL1Loss(beta=0.5), [T]), "HuberLoss": (nn.HuberLoss(delta=0.7), [T]),
    "KLDivLoss": (nn.KLDivLoss(reduction="sum"), [T]),
    "KLDivLoss log": (nn.KLDivLoss(reduction="mean", log_target=True), [T]),
    "BCELoss": (nn.BCELoss(), [T]), "BCELoss weight": (nn.BCELoss(weight=T[0], reduction="sum"), [T]),
    "BCEWithLogitsLoss": (nn.BCEWithLogitsLoss(), [T]),
    "BCEWithLogitsLoss weight": (nn.BCEWithLogitsLoss(weight=T[0], pos_weight=P[0] * 3), [T]),
    "CrossEntropyLoss": (nn.CrossEntropyLoss(label_smoothing=0.1), [classes("ce", (3,), 4)]),
    "NLLLoss": (nn.NLLLoss(weight=P[0]), [classes("nll", (3,), 4)]),
    "PoissonNLLLoss": (nn.PoissonNLLLoss(full=True), [T * 4]),
    "PoissonNLLLoss plain": (nn.PoissonNLLLoss(log_input=False), [T]),
    "SoftMarginLoss": (nn.SoftMarginLoss(), [SIGNS]), "HingeEmbeddingLoss": (nn.HingeEmbeddingLoss(0.5), [SIGNS]),
    "MultiLabelSoftMarginLoss": (nn.MultiLabelSoftMarginLoss(), [(SIGNS + 1) / 2]),
    "MultiMarginLoss": (nn.MultiMarginLoss(), [classes("mm", (3,), 4)]),
    "MultiMarginLoss squared": (nn.MultiMarginLoss(p=2, margin=0.5), [classes("mm", (3,), 4)]),
    "GaussianNLLLoss": (nn.GaussianNLLLoss(full=True), [T, P]),
    "MarginRankingLoss": (nn.MarginRankingLoss(0.3), [T, SIGNS]),
    "CosineEmbeddingLoss": (nn.CosineEmbeddingLoss(0.1), [T, SIGNS[:, 0]]),
    "TripletMarginLoss": (nn.TripletMarginLoss(swap=True), [T, P]),
    "CosineSimilarity": (nn.CosineSimilarity(1), [T]), "PairwiseDistance": (nn.PairwiseDistance(), [T]),
}
POSITIVE = ("BCELoss", "BCELoss weight", "PoissonNLLLoss plain", "GaussianNLLLoss")


class Table(dict):
    def module(self, name, module, inputs, call=None):
        """Draws the parameters, runs forward and backward, and keeps everything."""
        if isinstance(module, nn.Module):
            module.double()
            with torch.no_grad():
                for key, tensor in module.state_dict().items():
                    if tensor.is_floating_point():
                        tensor.copy_(some(f"{name} {key}", tuple(tensor.shape), 0.2, 1.0)
                                     if "running_var" in key else some(f"{name} {key}", tuple(tensor.shape), -0.5, 0.5))
                    self[f"{name}/state/{key}"] = tensor.numpy().copy()
        leaves = [each.clone().requires_grad_() if each.is_floating_point() else each for each in inputs]
        for number, each in enumerate(inputs):
            self[f"{name}/input/{number}"] = each.numpy().copy()
        output = (call or module)(*leaves)
        outputs = []
        while not torch.is_tensor(output):  # (sequence, (h, c)), flattened
            if torch.is_tensor(output[0]):
                outputs.append(output[0])
                output = output[1]
            else:
                outputs += list(output[:-1])
                output = output[-1]
        outputs.append(output)
        total = 0
        for number, each in enumerate(outputs):
            self[f"{name}/output/{number}"] = each.detach().numpy().copy()
            places = torch.arange(each.numel(), dtype=torch.float64)
            total = total + (each * (0.7 + 0.31 * (places % 5) - 0.013 * places).reshape(each.shape)).sum()
        total.backward()
        for number, leaf in enumerate(leaves):
            if leaf.is_floating_point() and leaf.grad is not None:
                self[f"{name}/input grad/{number}"] = leaf.grad.numpy().copy()
        if isinstance(module, nn.Module):
            for key, parameter in module.named_parameters():
                if parameter.grad is not None:
                    self[f"{name}/grad/{key}"] = parameter.grad.numpy().copy()
            for key, buffer in module.named_buffers():
                self[f"{name}/after/{key}"] = buffer.numpy().copy()


def main():
    table = Table()
    for name, (module, shape) in ONE_INPUT.items():
        table.module(name, module, [some(name, shape)])
    for name, (loss, arguments) in LOSSES.items():
        first = P if name in POSITIVE else some(name, (3, 4))
        # Only the first argument is differentiated.
        constants = [each.clone() for each in arguments]
        table.module(name, None, [first], call=lambda x, loss=loss, constants=constants: loss(x, *constants))
        for number, each in enumerate(arguments):
            table[f"{name}/input/{number + 1}"] = each.numpy().copy()
    indices = classes("embedding", (3, 5), 7)
    table.module("Embedding", nn.Embedding(7, 4, padding_idx=2), [indices])
    for mode in ("sum", "mean", "max"):
        table.module(f"EmbeddingBag {mode}", nn.EmbeddingBag(7, 4, mode=mode), [indices])
    offsets = torch.tensor([0, 3, 3, 6])
    table.module("EmbeddingBag offsets", nn.EmbeddingBag(7, 4), [indices.reshape(-1), offsets])
    table.module("Bilinear", nn.Bilinear(4, 3, 2), [some("bilinear", (2, 5, 4)), some("bilinear", (2, 5, 3))])
    table.module("MultiheadAttention", nn.MultiheadAttention(8, 2, batch_first=True),
                 [some("q", (2, 3, 8)), some("k", (2, 5, 8)), some("v", (2, 5, 8))])
    padding = torch.tensor([[False, False, True], [False, False, False]])
    attention = nn.MultiheadAttention(8, 2, bias=False)
    causal = torch.triu(torch.ones(3, 3, dtype=torch.bool), 1)
    table.module("MultiheadAttention masked", attention, [some("q", (3, 2, 8))],
                 call=lambda q: attention(q, q, q, key_padding_mask=padding, attn_mask=causal))
    decoder = nn.TransformerDecoderLayer(8, 2, 12, dropout=0.0, batch_first=True)
    table.module("TransformerDecoderLayer", decoder, [some("target", (2, 3, 8)), some("memory", (2, 5, 8))])
    np.savez_compressed(OUT, **table)


if __name__ == "__main__":
    main()

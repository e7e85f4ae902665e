"""Writes tests/data/io/resnet18.pt and gpt2.pt, states of networks as PyTorch saves them, with an input and output.

    $TENON_PEER_PYTHON tools/reference/peer_networks.py

The networks have all layers and names of torchvision's ResNet-18 and of GPT-2 as it is published, but few channels.
"""

import pathlib
import zlib

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "io"
WIDTH, CLASSES = 4, 10
LETTERS, PLACES, FEATURES, HEADS, LAYERS = 50, 16, 16, 4, 2


class BasicBlock(nn.Module):
    def __init__(self, inside, outside, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)
        self.downsample = None
        if stride != 1 or inside != outside:
            self.downsample = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (self.downsample(x) if self.downsample else x))


class ResNet18(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, WIDTH, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(WIDTH)
        inside = WIDTH
        for number in range(4):
            outside = WIDTH << number
            blocks = [BasicBlock(inside, outside, 1 if number == 0 else 2), BasicBlock(outside, outside, 1)]
            setattr(self, f"layer{number + 1}", nn.Sequential(*blocks))
            inside = outside
        self.fc = nn.Linear(inside, CLASSES)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


class Conv1D(nn.Module):
    """A linear map whose weight is [in, out], as GPT-2 keeps it."""

    def __init__(self, outside, inside):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(inside, outside))
        self.bias = nn.Parameter(torch.zeros(outside))

    def forward(self, x):
        return x @ self.weight + self.bias


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn = Conv1D(3 * FEATURES, FEATURES)
        self.c_proj = Conv1D(FEATURES, FEATURES)

    def forward(self, x):
        q, k, v = (part.unflatten(2, (HEADS, -1)).transpose(1, 2) for part in self.c_attn(x).split(FEATURES, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).flatten(2))


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_fc = Conv1D(4 * FEATURES, FEATURES)
        self.c_proj = Conv1D(FEATURES, 4 * FEATURES)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(FEATURES), Attention()
        self.ln_2, self.mlp = nn.LayerNorm(FEATURES), MLP()

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT2(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(LETTERS, FEATURES), nn.Embedding(PLACES, FEATURES)
        self.h = nn.ModuleList(Block() for _ in range(LAYERS))
        self.ln_f = nn.LayerNorm(FEATURES)

    def forward(self, text):
        x = self.wte(text) + self.wpe(torch.arange(text.shape[1]))
        for block in self.h:
            x = block(x)
        return self.ln_f(x) @ self.wte.weight.T


def draw(name, shape, low, high):
    random = np.random.RandomState(zlib.crc32(f"{name} {shape}".encode()))
    return torch.tensor(np.round(random.uniform(low, high, shape), 4), dtype=torch.float32)


def main():
    images = draw("images", (2, 3, 33, 40), -1, 1)
    text = torch.arange(2 * 9).reshape(2, 9) * 7 % LETTERS
    for name, network, argument in (("resnet18", ResNet18(), images), ("gpt2", GPT2(), text)):
        network.eval()
        with torch.no_grad():
            for key, tensor in network.state_dict().items():
                if tensor.is_floating_point():
                    low, high = (0.5, 1.5) if key.endswith(("running_var", "ln_f.weight")) else (-0.4, 0.4)
                    tensor.copy_(draw(key, tuple(tensor.shape), low, high))
            output = network(argument)
        torch.save({"state": network.state_dict(), "input": argument, "output": output}, OUT / f"{name}.pt")


if __name__ == "__main__":
    main()

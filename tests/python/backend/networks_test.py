"""Networks: inference and training against eager."""
import unittest

import torch
import torch.nn as nn
import torch.nn.functional as F

import tenon
from comparison import BackendTest


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 5))

    def forward(self, x, y):
        return F.cross_entropy(self.layers(x), y)


class Attention(nn.Module):
    """Written out, so that all of it is ours."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.three = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.three(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        queries, keys, values = parts.unbind(0)
        scores = queries @ keys.transpose(-2, -1) / (width // self.heads) ** 0.5
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(later, float("-inf")).softmax(-1)
        return self.out((weights @ values).transpose(1, 2).reshape(batch, length, width))


class Transformer(nn.Module):
    def __init__(self, words=40, width=32, layers=2):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Embedding(24, width)
        self.blocks = nn.ModuleList()
        for _ in range(layers):
            self.blocks.append(nn.ModuleList([
                nn.LayerNorm(width), Attention(width, 4), nn.LayerNorm(width),
                nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))]))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, tokens, targets=None):
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1]))
        for before, attention, between, dense in self.blocks:
            x = x + attention(before(x))
            x = x + dense(between(x))
        scores = self.head(self.norm(x))
        return scores if targets is None else F.cross_entropy(scores.flatten(0, 1), targets.flatten())


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.second = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)])

    def forward(self, x):
        y = F.relu(self.norms[0](self.first(x)))
        return F.relu(x + self.norms[1](self.second(y)))


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 5, 2, 2), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        self.blocks = nn.Sequential(Residual(8), Residual(8))
        self.head = nn.Linear(8, 4)

    def forward(self, x, y=None):
        scores = self.head(F.adaptive_avg_pool2d(self.blocks(self.stem(x)), 1).flatten(1))
        return scores if y is None else F.cross_entropy(scores, y)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(6, 10)
        self.head = nn.Linear(10, 3)

    def forward(self, x, y):
        state = (x.new_zeros(x.shape[0], 10), x.new_zeros(x.shape[0], 10))
        for step in x.unbind(1):
            state = self.cell(step, state)
        return F.mse_loss(self.head(state[0]), y)


class Experts(nn.Module):
    """A mixture: each row goes through the expert that its gate prefers."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(8, 3)
        self.experts = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))

    def forward(self, x):
        weights, chosen = self.gate(x).softmax(-1).max(-1)
        result = torch.zeros_like(x)
        for at, expert in enumerate(self.experts):
            result = result + expert(x).tanh() * (chosen == at).unsqueeze(-1) * weights.unsqueeze(-1)
        return result.square().mean()


class Networks(BackendTest):
    def test_perceptron(self):
        self.train(Perceptron, lambda step: (torch.randn(6, 8), torch.randint(5, (6,))), native=True)

    def test_transformer(self):
        self.train(Transformer, lambda step: (torch.randint(40, (2, 12)), torch.randint(40, (2, 12))), native=True)

    def test_transformer_of_changing_sizes(self):
        def batch(step):
            return torch.randint(40, (2 + step, 10 + step)), torch.randint(40, (2 + step, 10 + step))

        report = self.train(Transformer, batch, steps=4, dynamic=True, native=True)
        self.assertEqual(len(report.graphs), 2)
        self.assertEqual({part.variants for graph in report.graphs for part in graph.parts}, {1})

    def test_a_growing_text(self):
        model = Transformer().eval()
        compiled = self.compile(model, dynamic=True)
        tokens = torch.randint(40, (1, 4))
        with torch.no_grad():
            for _ in range(8):
                self.assert_close(compiled(tokens), model(tokens))
                tokens = torch.cat([tokens, model(tokens)[:, -1:].argmax(-1)], 1)
        self.assertEqual(tenon.torch_report().failures, [])

    def test_images(self):
        report = self.train(Images, lambda step: (torch.randn(3, 3, 16, 16), torch.randint(4, (3,))))
        self.assertEqual({call.op for call in report.foreign}, set())

    def test_images_in_inference(self):
        model = Images().eval()
        compiled = self.compile(model)
        with torch.no_grad():
            x = torch.randn(2, 3, 16, 16)
            self.assert_close(compiled(x), model(x))

    def test_images_channels_last(self):
        def batch(step):
            return torch.randn(3, 3, 16, 16).to(memory_format=torch.channels_last), torch.randint(4, (3,))

        self.train(lambda: Images().to(memory_format=torch.channels_last), batch)

    def test_recurrent(self):
        self.train(Recurrent, lambda step: (torch.randn(4, 5, 6), torch.randn(4, 3)), native=True)

    def test_experts(self):
        self.train(Experts, lambda step: (torch.randn(7, 8),), native=True)

    def test_attention_of_pytorch(self):
        layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = layer

            def forward(self, x):
                return self.layer(x).square().mean()

        report = self.train(Model, lambda step: (torch.randn(2, 6, 16),))
        self.assertEqual({call.op.rsplit("_cpu")[0] for call in report.foreign},
                         {"aten::_scaled_dot_product_flash_attention_for"})
        self.assertEqual({call.why for call in report.foreign}, {"attention in one kernel is PyTorch's"})

    def test_adamw(self):
        """Ten steps: the losses go down together."""
        losses = []
        for compiled in (True, False):
            torch.manual_seed(1)
            model = Perceptron()
            run = self.compile(model) if compiled else model
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
            x, y = torch.randn(16, 8), torch.randint(5, (16,))
            losses.append([])
            for _ in range(10):
                optimizer.zero_grad()
                loss = run(x, y)
                loss.backward()
                optimizer.step()
                losses[-1].append(loss.item())
        for ours, theirs in zip(*losses):
            self.assertAlmostEqual(ours, theirs, places=3)
        self.assertLess(losses[0][-1], losses[0][0])

    def test_a_compiled_optimizer_step(self):
        def step(parameter, gradient, moment):
            moment.mul_(0.9).add_(gradient, alpha=0.1)
            parameter.sub_(moment / (moment.norm() + 1e-6), alpha=0.1)

        compiled = self.compile(step)
        ours, theirs = ([torch.arange(6.0), torch.ones(6), torch.zeros(6)] for _ in range(2))
        for _ in range(3):
            compiled(*ours)
            step(*theirs)
        self.assert_close(ours, theirs)


if __name__ == "__main__":
    unittest.main()

"""torch.compile(backend="tenon") beside eager and inductor: first calls, steady state, the cost of a call.

    PYTHONPATH=build/python $TENON_PEER_PYTHON bench/torch_backend.py [--without inductor] [--only WORD] [--rounds N]

Milliseconds, the smallest of alternating rounds; compare within a row. `ours`: spent inside our backend while
compiling. `differs`: largest difference of the loss or the result from eager's.
"""
import argparse
import copy
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

import tenon


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.three, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.three(self.norms[0](x)).view(batch, length, 3, self.heads, width // self.heads)
        queries, keys, values = parts.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norms[1](x)), approximate="tanh"))


class Text(nn.Module):
    def __init__(self, words=1000, width=256, layers=4):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(256, width)
        self.blocks = nn.Sequential(*(Block(width, 8) for _ in range(layers)))
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, words))

    def forward(self, tokens, targets):
        scores = self.head(self.blocks(self.words(tokens) + self.places(torch.arange(tokens.shape[1]))))
        return F.cross_entropy(scores.flatten(0, 1), targets.flatten())


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.parts = nn.Sequential(nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels),
                                   nn.ReLU(), nn.Conv2d(channels, channels, 3, padding=1, bias=False),
                                   nn.BatchNorm2d(channels))

    def forward(self, x):
        return F.relu(x + self.parts(x))


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.Sequential(nn.Conv2d(3, 32, 7, 2, 3, bias=False), nn.BatchNorm2d(32), nn.ReLU(),
                                   nn.MaxPool2d(3, 2, 1), *(Residual(32) for _ in range(4)),
                                   nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))

    def forward(self, x, y):
        return F.cross_entropy(self.parts(x), y)


class Dense(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.Sequential(nn.Linear(256, 512), nn.LayerNorm(512), nn.SiLU(), nn.Linear(512, 512),
                                   nn.LayerNorm(512), nn.SiLU(), nn.Linear(512, 10))

    def forward(self, x, y):
        return F.cross_entropy(self.parts(x), y)


class Pointwise(nn.Module):
    def forward(self, x, y):
        x = F.layer_norm(x, (1024,))
        return ((x * torch.sigmoid(x) + y.unsqueeze(-1)).softmax(-1) * x).sum(-1).mean()


NETWORKS = {
    "text, 4 layers": (Text, lambda: (torch.randint(1000, (4, 64)), torch.randint(1000, (4, 64)))),
    "images, 9 convolutions": (Images, lambda: (torch.randn(8, 3, 64, 64), torch.randint(10, (8,)))),
    "dense": (Dense, lambda: (torch.randn(64, 256), torch.randint(10, (64,)))),
    "pointwise and reductions": (Pointwise, lambda: (torch.randn(2048, 1024), torch.randn(2048))),
}


def milliseconds(run):
    began = time.perf_counter()
    result = run()
    return 1000 * (time.perf_counter() - began), result


def steps_of(model, run, data, train):
    def step():
        if not train:
            with torch.no_grad():
                return run(*data)
        for parameter in model.parameters():
            parameter.grad = None
        loss = run(*data)
        if loss.requires_grad:
            loss.backward()
        return loss.detach()

    return step


def measure(name, train, backends, rounds):
    make, batch = NETWORKS[name]
    torch.manual_seed(0)
    first, data = make(), batch()
    steps, row = {}, {}
    for backend in backends:
        torch._dynamo.reset()
        tenon.reset_torch_report()
        model = copy.deepcopy(first).train(train)
        run = model if backend == "eager" else torch.compile(model, backend=backend)
        steps[backend] = steps_of(model, run, data, train)
        row[backend] = {"first": milliseconds(steps[backend])[0], "steady": float("inf")}
        if backend == "tenon":
            report = tenon.torch_report()
            row[backend] |= {"ours": sum(graph.milliseconds for graph in report.graphs), "calls": report.native,
                             "foreign": len(report.foreign), "failures": len(report.failures)}
    for _ in range(rounds):
        losses = {}
        for backend, step in steps.items():
            took, losses[backend] = milliseconds(step)
            row[backend]["steady"] = min(row[backend]["steady"], took)
    row["differs"] = (losses["tenon"] - losses["eager"]).abs().max().item() if not train else float("nan")
    return row


def cost_of_a_call(backends, rounds=12, calls=3000):
    """Of a function that computes nothing to speak of, in microseconds of one thread's time, rounds alternating."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    x, y = torch.randn(8), torch.randn(8)
    torch._dynamo.reset()
    tenon.reset_torch_report()
    runs = {}
    with torch.no_grad():
        for backend in backends:
            # A function of its own for each: PyTorch keeps what it compiled with the code.
            function = eval("lambda x, y: x * 2 + y")
            runs[backend] = function if backend == "eager" else torch.compile(function, backend=backend)
            runs[backend](x, y)
            if backend == "tenon":
                runs["tenon, the part alone"] = tenon.torch_report().graphs[0].parts[0]
        best = dict.fromkeys(runs, float("inf"))
        for _ in range(rounds):
            for name, run in runs.items():
                began = time.process_time()
                for _ in range(calls):
                    run(x, y)
                best[name] = min(best[name], time.process_time() - began)
    torch.set_num_threads(threads)
    return {name: 1e6 * took / calls for name, took in best.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--without", action="append", default=[])
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    backends = [name for name in ("eager", "tenon", "inductor") if name not in options.without]
    print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads\n")
    columns = [f"first {name}" for name in backends[1:]] + ["ours", *backends, "calls", "PyTorch's", "differs"]
    print(f"{'milliseconds':42}" + "".join(f"{word:>16}" for word in columns))
    for name in NETWORKS:
        for train in (False, True):
            title = name + (", training step" if train else ", inference")
            if options.only not in title:
                continue
            row = measure(name, train, backends, options.rounds)
            ours = row["tenon"]
            numbers = [f"{row[each]['first']:.0f}" for each in backends[1:]] + [f"{ours['ours']:.0f}"]
            numbers += [f"{row[each]['steady']:.2f}" for each in backends]
            numbers += [str(ours["calls"]), f"{ours['foreign']}", f"{row['differs']:.1e}"]
            print(f"{title:42}" + "".join(f"{number:>16}" for number in numbers), flush=True)
    if options.only in "cost of a call":
        print("\nmicroseconds, x * 2 + y of 8 elements: " +
              ", ".join(f"{name} {took:.1f}" for name, took in cost_of_a_call(backends).items()))


if __name__ == "__main__":
    main()

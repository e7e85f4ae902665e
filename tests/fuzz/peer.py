"""Runs programs of the fuzzer in PyTorch: reads "COUNT\n", then as often "LENGTH\n" and a text as print_python.cpp
writes it, and prints for each what can be seen after its calls, a line each, then "end". Again until the input ends."""
import sys
import warnings

import torch
import torch.nn.functional

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
aten = torch.ops.aten
hook_calls = [0] * 16
rate_now = [0.5]


def hook(tensor, factor):
    if tensor.requires_grad and tensor.is_leaf and tensor._is_view() and tensor._base.requires_grad:
        # PyTorch 2.13 ends the process: such a view says that it requires grad and has nowhere to keep a hook.
        raise RuntimeError("A view was created in no_grad mode, and a hook is registered on it")
    def changed(gradient):
        if gradient is None:
            return None
        hook_calls[factor] += 1
        return gradient * factor
    tensor.register_hook(changed)


def gradients_of(root, inputs, create_graph):
    found = torch.autograd.grad(root.sum(), inputs, retain_graph=True, create_graph=create_graph, allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for g, x in zip(found, inputs)]


def run_loop(body, operands, reverse):
    """A scan, written out: see loops.h."""
    carry, steps, read = operands
    kept = [None] * len(steps)
    for at in reversed(range(len(steps))) if reverse else range(len(steps)):
        made = body(carry, steps[at], read)
        carry = carry * 0.5 + made[0].to(carry.dtype).sum() * 0.125
        kept[at] = made[1]
    return [carry, torch.stack(kept)]


def with_all(like, operands):
    for each in operands:
        like = like + each.to(like.dtype).sum() * 0.0625
    return like


def run_branch(body, operands, otherwise):
    """A cond: the branch that is taken."""
    first = operands[0]
    if (operands[1].to(torch.float64).sum() > 0).item() == otherwise:
        return [with_all(first * 2, operands), with_all(first.sum(), operands)]
    made = body(*operands)
    carried = first * 0.5 + made[0].to(first.dtype).sum() * 0.125
    return [with_all(carried, operands), with_all(made[1].to(first.dtype).sum(), operands)]


def run_while(body, operands, _):
    """A while_loop, written out."""
    limit = (operands[1] != 0).sum().remainder(3) + 1
    steps, carry = torch.zeros([], dtype=torch.int64), operands[0]
    while (steps < limit).item():
        made = body(carry, operands[1], operands[2])
        carry = carry * 0.5
        for each in made:
            carry = carry + each.to(carry.dtype).sum() * 0.125
        steps, carry = steps + 1, with_all(carry, operands[1:])
    return [carry, steps]


def written(x):
    """What is written to. PyTorch takes a view whose base got a history since for a leaf, until somebody asks it."""
    try:
        x.grad_fn
    except RuntimeError:
        pass
    return x


def flat(x):
    return x.to(torch.float64).flatten()[:x.shape[0]]


# The names that texts of the table use, where PyTorch's function is called otherwise.
NAMES = dict(
    torch=torch, nan=float("nan"), inf=float("inf"), hook=hook, gradients_of=gradients_of, run_loop=run_loop,
    run_branch=run_branch, run_while=run_while,
    rate=lambda: rate_now[0],
    slice=lambda x, dim=0, start=None, end=None, step=1: aten.slice(x, dim, start, end, step),
    squeeze=lambda x, *dim: x.squeeze(*dim), select=torch.select, flatten=lambda x, *d: x.flatten(*d),
    expand=lambda x, sizes: x.expand(sizes), view=lambda x, sizes: x.view(sizes), view_as=lambda x, y: x.view_as(y),
    reshape_as=lambda x, y: x.reshape_as(y), unflatten=lambda x, dim, sizes: x.unflatten(dim, sizes),
    unfold=lambda x, *rest: x.unfold(*rest), index=lambda x, indices: x[indices[0]], first=lambda pair: pair[0],
    add=lambda x, y, alpha: torch.add(x, y, alpha=alpha), softmax=lambda x, n: x.softmax(n), sum=torch.sum,
    log_softmax=lambda x, n: x.log_softmax(n), mean=lambda x, *rest: x.mean(*rest), detach=lambda x: x.detach(),
    embedding=lambda weight, indices: torch.nn.functional.embedding(indices, weight), clone=torch.clone,
    zeros=lambda sizes, dtype=torch.float32: torch.zeros(sizes, dtype=dtype),
    zeros_like=lambda x, dtype: torch.zeros_like(x, dtype=dtype),
    ones=lambda sizes, dtype=torch.float32: torch.ones(sizes, dtype=dtype),
    full=lambda sizes, value, dtype=torch.float32: torch.full(sizes, value, dtype=dtype),
    positives=lambda x: (flat(x) > 0.1).sum().item(),
    positive_rows=lambda x: torch.nonzero(flat(x) > 0.1).squeeze(1),
    piece=lambda pieces, at: pieces[at], first_number=lambda x: x.to(torch.float64).flatten()[:1].amax(),
    add_=lambda x, y: written(x).add_(y), mul_=lambda x, y: written(x).mul_(y), zero_=lambda x: written(x).zero_(),
    copy_=lambda x, y: written(x).copy_(y), fill_=lambda x, y: written(x).fill_(y), sin_=lambda x: written(x).sin_(),
    relu_=lambda x: written(x).relu_(), constant_pad_nd=aten.constant_pad_nd,
    int=int, float=float)
for name in ("sin cos tanh sigmoid erf relu abs exp log sqrt rsqrt sign reciprocal logical_not isnan pow full_like "
             "maximum minimum where logical_and transpose unsqueeze reshape cat masked_select nonzero amax amin "
             "mm matmul t index_select ones_like min max unbind chunk split").split():
    NAMES[name] = getattr(torch, name)


def make_tensor(dtype, values, sizes, strides, offset):
    memory = torch.tensor(values, dtype=torch.float64).to(dtype)
    # No view of anything, for autograd.
    return torch.empty(0, dtype=dtype).set_(memory.untyped_storage(), offset, sizes, strides)


class World:
    def __init__(self, program):
        self.program = program
        count = len(program["bases"])
        self.leaves, self.bases, self.sizes = [None] * count, [None] * count, [None] * count
        self.sources = [None] * len(program["sources"])

    def prepare(self, number):
        call = self.program["calls"][number]
        made = [False] * len(self.bases)
        for at, base in enumerate(self.program["bases"]):
            if (base["kept"] and number > 0 and not call["remake"] and self.sizes[at] == call["sizes"]
                    and self.bases[at].is_leaf):
                self.leaves[at].grad = None
                continue
            leaf = make_tensor(*base["data"][number]).requires_grad_(base["requires_grad"])
            self.leaves[at], self.sizes[at], made[at] = leaf, call["sizes"], True
            self.bases[at] = leaf * 1.5 if base["computed"] else leaf
        for at, source in enumerate(self.program["sources"]):
            base, view = source["views"][number]
            same = number > 0 and source["numbers"][number] == source["numbers"][number - 1] \
                and base == source["views"][number - 1][0]
            if not same or made[base]:
                self.sources[at] = view(self.bases[base])
        rate_now[0] = call["rate"]
        hook_calls[:] = [0] * 16

    def all(self, results):
        return self.bases + self.sources + results


def values_of(tensor):
    return " ".join(repr(x) for x in tensor.detach().to(torch.float64).flatten().tolist())


def tensor_text(tensor):
    return f"{str(tensor.dtype)[6:]}|{','.join(map(str, tensor.shape))}|{values_of(tensor)}"


def look(when, world, results, say):
    names = [f"base {at}" for at in range(len(world.bases))] + [f"source {at}" for at in range(len(world.sources))] + \
        [f"result {at}" for at in range(len(results))]
    everything = world.all(results)
    for tensor in everything:
        tensor.grad_fn  # PyTorch may refuse to tell: then that is what there is to see
    storages = [tensor.untyped_storage()._cdata for tensor in everything]
    for at, tensor in enumerate(everything):
        shares = storages.index(storages[at])
        distance = tensor.storage_offset() - everything[shares].storage_offset()
        say(f"{when} {names[at]}|{','.join(map(str, tensor.stride()))}|"
            f"{int(tensor.requires_grad)} {int(tensor.is_leaf)} {shares} {distance}|{tensor_text(tensor)}")


def weighted_sum(tensor, start):
    weights = (torch.arange(tensor.numel(), dtype=torch.float64) * 1.7 + start).sin() * 0.3 + 0.6
    return (tensor.to(torch.float64) * weights.view(tensor.shape)).sum()


def differentiate(world, results, order, of_bases, between):
    leaves, noted = [], []
    for tensor in world.leaves + world.sources + results:
        if tensor.requires_grad and tensor.is_leaf and not any(leaf is tensor for leaf in leaves):
            leaves.append(tensor)
    total, start = torch.zeros((), dtype=torch.float64), 0
    for tensor in results + (world.bases if of_bases else []):
        if tensor.requires_grad:
            total, start = total + weighted_sum(tensor, start), start + 1
    if not total.requires_grad:
        return []
    inputs = list(leaves)
    for tensor in results if between else []:
        if tensor.requires_grad and not any(known is tensor for known in inputs):
            inputs.append(tensor)
    for round in range(0 if between else 1, order):
        squares = torch.zeros((), dtype=torch.float64)
        gradients = torch.autograd.grad(total, inputs, retain_graph=True, create_graph=round > 0, allow_unused=True)
        for gradient in gradients:
            noted.append(None if gradient is None else gradient.detach().clone())
            if gradient is not None and gradient.requires_grad:
                squares = squares + gradient.to(torch.float64).square().sum()
        total = total + squares
    total.backward()
    return noted + [leaf.grad for leaf in leaves]


def error_text(error):
    return " ".join(str(error).split())[:200]


def run_call(program, world, function, number, say):
    """Whether the next call may come."""
    say("call")
    torch.set_grad_enabled(True)
    try:
        world.prepare(number)
    except RuntimeError as error:
        say("call_error " + error_text(error))
        return False
    versions = [base._version for base in world.bases]
    torch.set_grad_enabled(program["grad_mode"])
    try:
        results = function(*world.sources)
    except Exception as error:  # whatever PyTorch raises is an answer
        say("call_error " + error_text(error))
        return False
    finally:
        mode = torch.is_grad_enabled()
        torch.set_grad_enabled(True)
    moved = " ".join(str(int(base._version != before)) for base, before in zip(world.bases, versions))
    say(f"state {int(mode)} {moved}")
    try:
        look("after_call", world, results, say)
    except RuntimeError as error:
        say("call_error " + error_text(error))
        return False
    if program["actions"]:
        try:
            everything = world.all(results)
            for action, target, other in program["actions"]:
                action(everything[target], everything[other])
        except Exception as error:
            say("action_error " + error_text(error))
            return True
        try:
            look("after_actions", world, results, say)
        except RuntimeError as error:
            say("action_error " + error_text(error))
            return True
    if program["order"] > 0:
        try:
            for gradient in differentiate(world, results, program["order"], program["of_bases"], program["between"]):
                say("gradient -" if gradient is None else "gradient " + tensor_text(gradient))
        except Exception as error:
            say("gradient_error " + error_text(error))
    say("hooks " + " ".join(map(str, hook_calls)))
    return True


def run_program(text):
    scope, lines = dict(NAMES), []
    exec(text, scope)  # a program of the fuzzer's own
    world = World(scope["P"])
    for number in range(len(scope["P"]["calls"])):
        if not run_call(scope["P"], world, scope["function"], number, lines.append):
            break
    torch.set_grad_enabled(True)
    return "\n".join(lines + ["end", ""])


def main():
    source = sys.stdin.buffer
    while count := source.readline():
        programs = [source.read(int(source.readline())).decode() for _ in range(int(count))]
        for program in programs:
            sys.stdout.write(run_program(program))
        sys.stdout.flush()


if __name__ == "__main__":
    main()

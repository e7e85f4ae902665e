"""Compiled against eager."""
import copy
import unittest

import torch

import tenon


class BackendTest(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        tenon.reset_torch_report()
        torch.manual_seed(0)

    def compile(self, function, **options):
        options.setdefault("options", {"strict": True})
        return torch.compile(function, backend="tenon", **options)

    def assert_close(self, ours, theirs, rtol=1e-4, atol=1e-5):
        """Values, dtypes, sizes and strides, through tuples, lists and dicts."""
        if isinstance(theirs, (tuple, list)):
            self.assertEqual(len(ours), len(theirs))
            for each, other in zip(ours, theirs):
                self.assert_close(each, other, rtol, atol)
        elif isinstance(theirs, dict):
            self.assertEqual(ours.keys(), theirs.keys())
            for key in theirs:
                self.assert_close(ours[key], theirs[key], rtol, atol)
        elif isinstance(theirs, torch.Tensor):
            torch.testing.assert_close(ours, theirs, rtol=rtol, atol=atol, equal_nan=True)
            if theirs.numel() > 0:
                walked = [dim for dim in range(theirs.dim()) if theirs.shape[dim] > 1]
                self.assertEqual([ours.stride(dim) for dim in walked], [theirs.stride(dim) for dim in walked])
        else:
            self.assertEqual(ours, theirs)

    def check(self, function, *args, native=True, grads=True, **options):
        """Results, and the gradients of the arguments that can have one; twice, the second call a cached one."""
        for _ in range(2):
            outcomes = []
            for run in (self.compile(function, **options), function):
                given = [self._leaf(arg, grads) for arg in args]
                results = run(*given)
                outcome = [results]
                flat = [each for each in torch.utils._pytree.tree_leaves(results) if isinstance(each, torch.Tensor)]
                scores = [each.double().sum() for each in flat if each.requires_grad]
                if scores:
                    sum(scores).backward()
                    outcome.append([arg.grad for arg in given if isinstance(arg, torch.Tensor)])
                outcomes.append(outcome)
            self.assert_close(torch.utils._pytree.tree_map(_detached, outcomes[0]),
                              torch.utils._pytree.tree_map(_detached, outcomes[1]))
        report = tenon.torch_report()
        self.assertEqual(report.failures, [])
        self.assertGreater(len(report.graphs), 0)
        if native:
            self.assertEqual([f"{call.op}: {call.why}" for call in report.foreign], [])
        return report

    def _leaf(self, arg, grads):
        if not isinstance(arg, torch.Tensor):
            return arg
        clone = torch.empty_strided(arg.shape, arg.stride(), dtype=arg.dtype)
        clone = clone.copy_(arg) if 0 not in arg.stride() or arg.numel() == 0 else arg.clone().expand_as(arg)
        return clone.detach().requires_grad_(grads and arg.is_floating_point())

    def train(self, make, batch, steps=3, atol=2e-3, native=False, **options):
        """Steps of SGD of a compiled and an eager copy, on the same data: losses, gradients and buffers."""
        eager = make()
        other = copy.deepcopy(eager)
        compiled = self.compile(other, **options)
        optimizers = [torch.optim.SGD(model.parameters(), lr=0.05) for model in (eager, other)]
        for step in range(steps):
            data = batch(step)
            losses = []
            for model, optimizer in zip((eager, compiled), optimizers):
                optimizer.zero_grad()
                losses.append(model(*data))
                losses[-1].backward()
            self.assert_close(losses[1].detach(), losses[0].detach())
            for ours, theirs in zip(other.parameters(), eager.parameters()):
                self.assert_close(ours.grad, theirs.grad, atol=1e-4)
            for optimizer in optimizers:
                optimizer.step()
        self.assert_close(list(other.buffers()), list(eager.buffers()))
        report = tenon.torch_report()
        self.assertEqual(report.failures, [])
        if native:
            self.assertEqual([f"{call.op}: {call.why}" for call in report.foreign], [])
        return report


def _detached(value):
    return value.detach() if isinstance(value, torch.Tensor) else value

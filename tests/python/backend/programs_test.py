"""Small programs: what comes out is what eager gives, values, dtypes and strides, forward and backward."""
import unittest

import torch
import torch.nn.functional as F

import tenon
from comparison import BackendTest

X = torch.linspace(-2, 2, 12).reshape(3, 4)
Y = torch.linspace(0.5, 3, 12).reshape(3, 4)


class Programs(BackendTest):
    def test_pointwise(self):
        self.check(lambda x, y: (x.sin() * y + 1) / y.exp(), X, Y)

    def test_numbers_where_tensors_are_meant(self):
        self.check(lambda x: ((x + 2) * 3 - 1) / 4 - (5 - x) + x**2, X)

    def test_numbers_before_tensors(self):
        self.check(lambda x: (1 - x, 2 / (x + 3), torch.where(x > 0, 1.5, x), torch.rsub(x, 0.1)), X)
        self.check(lambda x: (0.1 - x, torch.where(x > 0, 0.1, x)), X.double())

    def test_comparisons_and_where(self):
        self.check(lambda x, y: torch.where((x > 0) & (y < 2), x * y, -y), X, Y)

    def test_clamps_and_masks(self):
        self.check(lambda x: (x.clamp(-1, 1), x.masked_fill(x > 0.5, -3.0), x.relu()), X)

    def test_reductions(self):
        self.check(lambda x: (x.sum(), x.mean(1), x.amax(0), x.var(1), x.std(0), x.logsumexp(1)), X)

    def test_softmax(self):
        self.check(lambda x: (x.softmax(1), x.log_softmax(0)), X)

    def test_argmax_and_sort(self):
        self.check(lambda x: (x.argmax(1), x.sort(1).values, x.topk(2, dim=1).values), X)

    def test_products(self):
        self.check(lambda x, y: (x @ y.t(), torch.addmm(x.sum(1), x, y.t()), (x[None] @ y.t()[None])), X, Y)

    def test_views(self):
        self.check(lambda x: (x.t() + 1, x.reshape(2, 6) * 2, x[:, 1:3] - 1, x.unsqueeze(1).expand(3, 2, 4) + 1), X)

    def test_concatenation(self):
        self.check(lambda x, y: (torch.cat([x, y], 1), torch.stack([x, y])), X, Y)

    def test_indexing(self):
        self.check(lambda x, i: (x[i], x.index_select(1, i), x.gather(0, i[None].expand(1, 3)), F.embedding(i, x)), X,
                   torch.tensor([2, 0, 1]))

    def test_losses(self):
        target = torch.tensor([1, 3, 0])
        self.check(lambda x, y: (F.cross_entropy(x, target), F.mse_loss(x, y), F.l1_loss(x, y),
                                 F.binary_cross_entropy_with_logits(x, y)), X, Y)

    def test_normalisation(self):
        self.check(lambda x, w: (F.layer_norm(x, (4,), w, w), F.rms_norm(x, (4,), w)), X, torch.ones(4))

    def test_activations(self):
        self.check(lambda x: [f(x) for f in (F.gelu, F.silu, F.softplus, F.elu, F.leaky_relu, F.hardtanh, F.hardswish,
                                             F.mish, torch.tanh, torch.sigmoid)], X)

    def test_dtypes(self):
        for dtype in (torch.float64, torch.float16, torch.bfloat16):
            with self.subTest(dtype=dtype):
                self.setUp()
                self.check(lambda x: (x * 2 + 1, x.to(torch.float32) * 2), X.to(dtype))

    def test_integers_and_bools(self):
        self.check(lambda x: (x * 2, x // 3, x % 3, x > 2, (x > 2) | (x < 0), x.sum(), x.float() / 2),
                   torch.arange(-3, 9).reshape(3, 4))

    def test_factories(self):
        self.check(lambda x: (x + torch.arange(4), torch.ones_like(x) * x, torch.zeros(3, 4) + x, x + torch.eye(3, 4)),
                   X)

    def test_constants(self):
        self.check(lambda x: x + torch.tensor([1.0, 2.0, 3.0, 4.0]) * torch.tensor(2.0), X,
                   options={"fullgraph": True, "strict": True})

    def test_a_number_as_result(self):
        self.check(lambda x: (x + 1, x.shape[0] * 2, "word", None), X, dynamic=True)

    def test_strides_of_results_are_eagers(self):
        self.check(lambda x: (x.t() * 2, x.permute(1, 0).contiguous() + 1, x.t().clone()), X)

    def test_channels_last(self):
        x = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
        self.check(lambda x: (x * 2 + 1, x.relu(), x.contiguous(), x.clone(memory_format=torch.channels_last)), x)

    def test_dictionaries_and_nested_results(self):
        self.check(lambda x: {"a": x + 1, "b": [x * 2, (x - 1, x.sum())]}, X)

    def test_without_gradients(self):
        report = self.check(lambda x: x.sin() + 1, X, grads=False)
        self.assertEqual({graph.kind for graph in report.graphs}, {"inference"})

    def test_no_grad_inside(self):
        def program(x):
            with torch.no_grad():
                y = x * 2
            return x * y

        self.check(program, X)

    def test_detach(self):
        self.check(lambda x: x * x.detach() + x.detach().sum(), X)

    def test_inference_mode(self):
        compiled = self.compile(lambda x: x.sin() * 2)
        with torch.inference_mode():
            self.assert_close(compiled(X), X.sin() * 2)

    def test_autocast(self):
        def program(x, w):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return (x @ w).float().relu()

        compiled = self.compile(program)
        self.assert_close(compiled(X, X.t().contiguous()), program(X, X.t().contiguous()), rtol=2e-2, atol=2e-2)

    def test_second_derivatives_are_refused_with_pytorchs_words(self):
        compiled = self.compile(lambda x: (x**3).sum())
        x = X.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(compiled(x), x, create_graph=True)
        with self.assertRaisesRegex(RuntimeError, "does not currently support double backward"):
            gradient.sum().backward()

    def test_the_gradient_of_one_argument_alone(self):
        compiled = self.compile(lambda x, y: (x * y).sum())
        x, y = X.clone().requires_grad_(), Y.clone()
        compiled(x, y).backward()
        self.assert_close(x.grad, Y)

    def test_backward_twice(self):
        compiled = self.compile(lambda x: (x.sin() * x).sum())
        x = X.clone().requires_grad_()
        loss = compiled(x)
        loss.backward(retain_graph=True)
        once = x.grad.clone()
        loss.backward(retain_graph=True)
        self.assert_close(x.grad, 2 * once)

    def test_gradients_of_a_result_in_another_layout(self):
        compiled = self.compile(lambda x: x * 2)
        x, other = X.clone().requires_grad_(), X.clone().requires_grad_()
        tangent = torch.randn(4, 3).t()
        compiled(x).backward(tangent)
        (other * 2).backward(tangent)
        self.assert_close(x.grad, other.grad)

    def test_counts(self):
        before = tenon.counters().get("python_parts_compiled", 0)
        compiled = self.compile(lambda x: x.sin() + 1)
        for _ in range(5):
            compiled(X)
        self.assertEqual(tenon.counters()["python_parts_compiled"] - before, 1)


if __name__ == "__main__":
    unittest.main()

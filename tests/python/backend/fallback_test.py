"""What we do not have is PyTorch's, and the report says so."""
import unittest

import torch

import tenon
from comparison import BackendTest

X = torch.linspace(-2, 2, 12).reshape(3, 4)


@torch.library.custom_op("tenon_tests::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@twice.register_fake
def _(x):
    return torch.empty_like(x)


class Fallback(BackendTest):
    def test_a_custom_operator_between_two_parts(self):
        report = self.check(lambda x: twice(x.sin()) + 1, X, native=False, grads=False)
        self.assertEqual({call.op for call in report.foreign}, {"tenon_tests::twice"})
        self.assertEqual({graph.part_count for graph in report.graphs}, {2})
        self.assertIn("there is no such operator here", report.foreign[0].why)
        self.assertGreater(report.foreign[0].calls, 0)
        self.assertIn("tenon_tests::twice", str(report))

    def test_parts_on_both_sides_of_two_calls_are_as_few_as_possible(self):
        report = self.check(lambda x: twice(x.sin()) + twice(x.cos()) * 2, X, native=False, grads=False)
        self.assertEqual({graph.part_count for graph in report.graphs}, {2})

    def test_complex_numbers(self):
        self.check(lambda x: (torch.view_as_real(torch.fft.fft(x)) * 2).sum(-1), X, native=False)

    def test_conjugates(self):
        z = torch.complex(X, X + 1).conj()
        self.check(lambda z, x: (z.imag + x, z.real * 2), z, X, native=False, grads=False)

    def test_random_numbers_are_eagers(self):
        def program(x):
            return x.sin() + torch.rand(3, 4) + torch.randn_like(x).cos()

        compiled = self.compile(program)
        torch.manual_seed(7)
        ours = compiled(X)
        torch.manual_seed(7)
        self.assert_close(ours, program(X))
        self.assertEqual({call.why for call in tenon.torch_report().foreign}, {"random numbers are PyTorch's"})

    def test_random_calls_keep_their_order(self):
        def program(x):
            first = torch.rand(4) + twice(x.sin()).sum()  # needs a foreign result
            second = torch.rand(4)  # needs nothing
            return first * 2, torch.bernoulli(torch.sigmoid(first)), second

        compiled = self.compile(program)
        torch.manual_seed(7)
        ours = compiled(X)
        torch.manual_seed(7)
        self.assert_close(ours, program(X))

    def test_dropout_repeats_with_the_seed(self):
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 2))
        compiled = self.compile(model)
        outcomes = []
        for run in (compiled, model):
            torch.manual_seed(3)
            model.zero_grad()
            result = run(X)
            result.sum().backward()
            outcomes.append([result.detach(), *(p.grad.clone() for p in model.parameters())])
        self.assert_close(outcomes[0], outcomes[1])

    def test_fullgraph_lists_what_would_be_pytorchs(self):
        compiled = self.compile(lambda x: twice(x) + torch.rand(4), options={"fullgraph": True})
        with self.assertRaisesRegex(Exception, "(?s)these calls would be PyTorch's:.*rand.*random.*twice.*no such"):
            compiled(X)

    def test_fullgraph_with_nothing_to_list(self):
        self.check(lambda x: x.sin() + 1, X, options={"fullgraph": True, "strict": True})

    def test_an_unknown_option_is_an_error_that_names_the_known_ones(self):
        with self.assertRaisesRegex(Exception, "unknown options .*fulgraph.*expected some of .*fullgraph.*strict"):
            self.compile(lambda x: x + 1, options={"fulgraph": True})(X)

    def test_values_from_data(self):
        def program(x):
            n = (x > 0).sum().item()
            torch._check(n >= 0)
            return x * n + n

        with torch._dynamo.config.patch(capture_scalar_outputs=True):
            self.check(program, X, native=False, grads=False)

    def test_sizes_from_data(self):
        def program(x):
            places = x.nonzero()
            return places * 2 + 1, places.float().sum(0)

        with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
            compiled = self.compile(program)
            for least in (-3.0, 0.0, 1.0, 5.0):
                x = torch.where(X > least, X, 0)
                self.assert_close(compiled(x), program(x))

    def test_operators_that_pytorch_would_ask_data_about(self):
        edges = torch.tensor([-1.0, 0.0, 1.0])
        self.check(lambda x, i: (torch.bucketize(x, edges) + 1, x.take(i) * 2), X, torch.tensor([1, 5]), native=False)

    def test_graph_breaks(self):
        def program(x):
            y = x.sin()
            if y.sum() > 0:
                y = y * 2
            return y + 1

        compiled = self.compile(program)
        for x in (X + 1, X - 1):
            self.assert_close(compiled(x), program(x))

    def test_errors_of_indices_are_pytorchs(self):
        compiled = self.compile(lambda x, i: x.index_select(0, i) + 1, options=None)
        i = torch.tensor([0, 1])
        self.assert_close(compiled(X, i), X[:2] + 1)
        with self.assertRaisesRegex(IndexError, "index out of range"):
            compiled(X, torch.tensor([0, 9]))
        self.assertEqual(len(tenon.torch_report().failures), 1)
        self.assert_close(compiled(X, i), X[:2] + 1)

    def test_higher_order_operators(self):
        def program(x):
            return torch.cond(x.sum() > 0, lambda y: y.sin() + 1, lambda y: y.cos() - 1, (x,)) * 2

        compiled = self.compile(program)
        for x in (X + 1, X - 1):
            self.assert_close(compiled(x), program(x))

    def test_the_source_of_the_function_is_shown(self):
        self.compile(lambda x: twice(x.sin()) + 1)(X)
        self.assertIn("def run(args):", tenon.torch_report().graphs[0].source)


if __name__ == "__main__":
    unittest.main()

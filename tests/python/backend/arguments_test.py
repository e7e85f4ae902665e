"""Arguments that are views, empty, expanded, shared, of changing sizes; results that are arguments."""
import copy
import gc
import os
import pickle
import subprocess
import sys
import threading
import unittest

import torch
import torch.nn.functional as F

import tenon
from comparison import BackendTest

X = torch.linspace(-2, 2, 12).reshape(3, 4)


class Arguments(BackendTest):
    def test_a_returned_argument_is_the_same_object(self):
        compiled = self.compile(lambda x: (x + 1, x))
        self.assertIs(compiled(X)[1], X)

    def test_a_returned_view_looks_into_the_argument(self):
        compiled = self.compile(lambda x: (x + 1, x[1:], x.t()))
        x = X.clone()
        _, rows, turned = compiled(x)
        x.fill_(7)
        self.assertTrue((rows == 7).all() and (turned == 7).all())

    def test_a_view_outlives_its_argument(self):
        compiled = self.compile(lambda x: x[1:] * 1)
        rows = compiled(X.clone())
        gc.collect()
        torch.randn(100, 100)
        self.assert_close(rows, X[1:])

    def test_results_that_share_memory(self):
        def program(x):
            y = x + 1
            return y, y[1:], y.t(), y[:, 2]

        whole, rows, turned, column = self.compile(program)(X)
        self.assert_close((whole, rows, turned, column), program(X))
        whole.fill_(5)
        self.assertTrue((rows == 5).all() and (turned == 5).all() and (column == 5).all())

    def test_a_view_at_a_place_that_changes(self):
        compiled = self.compile(lambda x, n: x.as_strided((2, 2), (1, 2), n))
        for n in (0, 1, 3, 4):
            self.assert_close(compiled(X, n), X.as_strided((2, 2), (1, 2), n))

    def test_views_of_arguments_that_begin_inside_of_their_storage(self):
        compiled = self.compile(lambda x: (x[1:], x.t()), dynamic=True)
        whole = torch.arange(24.0).reshape(6, 4)
        for x in (whole[1:4], whole[2:6], whole[3:]):
            self.assert_close(compiled(x), (x[1:], x.t()))

    def test_written_arguments(self):
        def program(x, y):
            x.mul_(2)
            y[0] = x[1]
            return x + y

        ours, theirs = ([X.clone(), X.clone() + 1] for _ in range(2))
        self.assert_close(self.compile(program)(*ours), program(*theirs))
        self.assert_close(ours, theirs)

    def test_arguments_that_share_memory(self):
        def program(x, y):
            x.add_(1)
            return y * 2

        outcomes = []
        for run in (self.compile(program), program):
            whole = X.clone().flatten()
            outcomes.append([run(whole[2:6], whole[4:8]), whole])
        self.assert_close(outcomes[0], outcomes[1])

    def test_the_same_argument_twice(self):
        self.check(lambda x, y: x * y + x, X, X)
        compiled = self.compile(lambda x, y: x * y + x)
        self.assert_close(compiled(X, X), X * X + X)

    def test_offsets_and_gaps(self):
        whole = torch.randn(6, 8)
        compiled = self.compile(lambda x: (x * 2, x.sum(0), x.t().contiguous()))
        for view in (whole[1:4, 2:6], whole[::2, ::2], whole.t()[1:5], whole[5:, 1:]):
            self.assert_close(compiled(view), (view * 2, view.sum(0), view.t().contiguous()))

    def test_expanded(self):
        x = torch.randn(1, 4).expand(3, 4)
        compiled = self.compile(lambda x: (x + 1, x.sum(0)))
        ours = compiled(x)
        torch.testing.assert_close(ours, (x + 1, x.sum(0)))

    def test_size_0(self):
        compiled = self.compile(lambda x: (x * 2, x.sum(), x.sum(0), torch.cat([x, x])))
        for x in (torch.zeros(0, 4), torch.zeros(3, 0), torch.zeros(0)):
            self.assert_close(compiled(x), (x * 2, x.sum(), x.sum(0), torch.cat([x, x])))

    def test_no_dimensions(self):
        self.check(lambda x, y: (x * y, x.sum(), x.reshape(1) + 1), torch.tensor(2.0), torch.tensor(3.0))

    def test_changing_sizes_compile_twice_at_most(self):
        before = tenon.counters().get("python_parts_compiled", 0)
        compiled = self.compile(lambda x: (x.softmax(1) * x.shape[0]).sum(0))
        for rows in (3, 5, 7, 9, 50, 2):
            x = torch.randn(rows, 6)
            self.assert_close(compiled(x), (x.softmax(1) * rows).sum(0))
        self.assertLessEqual(tenon.counters()["python_parts_compiled"] - before, 2)

    def test_sizes_of_1_and_0_after_others(self):
        compiled = self.compile(lambda x: x.softmax(1).sum(0) + x.shape[0], dynamic=True)
        for rows in (3, 5, 1, 0, 4, 1):
            x = torch.randn(rows, 6)
            self.assert_close(compiled(x), x.softmax(1).sum(0) + rows)

    def test_expressions_of_sizes(self):
        def program(x):
            n = x.shape[0]
            return x.reshape(n // 2, 2, -1).sum(1), torch.arange(2 * n + 1) * n, x[: n // 2] + n % 3, n * 4

        compiled = self.compile(program, dynamic=True)
        for rows in (4, 6, 10):
            x = torch.randn(rows, 6)
            self.assert_close(compiled(x), program(x))

    def test_training_with_expressions_of_sizes(self):
        def program(x):
            return torch.cat([x, x * 2]).reshape(2, -1).square().sum()

        for rows in (4, 6, 9):
            with self.subTest(rows=rows):
                ours, theirs = (torch.linspace(-1, 1, rows * 3).reshape(rows, 3).requires_grad_() for _ in range(2))
                self.compile(program, dynamic=True)(ours).backward()
                program(theirs).backward()
                self.assert_close(ours.grad, theirs.grad)

    def test_sizes_in_real_arithmetic(self):
        compiled = self.compile(lambda x: (F.group_norm(x, 2), x / x.shape[0] ** 0.5), dynamic=True)
        for rows in (3, 5):
            x = torch.randn(rows, 4, 3)
            self.assert_close(compiled(x), (F.group_norm(x, 2), x / rows**0.5))

    def test_numbers_as_arguments(self):
        compiled = self.compile(lambda x, n, f: x * n + f, dynamic=True)
        for n, f in ((3, 0.5), (5, 1.5), (-2, 0.25)):
            self.assert_close(compiled(X, n, f), X * n + f)

    def test_a_parameter_that_is_replaced(self):
        model = torch.nn.Linear(4, 2)
        compiled = self.compile(model)
        self.assert_close(compiled(X).detach(), model(X).detach())
        model.weight = torch.nn.Parameter(torch.ones(2, 4))
        self.assert_close(compiled(X).detach(), model(X).detach())

    def test_modules_can_be_copied_and_pickled_after_compiling(self):
        model = torch.nn.Linear(4, 2)
        compiled = self.compile(model)
        compiled(X)
        for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), copy.deepcopy(compiled)):
            self.assert_close(other(X).detach(), model(X).detach())

    def test_memory_does_not_grow(self):
        compiled = self.compile(lambda x: (x * 2 + 1, x.sum(0)), dynamic=True)
        for rows in (2, 3):
            compiled(torch.randn(rows, 100))
        counts = []
        for round_ in range(4):
            for rows in range(2, 200):
                compiled(torch.randn(rows, 100))
            gc.collect()
            counts.append(sum(type(each) is torch.Tensor for each in gc.get_objects()))
        self.assertEqual(counts[1], counts[-1])

    def test_the_report_keeps_no_part_alive(self):
        compiled = self.compile(lambda x: x.sin() + 1)
        compiled(X)
        (graph,) = tenon.torch_report().graphs
        self.assertEqual((graph.part_count, len(graph.parts)), (1, 1))
        del compiled
        torch._dynamo.reset()
        gc.collect()
        self.assertEqual((graph.part_count, len(graph.parts)), (1, 0))

    def test_eight_threads(self):
        compiled = self.compile(lambda x, w: (x @ w).relu().sum(1))
        w = torch.randn(8, 8)
        compiled(torch.randn(4, 8), w)
        failures = []

        def work(seed):
            generator = torch.Generator().manual_seed(seed)
            for _ in range(50):
                x = torch.randn(4, 8, generator=generator)
                if not torch.allclose(compiled(x, w), (x @ w).relu().sum(1), atol=1e-5):
                    failures.append(seed)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_results_may_be_freed_on_another_thread(self):
        compiled = self.compile(lambda x: x + 1)
        results = [compiled(X) for _ in range(20)]
        thread = threading.Thread(target=results.clear)
        thread.start()
        thread.join()
        self.assert_close(compiled(X), X + 1)

    def test_results_can_be_written_and_resized(self):
        compiled = self.compile(lambda x: x + 1)
        result = compiled(X)
        result.mul_(2)
        self.assert_close(result, (X + 1) * 2)
        self.assert_close(compiled(X), X + 1)

    def test_an_exception_in_a_hook(self):
        compiled = self.compile(lambda x: (x * 2).sum())
        x = X.clone().requires_grad_()

        def hook(gradient):
            raise KeyError("hook")

        handle = x.register_hook(hook)
        with self.assertRaises(KeyError):
            compiled(x).backward()
        handle.remove()
        compiled(x).backward()
        self.assert_close(x.grad, torch.full_like(X, 2))

    def test_a_forked_child(self):
        """As the workers of a DataLoader are."""
        compiled = self.compile(lambda x: (x @ x.t()).softmax(1).sum())
        expected = compiled(X).item()
        child = os.fork()
        if child == 0:
            os._exit(0 if abs(compiled(X).item() - expected) < 1e-5 else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_the_interpreter_may_end_with_compiled_functions_alive(self):
        code = ("import torch, threading\n"
                "f = torch.compile(lambda x: (x * 2).sum(), backend='tenon')\n"
                "x = torch.ones(4, requires_grad=True)\n"
                "kept = f(x)\n"
                "kept.backward()\n"
                "print(x.grad.tolist())\n")
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, "[2.0, 2.0, 2.0, 2.0]\n"), done.stderr)

    def test_a_parameter_that_is_resized(self):
        model = torch.nn.Linear(4, 2)
        compiled = self.compile(model)
        compiled(X)
        model.weight.data, model.bias.data = torch.ones(5, 4), torch.ones(5)
        self.assert_close(compiled(X).detach(), model(X).detach())

    def test_another_dtype_and_another_device(self):
        compiled = self.compile(lambda x: x * 2 + 1)
        for x in (X, X.double(), X.to(torch.complex64), X.to("meta"), X.to(torch.int32)):
            ours, theirs = compiled(x), x * 2 + 1
            self.assertEqual((ours.dtype, ours.device, ours.shape), (theirs.dtype, theirs.device, theirs.shape))
            if x.device.type == "cpu":
                self.assert_close(ours, theirs)

    def test_there_is_one_openmp(self):
        self.compile(lambda x: x.sum())(X)
        with open("/proc/self/maps", encoding="utf-8") as maps:
            found = {line.split()[-1] for line in maps if "gomp" in line or "iomp" in line}
        self.assertEqual(len(found), 1, found)


if __name__ == "__main__":
    unittest.main()

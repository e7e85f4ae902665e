"""The demo: demo_test.py PATH_OF_DEMO. Its claims about results and counts are checked here; its times are not."""
import os
import re
import subprocess
import sys
import tempfile
import unittest

DEMO = sys.argv.pop()


def run(*arguments):
    return subprocess.run([DEMO, *arguments], capture_output=True, text=True, check=False)


class Demo(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory()
        cls.folder = os.path.join(cls.place.name, "files")
        cls.done = run("--output", cls.folder)

    @classmethod
    def tearDownClass(cls):
        cls.place.cleanup()

    def read(self, *path):
        with open(os.path.join(self.folder, *path), encoding="utf-8") as file:
            return file.read()

    def test_last_line(self):
        self.assertEqual(self.done.returncode, 0, self.done.stderr)
        last = self.done.stdout.splitlines()[-1]
        self.assertTrue(last.startswith("demo: "), last)
        values = dict(word.split("=") for word in last.split()[1:])
        self.assertEqual(list(values), ["max_rel_diff", "compiles", "launches_eager", "launches_compiled", "cold_ms",
                                        "warm_ms"])
        numbers = {name: float(value) for name, value in values.items()}
        self.assertLessEqual(numbers["max_rel_diff"], 1e-5)
        self.assertEqual(numbers["compiles"], 2)
        self.assertGreater(numbers["launches_compiled"], 0)
        self.assertLessEqual(3 * numbers["launches_compiled"], numbers["launches_eager"])
        self.assertGreater(numbers["warm_ms"], 0)
        self.assertGreater(numbers["cold_ms"], 0)

    def test_it_learns(self):
        losses = [[float(each) for each in re.search(rf"loss at step {step} +(\S+) +(\S+)", self.done.stdout).groups()]
                  for step in (0, 50, 100)]
        for eager, compiled in losses:
            self.assertLessEqual(abs(eager - compiled), 1e-5 * eager + 1e-6)
        self.assertLess(losses[2][0], 0.7 * losses[0][0])

    def test_no_progress_line_in_a_file(self):
        self.assertNotIn("\r", self.done.stdout)

    def test_what_it_leaves(self):
        self.assertIn(self.folder, self.done.stdout)
        for graph in ("graph_0", "graph_1"):
            self.assertIn("cross_entropy", self.read(graph, "captured.txt"))
            for name in ("joint.txt", "forward.txt", "backward.txt"):
                self.assertIn("return", self.read(graph, name), name)
        self.assertIn("size of arg0 at dim 0 == 32", self.read("graph_0", "guards.txt"))
        self.assertIn("size of arg0 at dim 0: expected 32, got 48", self.read("graph_1", "guards.txt"))
        names = os.listdir(os.path.join(self.folder, "kernels"))
        kernels = [name[:-len(".kernel")] for name in names if name.endswith(".kernel")]
        self.assertTrue(kernels)
        for kernel in kernels:
            self.assertTrue(self.read("kernels", kernel + ".kernel").startswith("kernel "))
            self.assertIn(kernel + ".ll", names)
            self.assertIn(kernel + ".s", names)

    def test_foreign_folder_is_left_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "kernels"))
            done = run("--output", folder)
            self.assertEqual(done.returncode, 1)
            self.assertIn("holds other files", done.stderr)
            self.assertEqual(os.listdir(folder), ["kernels"])

    def test_arguments(self):
        self.assertEqual(run("--help").returncode, 0)
        self.assertTrue(run("--help").stdout.startswith("usage: demo"))
        done = run("--outptu")
        self.assertEqual(done.returncode, 2)
        self.assertIn("unknown argument '--outptu'", done.stderr)
        self.assertIn("expected a folder after --output", run("--output").stderr)


if __name__ == "__main__":
    unittest.main()

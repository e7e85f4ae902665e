"""The command-line tool: tenon_test.py PATH_OF_TENON."""
import os
import subprocess
import sys
import tempfile
import unittest

TENON = sys.argv.pop()
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KERNEL = """kernel double_it(x: f32 in, out: f32 out; n: int in [0, inf])
  parallel vector i0 < n {
    %0 = load x[i0] : f32
    %1 = add %0, %0 : f32
    store out[i0], %1
  }
"""


def run(*arguments, **environment):
    return subprocess.run([TENON, *arguments], capture_output=True, text=True, check=False,
                          env={**os.environ, **environment})


class Tool(unittest.TestCase):
    def test_help(self):
        done = run("--help")
        self.assertEqual(done.returncode, 0)
        for word in ("tenon ops", "tenon cache clear", "tenon kernel FILE", "tenon version"):
            self.assertIn(word, done.stdout)
        self.assertEqual(run().returncode, 2)
        done = run("opss")
        self.assertEqual(done.returncode, 2)
        self.assertIn("unknown command 'opss': expected one of ops, cache, kernel, show, package, version", done.stderr)

    def test_version(self):
        done = run("version")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"^tenon \d+\.\d+\.\d+\nvectors: (128|256|512) bits\n")
        self.assertEqual(run("version", "x").returncode, 2)

    def test_ops(self):
        lines = run("ops").stdout.splitlines()
        self.assertGreater(len(lines), 70)
        sine = [line for line in lines if "aten::sin(" in line]
        self.assertEqual(len(sine), 1)
        self.assertRegex(sine[0], r"^pointwise +src/ops/pointwise/\w+\.cpp:\d+ +aten::sin\(Tensor self\) -> Tensor$")

    def test_one_operator(self):
        done = run("ops", "sin")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("aten::sin(Tensor self) -> Tensor\n  pointwise, family unary, src/ops/pointwise/unary.cpp:",
                      done.stdout)
        self.assertIn("in-place form: aten::sin_", done.stdout)
        self.assertIn("gradient of self, saves self", done.stdout)
        one = run("ops", "aten::sin").stdout
        self.assertTrue(done.stdout.startswith(one))
        self.assertEqual(one.count("aten::sin("), 1)
        self.assertEqual(run("ops", "add.Tensor").stdout.count("aten::add.Tensor("), 1)
        done = run("ops", "sinn")
        self.assertEqual(done.returncode, 1)
        self.assertIn("there is no operator 'sinn': the nearest names are ", done.stderr)
        self.assertEqual(run("ops", "--all").returncode, 2)
        self.assertEqual(run("ops", "a", "b").returncode, 2)

    def test_where_rows_stand(self):
        done = run("ops", "--find", "sinh")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = [line.split(maxsplit=1) for line in done.stdout.splitlines()]
        self.assertEqual([schema.partition("(")[0] for _, schema in found],
                         ["aten::arcsinh", "aten::sinh", "aten::asinh"])
        for place, schema in found:
            file, line = place.rsplit(":", 1)
            with open(os.path.join(ROOT, file), encoding="utf-8") as text:
                self.assertIn(schema.removeprefix("aten::").partition("(")[0], text.read().splitlines()[int(line) - 1])
        # What nobody is called like is told as for a name.
        done = run("ops", "--find", "sinnh")
        self.assertEqual(done.returncode, 1)
        self.assertIn("there is no operator 'sinnh': the nearest names are sinh", done.stderr)
        self.assertEqual(run("ops", "--find").returncode, 2)

    def test_dispatch(self):
        table = dict(line.split(maxsplit=1) for line in run("ops", "--dispatch", "aten::sin").stdout.splitlines()[1:])
        self.assertEqual(table["CPU"], "fallback")
        self.assertEqual(table["Capture"], "fallback")
        self.assertEqual(table["CUDA"], "missing: a call is an error")
        self.assertEqual(table["UserMode"], "passed over")
        # A composite without gradients of its own is taken apart where it is first met.
        table = dict(line.split(maxsplit=1) for line in run("ops", "--dispatch", "matmul").stdout.splitlines()[1:])
        self.assertEqual(table["Autograd"], "CompositeImplicitAutograd")

    def test_kernel(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "double.kernel")
            with open(path, "w", encoding="utf-8") as file:
                file.write(KERNEL)
            done = run("kernel", path, TENON_DEBUG_DIR=os.path.join(folder, "debug"))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("kernel double_it", done.stdout)
            assembly = [line.split(": ")[1].strip() for line in done.stdout.splitlines()
                        if line.startswith("assembly")][0]
            with open(assembly, encoding="utf-8") as file:
                self.assertIn("ret", file.read())
            with open(path, "w", encoding="utf-8") as file:
                file.write(KERNEL.replace("%0, %0", "%0, %7"))
            done = run("kernel", path)
            self.assertEqual(done.returncode, 1)
            self.assertIn("%7", done.stderr)
        done = run("kernel", "/nowhere/x.kernel")
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot read /nowhere/x.kernel: No such file", done.stderr)
        self.assertEqual(run("kernel").returncode, 2)

    def test_cache(self):
        with tempfile.TemporaryDirectory() as folder:
            cache = os.path.join(folder, "cache")
            path = os.path.join(folder, "double.kernel")
            with open(path, "w", encoding="utf-8") as file:
                file.write(KERNEL)
            self.assertIn("compiled in", run("kernel", path, TENON_CACHE=cache).stdout)
            self.assertIn("loaded from the object cache", run("kernel", path, TENON_CACHE=cache).stdout)
            foreign = os.path.join(cache, "notes.txt")
            with open(foreign, "w", encoding="utf-8") as file:
                file.write("keep me")
            done = run("cache", TENON_CACHE=cache)
            self.assertEqual(done.returncode, 0, done.stderr)
            size = sum(os.path.getsize(os.path.join(cache, name)) for name in os.listdir(cache)
                       if name.endswith(".tenon"))
            self.assertEqual(done.stdout, f"folder: {cache}\nentries: 1\nbytes: {size}\n")
            self.assertIn("removed: 1\n", run("cache", "clear", TENON_CACHE=cache).stdout)
            self.assertEqual(os.listdir(cache), ["notes.txt"])
            self.assertEqual(run("cache", "celar", TENON_CACHE=cache).returncode, 2)
        self.assertIn("folder: none", run("cache", TENON_CACHE="").stdout)


if __name__ == "__main__":
    unittest.main()

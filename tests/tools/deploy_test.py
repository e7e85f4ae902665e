"""A network is saved by one program and served by another: deploy_test.py FOLDER TENON LIBRARY OPERATORS.

FOLDER has the programs of examples/deploy, LIBRARY is libtenon_runtime, OPERATORS prints what operators it has.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

OPERATORS, LIBRARY, TENON, FOLDER = (sys.argv.pop() for _ in range(4))
MOST_BYTES = 2_500_000  # of the library, stripped


def run(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, check=False, **more)


class Deploy(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.network = os.path.join(cls.folder, "waves.tenon")
        cls.trained = run(os.path.join(FOLDER, "train"), "--steps", "60", cls.network)

    def serve(self, *arguments, **more):
        return run(os.path.join(FOLDER, "serve"), *arguments, **more)

    def test_trained_and_served(self):
        self.assertEqual(self.trained.returncode, 0, self.trained.stderr)
        done = self.serve("--threads", "4", "--requests", "60", self.network)
        self.assertEqual(done.returncode, 0, done.stderr)
        match = re.match(r"serve: signals=(\d+) right=([\d.]+)\nfirst result after [\d.]+ ms\n$", done.stdout)
        self.assertTrue(match, done.stdout)
        self.assertEqual(int(match.group(1)), sum(1 + request % 9 for request in range(60)))
        self.assertGreater(float(match.group(2)), 0.9)  # 0.25 by chance

    def test_nothing_is_compiled_or_cached(self):
        cache = os.path.join(self.folder, "cache")
        done = self.serve("--requests", "5", self.network, env={**os.environ, "TENON_CACHE": cache})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertFalse(os.path.exists(cache))

    def test_the_program_has_no_compiler(self):
        libraries = run("ldd", os.path.join(FOLDER, "serve")).stdout
        self.assertIn("libtenon_runtime", libraries)
        self.assertNotIn("libtenon.so", libraries)
        self.assertNotIn("LLVM", libraries)

    def test_the_library_is_small(self):
        stripped = os.path.join(self.folder, "stripped.so")
        self.assertEqual(run("strip", "-o", stripped, LIBRARY).returncode, 0)
        self.assertLessEqual(os.path.getsize(stripped), MOST_BYTES)

    def test_the_library_has_every_opaque_kernel(self):
        rows = (line.split() for line in run(TENON, "ops").stdout.splitlines())
        expected = {words[2].split("(")[0] for words in rows if words[0] == "opaque"}
        self.assertGreater(len(expected), 100)
        self.assertEqual(expected - set(run(OPERATORS).stdout.split()), set())

    def test_a_file_that_is_none(self):
        done = self.serve(os.path.join(self.folder, "none.tenon"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("none.tenon", done.stderr)
        other = os.path.join(self.folder, "cut.tenon")
        with open(self.network, "rb") as whole, open(other, "wb") as cut:
            cut.write(whole.read()[:-100])
        done = self.serve(other)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^\[load_compiled\] .*cut\.tenon: section '.*' is cut short\n$")

    def test_show(self):
        done = run(TENON, "show", self.network)
        self.assertEqual(done.returncode, 0, done.stderr)
        for part in ("waves: 2 ways of calling it", "objects x86-64-v4", "float32, 3 dimensions", "aten::convolution"):
            self.assertIn(part, done.stdout)
        self.assertEqual(run(TENON, "show").returncode, 2)
        self.assertEqual(run(TENON, "show", TENON).returncode, 1)

    def test_package(self):
        done = run(TENON, "package", self.network, "--name", "net", cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        symbols = run("nm", os.path.join(self.folder, "waves.o")).stdout
        self.assertRegex(symbols, r"R tenon_packaged_net\n.* R tenon_packaged_net_size\n")
        with open(os.path.join(self.folder, "waves.h"), encoding="utf-8") as header:
            self.assertIn("Loaded<Signature> net() {", header.read())
        for wrong, why in ((["--name", "a-b"], "expected a name of C++, got 'a-b'"), (["-o"], "nothing follows -o"),
                           (["--fast"], "got '--fast'")):
            done = run(TENON, "package", self.network, *wrong, cwd=self.folder)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(why, done.stderr)
        done = run(TENON, "package", os.path.join(FOLDER, "serve"), "-o", "wrong.o", cwd=self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertIn("it is no file of save_compiled", done.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "wrong.o")))


if __name__ == "__main__":
    unittest.main()

"""The test of tools/parity/replay.cpp, on a few calls that are written down by hand: parity_test.py PROGRAM."""
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop()


class Recorded:
    """Calls as tools/parity/record.py writes them."""

    def __init__(self):
        self.data, self.lines = b"", []

    def tensor(self, *elements, strides=None, sizes=None, dtype="float32", offset=0):
        at = len(self.data)
        self.data += struct.pack(f"{len(elements)}{ {'float32': 'f', 'float16': 'e', 'int64': 'q'}[dtype] }", *elements)
        return {"tensor": {"dtype": dtype, "sizes": [len(elements)] if sizes is None else sizes,
                           "strides": [1] if strides is None else strides,
                           "reach": len(elements), "offset": offset, "at": at}}

    def call(self, op, args, results, **more):
        self.lines.append({"op": op, "entry": "by hand", "args": args, "kwargs": {}, "values": True,
                           "results": results, "after": [], **more})


class Parity(unittest.TestCase):
    def replay(self, recorded, *words):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "data.bin"), "wb") as file:
                file.write(recorded.data)
            with open(os.path.join(folder, "calls.jsonl"), "w", encoding="utf-8") as file:
                file.writelines(json.dumps(line, separators=(",", ":")) + "\n" for line in recorded.lines)
            done = subprocess.run([PROGRAM, folder, *words], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()

    def test_what_is_right_wrong_and_missing(self):
        calls = Recorded()
        x, y = calls.tensor(1, 2), calls.tensor(10, 20)
        calls.call("aten::add.Tensor", [x, y], [calls.tensor(11, 22)])
        calls.call("aten::add.Tensor", [x, y], [calls.tensor(11, 23)])
        calls.call("aten::mul.Scalar", [x, {"real": (0.5).hex()}], [calls.tensor(0.5, 1)])
        calls.call("aten::sum.dim_IntList", [calls.tensor(1, 2, 3, 4, sizes=[2, 2], strides=[1, 2]), [0]],
                   [calls.tensor(3, 7)])
        calls.call("aten::no_such_operator", [x], [x])
        for words in ((), ("--compiled",)):
            lines = self.replay(calls, *words)
            self.assertIn("aten::add.Tensor: 1 of 2 wrong", lines)
            self.assertIn("    result 0: element 1: 22 instead of 23 (float32[2])", lines)
            self.assertIn("aten::no_such_operator: missing (1 calls)", lines)
            self.assertEqual(lines[-1], "parity: overloads 3/4, calls right 3/4, operators wholly right 2/3, "
                             "gradients right 0/0")

    def test_writes_errors_and_strides(self):
        calls = Recorded()
        x = calls.tensor(1, 2)
        calls.call("aten::mul_.Scalar", [x, 3], [calls.tensor(3, 6)], after=[calls.tensor(3, 6)])
        calls.call("aten::mul_.Scalar", [x, 3], [calls.tensor(3, 6)], after=[calls.tensor(3, 7)])
        calls.call("aten::view", [x, [3]], None, raises="shape '[3]' is invalid for input of size 2")
        calls.call("aten::view", [x, [2, 1]], None, raises="never")
        calls.call("aten::t", [calls.tensor(1, 2, 3, 4, sizes=[2, 2], strides=[2, 1])],
                   [calls.tensor(1, 3, 2, 4, sizes=[2, 2], strides=[2, 1])])
        lines = self.replay(calls)
        self.assertIn("    written argument 0: element 1: 6 instead of 7 (float32[2])", lines)
        self.assertIn("    runs what PyTorch refuses: never", lines)
        self.assertIn("    result 0: strides [1, 2] instead of [2, 1]", lines)
        self.assertEqual(lines[-1], "parity: overloads 3/3, calls right 2/5, operators wholly right 0/3, "
                         "gradients right 0/0")

    def test_gradients(self):
        calls = Recorded()
        x, y, once = calls.tensor(1, 2), calls.tensor(10, 20), calls.tensor(1, 1)
        right = {"of": [0], "cotangents": [calls.tensor(1, 3)]}
        calls.call("aten::mul.Tensor", [x, y], None, gradients=[calls.tensor(10, 60), calls.tensor(1, 6)], **right)
        calls.call("aten::mul.Tensor", [x, y], None, gradients=[calls.tensor(10, 60), calls.tensor(1, 7)], **right)
        calls.call("aten::mul_.Tensor", [x, y], None, gradients=[calls.tensor(10, 60), calls.tensor(1, 6)], **right)
        calls.call("aten::sign", [x], None, gradients=[None], of=[0], cotangents=[once])
        calls.call("aten::no_such_operator", [x], None, gradients=[None], of=[0], cotangents=[once])
        for words in ((), ("--compiled",)):
            lines = self.replay(calls, *words)
            self.assertIn("aten::mul.Tensor: 1 of 2 gradients wrong", lines)
            self.assertIn("    gradient 1: element 1: 6 instead of 7 (float32[2])", lines)
            self.assertEqual(lines[-1], "parity: overloads 0/1, calls right 0/0, operators wholly right 0/0, "
                             "gradients right 3/4")

    def test_what_is_right_besides(self):
        calls = Recorded()
        # Halves that PyTorch rounds on the way: what float32 gives counts.
        a, b = calls.tensor(1, 2, dtype="float16"), calls.tensor(0.5, 0.25, dtype="float16")
        off = [calls.tensor(1.5, 2.5, dtype="float16")]
        calls.call("aten::add.Tensor", [a, b], off, wide=[calls.tensor(1.5, 2.25)])
        calls.call("aten::add.Tensor", [a, b], off, wide=[calls.tensor(1.5, 3)])
        # Elements that tie: any place of ours will do that has the value.
        x = calls.tensor(2, 1, 1, 3)
        for ties, place in ((True, 1), (True, 2), (False, 5)):
            calls.call("aten::kthvalue", [x, 1], [calls.tensor(1, sizes=[], strides=[]), calls.tensor(
                place, sizes=[], strides=[], dtype="int64")], ties=ties)
        # A view of a storage that begins behind its first element.
        part = calls.tensor(1, 2, 3, 4, sizes=[2], offset=2)
        calls.call("aten::as_strided", [part, [2], [1], 0], [calls.tensor(1, 2)])
        lines = self.replay(calls)
        self.assertIn("aten::add.Tensor: 1 of 2 wrong", lines)
        self.assertIn("aten::kthvalue: 1 of 3 wrong", lines)
        self.assertEqual(lines[-1], "parity: overloads 3/3, calls right 4/6, operators wholly right 1/3, "
                         "gradients right 0/0")

    def test_reasons(self):
        calls = Recorded()
        x = calls.tensor(1, 2)
        calls.call("aten::neg", [x], [calls.tensor(1, 2)])
        calls.call("aten::abs", [x], [x])
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as known:
            known.write("# of this test\naten::neg: it is negative here\naten::abs: none\n")
            known.flush()
            lines = self.replay(calls, "--known", known.name)
        self.assertIn("    known: it is negative here", lines)
        self.assertIn("aten::abs: known to differ, and does not", lines)

    def test_words_that_are_off(self):
        done = subprocess.run([PROGRAM], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr.split()[0]), (2, "usage:"))
        done = subprocess.run([PROGRAM, "/no/such/folder"], capture_output=True, text=True, check=False)
        self.assertIn("data.bin cannot be read", done.stderr)


if __name__ == "__main__":
    unittest.main()

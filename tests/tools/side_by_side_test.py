"""The test of tools/side_by_side and of its programs: side_by_side_test.py FOLDER (of our programs)."""
import importlib.machinery
import importlib.util
import os
import sys
import unittest

FOLDER = sys.argv.pop()
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
LOADER = importlib.machinery.SourceFileLoader("side_by_side", os.path.join(ROOT, "tools", "side_by_side"))
tool = importlib.util.module_from_spec(importlib.util.spec_from_loader("side_by_side", LOADER))
LOADER.exec_module(tool)


class Counting(unittest.TestCase):
    def test_code_alone(self):
        self.assertEqual(tool.lines_of_code("// what\n\n#include <x>\n  // why\nint main() {  // here\n}\n"), 3)

    def test_both_sides_have_every_program(self):
        self.assertEqual(tool.programs(tool.OURS), tool.programs(tool.THEIRS))
        self.assertEqual(len(tool.programs(tool.OURS)), 6)

    def test_ours_are_half_as_long_at_most(self):
        for name, ours, theirs in tool.table():
            self.assertLessEqual(ours, 0.5 * theirs, name)


class Comparing(unittest.TestCase):
    def test_numbers_and_texts(self):
        self.assertEqual(tool.differences("loss 1.001\nabcd\n", "loss 1.000\nabce\n"), [])
        self.assertEqual(tool.differences("loss 1.1\n", "loss 1.0\n"), ["line 1: 'loss 1.1', expected 'loss 1.0'"])
        self.assertEqual(tool.differences("gain 1.0\n", "loss 1.0\n"), ["line 1: 'gain 1.0', expected 'loss 1.0'"])
        self.assertEqual(tool.differences("abc\n", "abce\n"), ["line 1: 'abc', expected 'abce'"])
        self.assertEqual(tool.differences("", "loss 1.0\n"), ["0 lines, expected 1"])


class Programs(unittest.TestCase):
    def test_ours_print_what_libtorchs_do(self):
        for name in tool.programs(tool.OURS):
            with self.subTest(name):
                got = tool.run(os.path.join(FOLDER, name), name)
                self.assertEqual(tool.differences(got, tool.read(tool.EXPECTED, name + ".txt")), [])


if __name__ == "__main__":
    unittest.main()

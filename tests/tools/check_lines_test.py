"""tools/check_lines finds long lines in sources, and in nothing else."""
import os
import subprocess
import sys
import tempfile
import unittest

TOOL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "check_lines")


class CheckLines(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def write(self, path, text):
        path = os.path.join(self.folder.name, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def run_tool(self):
        done = subprocess.run([sys.executable, TOOL, self.folder.name], capture_output=True, text=True)
        return done.returncode, done.stdout

    def test_a_long_line_is_named(self):
        self.write("src/a.cpp", "x\n" + "y" * 121 + "\n")
        self.assertEqual(self.run_tool(), (1, "src/a.cpp:2: 121 columns\n1 lines of more than 120 columns\n"))

    def test_columns_are_characters(self):
        self.write("src/a.h", "×" * 120 + "\n")
        self.assertEqual(self.run_tool()[0], 0)

    def test_what_is_a_source(self):
        long = "z" * 130 + "\n"
        for path in ("data/table.txt", "docs/page.md", "build/made.cpp", "tools/words"):
            self.write(path, long)
        self.assertEqual(self.run_tool()[0], 0)
        for path in ("Makefile", "CMakeLists.txt", "cmake/a.cmake", "tools/a.py"):
            self.write(path, long)
        self.write("tools/script", "#!/bin/sh\n" + long)
        code, output = self.run_tool()
        self.assertEqual(code, 1)
        self.assertIn("5 lines of more", output)


if __name__ == "__main__":
    unittest.main()

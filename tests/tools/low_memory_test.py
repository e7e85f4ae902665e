"""The test of tools/low_memory, on a test executable that is a shell script."""
import os
import stat
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Lists four tests; runs those of its filter. `Bad.raw` lets a bad_alloc out, `Bad.crash` ends the process.
PROGRAM = r"""#!/bin/sh
filter=
for word; do
  case $word in
    --gtest_list_tests) printf 'Good.\n  fine\n  refuses  # GetParam() = 1\nBad.\n  raw\n  crash\n'; exit 0 ;;
    --gtest_filter=*) filter=${word#--gtest_filter=} ;;
  esac
done
status=0
for name in $(echo "$filter" | tr : ' '); do
  echo "[ RUN      ] $name"
  case $name in
    Good.refuses) echo 'C++ exception with description "[add] out of memory" thrown in the test body.' ;;
    Bad.raw) echo 'C++ exception with description "std::bad_alloc" thrown in the test body.'
             echo "failed in reserve"; status=1 ;;
    Bad.crash) echo "about to go"; kill -SEGV $$ ;;
  esac
done
exit $status
"""


class LowMemory(unittest.TestCase):
    def run_tool(self, *words):
        with tempfile.TemporaryDirectory() as build:
            program = os.path.join(build, "tests_unit")
            with open(program, "w", encoding="utf-8") as file:
                file.write(PROGRAM)
            os.chmod(program, os.stat(program).st_mode | stat.S_IXUSR)
            if "without" not in words:
                # Loaded in front of a shell, an empty file is ignored with a complaint.
                with open(os.path.join(build, "libfailing_allocator.so"), "w", encoding="utf-8"):
                    pass
            return subprocess.run([os.path.join(ROOT, "tools", "low_memory"), "--build", build,
                                   *(word for word in words if word != "without")],
                                  capture_output=True, text=True, check=False)

    def test_counts_points_and_tells_what_is_wrong(self):
        done = self.run_tool("--seed", "7", "unit")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn('unit: Bad.raw: C++ exception with description "std::bad_alloc"', done.stdout)
        self.assertIn("failed in reserve", done.stdout)
        self.assertIn("unit: Bad.crash: ended the process (-11)", done.stdout)
        self.assertNotIn("Good.", done.stdout)
        self.assertEqual(done.stdout.splitlines()[-1], "seed 7: 4 points, 2 wrong")

    def test_words_that_are_off(self):
        self.assertIn("unknown kind 'units': expected one of unit, ops", self.run_tool("units").stderr)
        self.assertIn("libfailing_allocator.so is missing", self.run_tool("without", "unit").stderr)


if __name__ == "__main__":
    unittest.main()

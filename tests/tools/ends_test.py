"""Programs that end in every place, way and order (tests/ends/ends.cpp): ends_test.py PROGRAM."""
import os
import subprocess
import sys
import unittest
from concurrent.futures import ThreadPoolExecutor

PROGRAM = sys.argv.pop()
LONGEST = 120  # seconds; a hang is a failure
# Memory and threads that a program leaves behind as it ends in the middle of something are nobody's.
ENVIRONMENT = {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0",
               "TSAN_OPTIONS": os.environ.get("TSAN_OPTIONS", "") + ":report_thread_leaks=0"}


def ended(program):
    """How it ended: "status 42" as it should."""
    try:
        done = subprocess.run([PROGRAM, *program.split()], capture_output=True, encoding="utf-8", errors="replace",
                              timeout=LONGEST,
                              env=ENVIRONMENT, check=False)
    except subprocess.TimeoutExpired:
        return "hung"
    how = f"signal {-done.returncode}" if done.returncode < 0 else f"status {done.returncode}"
    return how if how == "status 42" else f"{how} {done.stderr[-2000:]}".strip()


class Ends(unittest.TestCase):
    def test_every_order_way_and_place(self):
        programs = subprocess.run([PROGRAM], capture_output=True, text=True, check=True).stdout.splitlines()
        self.assertGreaterEqual(len(programs), 200)
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            for program, how in zip(programs, threads.map(ended, programs)):
                with self.subTest(program):
                    self.assertEqual(how, "status 42")


if __name__ == "__main__":
    unittest.main()

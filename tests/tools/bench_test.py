"""The report of the benchmarks: bench_test.py PATH_OF_BENCH. Judged is not what is measured but how it is told."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

BENCH = sys.argv.pop()
KEYS = ["name", "value", "unit", "against", "ratio", "judged", "better", "bar", "ok"]


class BenchReport(unittest.TestCase):
    def test_rows(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "bench.json")
            done = subprocess.run([BENCH, "--json", path, "triad"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(os.listdir(folder), ["bench.json"])
            with open(path, encoding="utf-8") as file:
                rows = json.load(file)
        self.assertTrue(rows)
        for row in rows:
            self.assertEqual(list(row), KEYS)
            self.assertIn(row["name"], done.stdout)
            self.assertGreater(row["value"], 0)
            self.assertIn(row["judged"], ("value", "ratio"))
            self.assertIn(row["better"], ("lower", "higher"))
            judged, bar = row[row["judged"]], row["bar"]
            good = bar is None or (judged <= bar if row["better"] == "lower" else judged >= bar)
            self.assertEqual(row["ok"], good, row)

    def test_bad_arguments(self):
        done = subprocess.run([BENCH, "--jsno"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("unknown option --jsno: expected --json FILE, --list or words", done.stderr)

    def test_a_folder_that_cannot_be_written(self):
        done = subprocess.run([BENCH, "--json", "/nowhere/bench.json", "no such benchmark"], capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot write /nowhere/bench.json", done.stderr)


if __name__ == "__main__":
    unittest.main()

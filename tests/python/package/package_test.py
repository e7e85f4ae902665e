"""The package by itself."""
import importlib.metadata
import subprocess
import sys
import unittest

import tenon


class Package(unittest.TestCase):
    def test_importing_it_does_not_import_pytorch(self):
        code = "import sys, tenon; print([name for name in ('torch', 'numpy', 'sympy') if name in sys.modules])"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout.strip(), "[]")

    def test_its_version_is_that_of_the_package(self):
        self.assertEqual(tenon.__version__, importlib.metadata.version("tenon"))

    def test_the_backend_is_an_entry_point(self):
        points = importlib.metadata.entry_points(group="torch_dynamo_backends")
        self.assertEqual({point.value for point in points if point.name == "tenon"}, {"tenon.torch_backend:tenon"})

    def test_counters_can_be_read_and_reset(self):
        tenon.reset_counters()
        self.assertTrue(all(count == 0 for count in tenon.counters().values()))

    def test_an_unknown_topic_of_the_logs_is_an_error_that_lists_the_known_ones(self):
        with self.assertRaisesRegex(tenon.Error, "graph.*fusion"):
            tenon.set_logs("nonsense")

    def test_a_report_without_graphs_says_so(self):
        tenon.reset_torch_report()
        self.assertIn("0 graphs", str(tenon.torch_report()))


if __name__ == "__main__":
    unittest.main()

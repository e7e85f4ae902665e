"""The test of tools/seeds: what it counts from a run's results."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOL = os.path.join(ROOT, "tools", "seeds")


def test(name, file, result="COMPLETED", failures=None):
    row = {"name": name, "file": "tests/seeds/" + file, "status": "RUN", "result": result}
    if failures:
        row["failures"] = failures
    return row


def suite(name, *tests):
    return {"name": name, "testsuite": list(tests)}


class Seeds(unittest.TestCase):
    def count(self, *suites):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"testsuites": suites}, file)
            file.flush()
            done = subprocess.run([sys.executable, TOOL, "--results", file.name], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def last(self, *suites):
        return self.count(*suites).splitlines()[-1]

    def test_no_tests(self):
        with tempfile.TemporaryDirectory() as build:
            done = subprocess.run([sys.executable, TOOL, "--build", build], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.splitlines()[-1],
                         "seeds: 000 0/42 001 0/63 002 0/32 003 0/22 004 0/148 autograd 0/241 operators 0/492")

    def test_counts_what_passed(self):
        basic = test("basic", "compiled_autograd_basic_test.cpp")
        mutation = test("mutation", "aot_mutation_test.cpp")
        self.assertEqual(self.last(suite("TestCompiledAutograd", basic), suite("AotAutogradFallbackTests", mutation)),
                         "seeds: 000 0/42 001 1/63 002 1/32 003 0/22 004 0/148 autograd 0/241 operators 0/492")

    def test_leading_test_is_the_same_case(self):
        self.assertIn("001 1/63", self.last(suite("TestCompiledAutograd",
                                                  test("test_basic", "compiled_autograd_a_test.cpp"))))

    def test_failed_and_skipped_do_not_count(self):
        output = self.count(suite("TestCompiledAutograd",
                                  test("basic", "compiled_autograd_a_test.cpp", failures=[{"failure": "no"}]),
                                  test("cache_hit", "compiled_autograd_a_test.cpp", result="SKIPPED")))
        self.assertIn("001 0/63", output.splitlines()[-1])
        self.assertIn("failed or skipped:\n    TestCompiledAutograd.basic\n    TestCompiledAutograd.cache_hit\n",
                      output)

    def test_says_what_cases_wait_for(self):
        output = self.count()
        self.assertIn("waiting for a GPU:\n    TestCustomOp.impl_separate", output)
        self.assertIn("waiting for a GPU:\n", output)
        passed = self.count(suite("TestCustomOp", test("impl_separate", "custom_ops_a_test.cpp")))
        self.assertIn("no longer waiting:\n    TestCustomOp.impl_separate\n", passed)

    def test_counts_operators_without_those_that_are_marked(self):
        output = self.count(suite("CommonTemplate", test("add_const_int", "operators_arithmetic_test.cpp"),
                                  test("add_complex", "operators_arithmetic_test.cpp")))
        self.assertIn("operators 1/492", output.splitlines()[-1])
        self.assertIn("not a case of the document:\n    CommonTemplate.add_complex\n", output)
        self.assertIn("not counted: 5 wait for ahead-of-time kernels for eager operators; 13 wait for complex", output)

    def test_generated_checks_are_no_cases(self):
        output = self.count(suite("MiniOpTest", test("mm", "custom_ops_a_test.cpp"),
                                  test("test_schema__mm", "custom_ops_a_test.cpp")))
        self.assertIn("004 1/148", output.splitlines()[-1])
        self.assertNotIn("schema__mm", output)

    def test_a_disabled_case_does_not_count(self):
        row = test("basic", "compiled_autograd_a_test.cpp", result="SUPPRESSED")
        row["status"] = "NOTRUN"
        self.assertIn("001 0/63", self.last(suite("TestCompiledAutograd", row)))

    def test_every_instance_must_pass(self):
        good = test("basic/0", "compiled_autograd_a_test.cpp")
        bad = test("basic/1", "compiled_autograd_a_test.cpp", failures=[{"failure": "no"}])
        self.assertIn("001 1/63", self.last(suite("Sizes/TestCompiledAutograd", good)))
        self.assertIn("001 0/63", self.last(suite("Sizes/TestCompiledAutograd", good, bad)))

    def test_names_of_no_case_and_of_another_document(self):
        # `mutation` is a case of 002; a file of 003's area does not count for it.
        output = self.count(suite("AotAutogradFallbackTests", test("mutation", "freeze_mutation_test.cpp")))
        self.assertEqual(output.splitlines()[-1],
                         "seeds: 000 0/42 001 0/63 002 0/32 003 0/22 004 0/148 autograd 0/241 operators 0/492")
        self.assertIn("not a case of the document:\n    AotAutogradFallbackTests.mutation\n", output)


if __name__ == "__main__":
    unittest.main()

"""The test of tools/mutants, on a small repository whose fuzzer is a shell script."""
import os
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Programs from seed 700 on notice that the answer is wrong; one is never content.
FUZZER = """
last=$((TENON_FUZZ_SEED + TENON_FUZZ_COUNT - 1))
if [ $TENON_FUZZ_SEED -le 90001 ] && [ $last -ge 90001 ]; then echo "seed 90001: always"; exit 1; fi
if ! grep -q 42 build/answer && [ $last -ge 700 ]; then echo "seed 700: expected 42"; exit 1; fi
echo "features $TENON_FUZZ_FEATURES" >> build/log
"""
PATCH = """Class: {title}
Seeds: {seeds}
Features: none

diff --git a/answer b/answer
--- a/answer
+++ b/answer
@@ -1 +1 @@
-{before}
+{after}
"""


class Mutants(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.repository = os.path.join(self.folder, "repository")
        self.patches = os.path.join(self.folder, "patches")
        os.mkdir(self.repository)
        os.mkdir(self.patches)
        self.write("repository/answer", "42\n")
        self.write("repository/fuzzer", FUZZER)
        self.write("repository/.gitignore", "build/\n")
        self.git("init", "--quiet")
        self.git("add", ".")
        self.git("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "-m", "first")

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def git(self, *words):
        subprocess.run(["git", "-C", self.repository, *words], check=True, capture_output=True)

    def patch(self, name, before="42", after="41", seeds="1-20000", title="a wrong answer"):
        self.write(f"patches/{name}.patch", PATCH.format(before=before, after=after, seeds=seeds, title=title))

    def run_tool(self, *words):
        done = subprocess.run(
            [os.path.join(ROOT, "tools", "mutants"), "--repository", self.repository, "--patches", self.patches, "--build",
             "mkdir -p build && cp answer build/answer", "--fuzz", "sh fuzzer", *words], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def test_a_mutant_is_found(self):
        self.patch("wrong")
        code, text = self.run_tool()
        self.assertEqual(code, 0, text)
        self.assertIn("[1/1] wrong: a wrong answer\n", text)
        self.assertIn("  wrong: 500 programs, nothing found\n", text)
        self.assertIn("  found: seed 700: expected 42\n", text)
        self.assertTrue(text.endswith("mutants: 1/1 found\n"), text)
        # The tree is left as it was, and the features are those of the patch.
        with open(os.path.join(self.repository, "build/mutants/tree/answer"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "42\n")
        with open(os.path.join(self.repository, "build/mutants/tree/build/log"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "features none\n" * 2)  # the first 500, and the one without the patch

    def test_a_mutant_that_no_program_finds_is_a_failure(self):
        self.patch("harmless", after="142")
        code, text = self.run_tool("--count", "1200")
        self.assertEqual(code, 1)
        self.assertIn("  harmless: 1200 programs, nothing found\n", text)
        self.assertIn("harmless  not found", text)
        self.assertTrue(text.endswith("mutants: 0/1 found\n"), text)

    def test_seeds_and_count_bound_the_search(self):
        self.patch("early", seeds="1-600")
        code, text = self.run_tool()
        self.assertEqual(code, 1)
        self.assertIn("  early: 600 programs, nothing found\n", text)
        code, text = self.run_tool("--seed", "650", "--count", "100")
        self.assertEqual(code, 0, text)

    def test_a_patch_that_does_not_apply_is_a_failure(self):
        self.patch("stale", before="17")
        self.patch("wrong")
        code, text = self.run_tool()
        self.assertEqual(code, 1)
        self.assertIn("stale  no longer applies  error: patch failed: answer:1\n", text)
        self.assertIn("wrong  found", text)
        self.assertTrue(text.endswith("mutants: 1/2 found\n"), text)

    def test_a_program_that_fails_without_the_patch_finds_nothing(self):
        self.patch("wrong", seeds="90001-90500")
        code, text = self.run_tool()
        self.assertEqual(code, 1)
        self.assertIn("wrong  fails without it   seed 90001: always\n", text)
        self.assertTrue(text.endswith("mutants: 0/1 found\n"), text)

    def test_one_alone(self):
        self.patch("stale", before="17")
        self.patch("wrong")
        code, text = self.run_tool("--only", "wrong")
        self.assertEqual(code, 0, text)
        self.assertTrue(text.endswith("mutants: 1/1 found\n"), text)
        code, text = self.run_tool("--only", "other")
        self.assertIn("no patch is called 'other': expected one of stale, wrong", text)

    def test_a_header_that_says_nothing(self):
        self.write("patches/bare.patch", "diff --git a/answer b/answer\n")
        code, text = self.run_tool()
        self.assertEqual(code, 1)
        self.assertIn("bare.patch: expected a line 'Class: …' before the patch", text)


if __name__ == "__main__":
    unittest.main()

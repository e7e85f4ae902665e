"""The programs of examples/: programs_test.py FOLDER. Each runs short, compiled and eager; both must learn the same."""
import os
import subprocess
import sys
import unittest

FOLDER = sys.argv.pop()
# Steps for which the results of both are compared: few, because differences of rounding grow.
SHORT = {"char_gpt": 6, "image_classifier": 4, "vae": 6, "gru_tagger": 6, "physics": 3, "heat": 20}


def run(name, *arguments):
    # A network that has learnt little writes bytes that are no text.
    return subprocess.run([os.path.join(FOLDER, name), *arguments], capture_output=True, encoding="utf-8",
                          errors="replace", check=False)


def last_line(name, *arguments):
    done = run(name, *arguments)
    if done.returncode != 0:
        raise AssertionError(f"{name} {arguments}: {done.stderr}")
    line = done.stdout.splitlines()[-1]
    if not line.startswith(name + ": "):
        raise AssertionError(line)
    return {key: float(value) for key, value in (word.split("=") for word in line.split()[1:])}


class Programs(unittest.TestCase):
    def test_every_program_is_tried(self):
        programs = {name for name in os.listdir(FOLDER) if os.access(os.path.join(FOLDER, name), os.X_OK)}
        self.assertEqual(programs, set(SHORT))

    def test_compiled_is_eager(self):
        for name, steps in SHORT.items():
            with self.subTest(name):
                compiled, eager = (last_line(name, "--steps", str(steps), *more) for more in ([], ["--eager"]))
                for key in ("first", "last"):
                    self.assertAlmostEqual(compiled[key], eager[key], delta=2e-3 * abs(eager[key]), msg=key)

    def test_they_learn(self):
        for name, steps, share in (("vae", 60, 0.9), ("gru_tagger", 60, 0.95), ("physics", 6, 0.5),
                                   ("image_classifier", 40, 0.6), ("char_gpt", 40, 0.9)):
            with self.subTest(name):
                result = last_line(name, "--steps", str(steps))
                self.assertLess(result["last"], share * result["first"])

    def test_a_word_too_many(self):
        done = run("heat", "--fast")
        self.assertEqual(done.returncode, 2)
        self.assertIn("usage:", done.stderr)


if __name__ == "__main__":
    unittest.main()

"""The test of tools/setup, with stand-ins for dpkg-query, apt-get, sudo and id in front of it on the PATH."""
import os
import shutil
import stat
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAMS = ["g++", "cmake", "ninja", "pkg-config", "ccache", "python3"]


class Setup(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.log = os.path.join(self.folder, "log")
        for program in PROGRAMS:
            self.stand_in(program, "exit 0")
        # Everything asked for is installed, but for what MISSING names.
        self.stand_in("dpkg-query", 'for p in "$@"; do case $p in -*) continue ;; esac; '
                                    'case " $MISSING " in *" $p "*) ;; *) echo "installed $p" ;; esac; done')
        self.stand_in("apt-get", f'echo "apt-get $*" >> {self.log}')
        self.stand_in("sudo", "exit 1")
        self.be_user(0)

    def stand_in(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + text + "\n")
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)

    def be_user(self, number):
        self.stand_in("id", f"echo {number}")

    def run_setup(self, *parts, missing=""):
        environment = {"PATH": self.folder + ":/usr/bin:/bin", "MISSING": missing}
        done = subprocess.run([os.path.join(ROOT, "tools", "setup"), *parts], env=environment, capture_output=True,
                              text=True, stdin=subprocess.DEVNULL)
        if not os.path.exists(self.log):
            return done, []
        with open(self.log, encoding="utf-8") as log:
            return done, log.read().splitlines()

    def test_silent_when_all_is_there(self):
        done, commands = self.run_setup()
        self.assertEqual((done.returncode, done.stdout, done.stderr, commands), (0, "", "", []))

    def test_root_installs_what_is_missing_and_no_more(self):
        done, commands = self.run_setup(missing="libz3-dev libdnnl-dev python3-numpy")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(commands,
                         ["apt-get update -q", "apt-get install -y --no-install-recommends libdnnl-dev libz3-dev"])

    def test_parts_ask_for_more(self):
        done, commands = self.run_setup("reference", missing="python3-numpy")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(commands[-1], "apt-get install -y --no-install-recommends python3-numpy")

    def test_without_root_and_sudo_it_prints_the_command(self):
        self.be_user(1000)
        done, commands = self.run_setup(missing="llvm-19-dev")
        self.assertEqual((done.returncode, commands), (1, []))
        self.assertIn("  apt-get update && apt-get install -y --no-install-recommends llvm-19-dev\n", done.stderr)

    def test_sudo_is_used(self):
        self.be_user(1000)
        self.stand_in("sudo", f'echo "sudo $*" >> {self.log}')
        done, commands = self.run_setup(missing="llvm-19-dev")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(commands[1], "sudo apt-get update -q")
        self.assertRegex(commands[2], "^sudo env .*apt-get install -y --no-install-recommends llvm-19-dev$")

    def run_copy(self, python, missing=""):
        """tools/setup of a clone in which nothing was got yet, with that Python."""
        self.stand_in("python3", python)
        copy = os.path.join(self.folder, "clone", "tools", "setup")
        os.makedirs(os.path.dirname(copy))
        shutil.copy(os.path.join(ROOT, "tools", "setup"), copy)
        environment = {"PATH": self.folder + ":/usr/bin:/bin", "MISSING": missing}
        return subprocess.run([copy, "python"], env=environment, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL)

    def test_python_gets_nanobind_from_pypi_into_the_build_folder(self):
        done = self.run_copy('case "$*" in *nanobind\\ --version) exit 1 ;; -c*) exit 0 ;; esac; '
                             f'echo "$*" >> {self.log}')
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.log, encoding="utf-8") as log:
            self.assertRegex(log.read(), r"^-m pip install .*--target \S*/build/pypi nanobind==[0-9.]+\n$")

    def test_python_without_headers_gets_them_from_debian(self):
        done = self.run_copy('case "$*" in -c*) exit 1 ;; esac', missing="python3-dev")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.log, encoding="utf-8") as log:
            self.assertIn("apt-get install -y --no-install-recommends python3-dev\n", log.read())

    def test_a_nanobind_that_is_there_is_enough(self):
        done = self.run_copy("exit 0")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_without_pypi_the_rest_goes_on(self):
        done = self.run_copy("exit 1")
        self.assertEqual(done.returncode, 0)
        self.assertIn("the Python package is not built, and its tests are skipped", done.stderr)

    def test_unknown_part(self):
        done, _ = self.run_setup("fuz")
        self.assertEqual(done.returncode, 2)
        self.assertIn("unknown part 'fuz': expected fuzz, format, reference or python", done.stderr)


if __name__ == "__main__":
    unittest.main()

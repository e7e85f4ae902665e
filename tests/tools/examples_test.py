"""The test of tools/examples: what it finds in headers, and what it misses."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TOOL = ROOT / "tools" / "examples"

HEADER = """// A header.
#pragma once
#define MACRO(x) \\
  void not_seen(x)

namespace tenon {
namespace detail {
void hidden();
}

// Adds.
//
//   int sum = add(1, 2);
//
//   sum = add(sum, 3);
// Nothing more.
int add(int a, int b = int{2});

template <typename T>
  requires(sizeof(T) > 1)
class Box : public Base<T> {
 public:
  //   Box<int> box(3);
  Box(T value) : value_(value), other_{1} { if (value) { value = 0; } }
  ~Box();
  T get() const { return value_; }
  bool operator()(int) const;
  bool operator==(const Box&) const = default;
  std::function<void(int)> called;

 private:
  void own();
  T value_;
};

struct Options {
  int size = 0;
};
enum class Colour { Red, Green };
}  // namespace tenon
"""


class Examples(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        (self.root / "include/tenon/room").mkdir(parents=True)
        (self.root / "tools").mkdir()
        self.header = self.root / "include/tenon/room/thing.h"
        self.header.write_text(HEADER)

    def tearDown(self):
        self.folder.cleanup()

    def run_tool(self, *arguments):
        return subprocess.run([sys.executable, str(TOOL), *map(str, arguments), "--root", str(self.root)],
                              capture_output=True, text=True)

    def check(self):
        done = self.run_tool("check", self.header)
        return done.returncode, done.stdout.splitlines()

    def test_names_without_an_example(self):
        status, lines = self.check()
        self.assertEqual(status, 1)
        self.assertEqual(lines[:-1], [
            "room/thing.h: Colour has no example",
            "room/thing.h: Options has no example",
            "room/thing.h: Box::get has no example",
        ])

    def test_an_exemption_has_a_reason_and_a_name_that_exists(self):
        exempt = self.root / "tools/examples_exempt.txt"
        exempt.write_text("# a comment\nroom/thing.h Colour, Options, get: said elsewhere\n")
        self.assertEqual(self.check(), (0, []))
        exempt.write_text("room/thing.h Colour, Options, get, gone: said elsewhere\n")
        self.assertEqual(self.check()[1][0], "tools/examples_exempt.txt: there is no gone in room/thing.h")
        exempt.write_text("room/thing.h Colour\n")
        self.assertIn("expected a reason", self.run_tool("check", self.header).stderr)

    def test_a_document_counts(self):
        (self.root / "docs").mkdir()
        (self.root / "docs/page.md").write_text("Text: get\n```cpp\nbox.get(); Options o; Colour c;\n```\n")
        self.assertEqual(self.check(), (0, []))

    def test_extracts_code_with_its_place(self):
        out = self.root / "out.cpp"
        self.assertEqual(self.run_tool("extract", "--out", out, self.header).returncode, 0)
        text = out.read_text()
        self.assertIn("#include <tenon/room/thing.h>\n", text)
        self.assertIn(f'#line 13 "{self.header}"\nint sum = add(1, 2);\n\nsum = add(sum, 3);\n  }}\n', text)
        self.assertIn('{"tenon/room/thing.h:23: Box<int> box(3);", room_thing_23},', text)
        self.assertNotIn("Nothing more", text)


if __name__ == "__main__":
    unittest.main()

"""The test of the include test: small trees with one wrong edge each, which tools/check_includes must name."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOL = os.path.join(ROOT, "tools", "check_includes")


class CheckIncludes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        os.makedirs(os.path.join(self.root, "tools"))
        shutil.copy(os.path.join(ROOT, "tools", "rooms.txt"), os.path.join(self.root, "tools"))
        self.write("include/tenon/support/error.h", "#include <string>\n")
        self.write("include/tenon/core/tensor.h",
                   "#include <tenon/sym/expr.h>\n#include <tenon/generated/tensor_methods.h>\n")
        self.write("include/tenon/sym/expr.h", "#include <tenon/support/error.h>\n")
        self.write("include/tenon/tenon.h", "#include <tenon/core/tensor.h>\n#include <tenon/generated/ops.h>\n")
        self.write("src/loop/verify.h", "")
        self.write("src/loop/verify.cpp",
                   '#include "verify.h"\n#include "loop/verify.h"\n#include <tenon/core/tensor.h>\n')

    def write(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def run_tool(self):
        done = subprocess.run([sys.executable, TOOL, self.root], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def assert_refused(self, message):
        code, output = self.run_tool()
        self.assertEqual(code, 1, output)
        self.assertIn(message, output)
        self.assertIn("1 includes that the table does not allow", output)

    def test_allowed_tree_passes(self):
        code, output = self.run_tool()
        self.assertEqual(code, 0, output)

    def test_reversed_edge(self):
        self.write("src/sym/expr.cpp", "// first line\n\n#include <tenon/core/tensor.h>\n")
        self.assert_refused("src/sym/expr.cpp:3: sym -> core: 'sym' may not include 'core'")

    def test_reversed_edge_between_headers(self):
        self.write("include/tenon/support/error.h", "#include <tenon/sym/expr.h>\n")
        self.assert_refused("include/tenon/support/error.h:1: support -> sym")

    def test_private_header_of_another_room(self):
        self.write("src/core/tensor.cpp", '#include "../loop/verify.h"\n')
        self.assert_refused("src/core/tensor.cpp:1: core -> loop")
        self.write("src/core/tensor.cpp", '#include "loop/verify.h"\n')
        self.assert_refused("src/core/tensor.cpp:1: core -> loop")

    def test_sideways_edge(self):
        self.write("src/schema/parse.cpp", "#include <tenon/sym/expr.h>\n")
        self.assert_refused("src/schema/parse.cpp:1: schema -> sym")

    def test_generated_headers_have_rooms(self):
        self.write("src/core/tensor.cpp", "#include <tenon/generated/ops.h>\n")
        self.assert_refused("src/core/tensor.cpp:1: core -> dispatch")

    def test_no_room_includes_everything(self):
        self.write("src/loop/print.cpp", "#include <tenon/tenon.h>\n")
        self.assert_refused("src/loop/print.cpp:1: loop -> <tenon/tenon.h>")

    def test_unknown_room(self):
        self.write("src/drawer/things.cpp", "")
        self.assert_refused("src/drawer/things.cpp: 'drawer' is not a room")

    def test_llvm_in_its_folder_only(self):
        self.write("src/codegen/llvm/emit.cpp", '#include <llvm/IR/IRBuilder.h>\n#include "llvm/IR/Module.h"\n')
        self.assertEqual(self.run_tool()[0], 0)
        self.write("src/codegen/compile.cpp", "#include <llvm/IR/IRBuilder.h>\n")
        self.assert_refused("src/codegen/compile.cpp:1: <llvm/IR/IRBuilder.h> "
                            "may be included in src/codegen/llvm/ only")

    def test_onednn_in_kernels_only(self):
        self.write("src/kernels/matmul.cpp", "#include <dnnl.hpp>\n")
        self.assertEqual(self.run_tool()[0], 0)
        self.write("src/runtime/plan.cpp", "#include <dnnl.hpp>\n")
        self.assert_refused("src/runtime/plan.cpp:1: <dnnl.hpp> may be included in src/kernels/ only")

    def test_json_in_sources_only(self):
        self.write("src/runtime/plan.cpp", "#include <nlohmann/json.hpp>\n")
        self.assertEqual(self.run_tool()[0], 0)
        self.write("src/runtime/plan.h", "#include <nlohmann/json.hpp>\n")
        self.assert_refused("src/runtime/plan.h:1: <nlohmann/json.hpp> may be included in .cpp files only")

    def test_circle_in_the_table(self):
        with open(os.path.join(self.root, "tools", "rooms.txt"), "w", encoding="utf-8") as file:
            file.write("support: sym\nsym: support\n")
        code, output = self.run_tool()
        self.assertEqual(code, 1)
        self.assertIn("support -> sym -> support", output)


if __name__ == "__main__":
    unittest.main()

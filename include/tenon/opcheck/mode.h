// `OpCheckMode`: while one lives, every call of certain operators on this thread is also checked, with the arguments
// that it got. `OPCHECK_SUITE` (suite.h) runs the tests of a suite in it.
//
//   opcheck::OpCheckMode mode({"aten"}, "test_schema", "MySuite.test_schema__small");
//   bool inside = opcheck::is_inside_opcheck_mode();
//   Tensor y = x.sin();
//   mode.finish();             // an OpCheckError if a check failed that is not known to fail
//   size_t calls = mode.checked();
//
// Left alone are operators of other namespaces, calls that raise, and calls with fake, meta or inference tensors,
// inside of a capture or under autocast.
#pragma once

#include <tenon/dispatch/packet.h>
#include <tenon/opcheck/failures.h>
#include <tenon/opcheck/opcheck.h>

#include <memory>
#include <string>
#include <vector>

namespace tenon::opcheck {

bool is_inside_opcheck_mode();

class OpCheckMode {
 public:
  // `check`: which test of opcheck. `test`: its name in the failures file, which may be null: nothing is known to fail.
  OpCheckMode(std::vector<std::string> namespaces, std::string check, std::string test,
              std::shared_ptr<FailuresFile> failures = nullptr);
  ~OpCheckMode();
  OpCheckMode(const OpCheckMode&) = delete;
  OpCheckMode& operator=(const OpCheckMode&) = delete;

  // Ends it. What failed and is not known to, or is known to fail and did not, is an OpCheckError; with
  // TENON_OPCHECK_UPDATE=1 in the environment the failures file is rewritten instead.
  void finish();
  size_t checked() const;  // calls so far

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A program that runs one check again.
//
//   std::vector<dispatch::Value> args = {dispatch::Value(x)};
//   fmt::print("{}", opcheck::reproducer("test_schema", "aten::sin", args));
//   opcheck::ReproducerOptions saved{.save_data = true, .folder = "/tmp", .dry_run = true};
//   fmt::print("{}", opcheck::reproducer("test_schema", "aten::sin", args, {}, saved));
struct ReproducerOptions {
  bool save_data = false;   // tensors go to a file beside the program; otherwise they are part of it
  std::string folder = {};  // of that file; empty: the system's for temporary files
  bool dry_run = false;     // nothing is written
};
std::string reproducer(const std::string& check, const Subject& op, std::span<const dispatch::Value> args,
                       std::span<const dispatch::Keyword> kwargs = {}, const ReproducerOptions& options = {});

// Arguments of a call in a safetensors file; what is no tensor stands in its head as text.
//
//   opcheck::save_arguments("/tmp/call.safetensors", std::vector<dispatch::Value>{dispatch::Value(x)});
//   opcheck::SavedArguments again = opcheck::load_arguments("/tmp/call.safetensors");
//   library::opcheck("aten::sin", again.args, again.keywords());
struct SavedArguments {
  std::vector<dispatch::Value> args;
  std::vector<std::pair<std::string, dispatch::Value>> kwargs;
  std::vector<dispatch::Keyword> keywords() const;
};
void save_arguments(const std::string& path, std::span<const dispatch::Value> args,
                    std::span<const dispatch::Keyword> kwargs = {});
SavedArguments load_arguments(const std::string& path);

}  // namespace tenon::opcheck

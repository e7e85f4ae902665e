#include "golden/expected.h"

#include <gtest/gtest.h>
#include <tenon/support/error.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

namespace tenon::golden {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

// The longest common subsequence; texts have some hundred lines.
std::string difference(const std::string& before, const std::string& after) {
  constexpr size_t kAround = 2;
  const std::vector<std::string> a = lines_of(before), b = lines_of(after);
  std::vector<std::vector<size_t>> common(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = a.size(); i-- > 0;)
    for (size_t j = b.size(); j-- > 0;)
      common[i][j] = a[i] == b[j] ? common[i + 1][j + 1] + 1 : std::max(common[i + 1][j], common[i][j + 1]);
  std::vector<std::string> shown;
  std::vector<bool> differs;
  for (size_t i = 0, j = 0; i < a.size() || j < b.size();) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) {
      shown.push_back("  " + a[i]);
      differs.push_back(false);
      ++i, ++j;
    } else if (j == b.size() || (i < a.size() && common[i + 1][j] >= common[i][j + 1])) {
      shown.push_back("- " + a[i++]);
      differs.push_back(true);
    } else {
      shown.push_back("+ " + b[j++]);
      differs.push_back(true);
    }
  }
  std::string text;
  bool left_out = false;
  for (size_t at = 0; at < shown.size(); ++at) {
    bool near = false;
    for (size_t other = at - std::min(at, kAround); other < std::min(shown.size(), at + kAround + 1); ++other)
      near = near || differs[other];
    if (near) text += (left_out && !text.empty() ? "  …\n" : "") + shown[at] + "\n";
    left_out = !near;
  }
  return text;
}

void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = TENON_SOURCE_DIR "/tests/golden/" + name + ".txt";
  const char* update = std::getenv("TENON_UPDATE_GOLDEN");
  if (update && std::string(update) == "1") {
    std::ofstream file(path);
    file << text;
    file.close();
    TENON_CHECK(file, "[golden] cannot write {}", path);
    return;
  }
  std::ifstream file(path);
  ASSERT_TRUE(file) << "there is no " << path << ": make golden writes it";
  std::ostringstream expected;
  expected << file.rdbuf();
  EXPECT_EQ(difference(expected.str(), text), "")
      << "tests/golden/" << name
      << ".txt (-) is not what the compiler makes now (+). If the change is meant: make golden, "
      << "and read the difference";
}

}  // namespace tenon::golden

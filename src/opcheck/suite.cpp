// What generated tests need that is not GoogleTest's. (suite.h has the rest: the library does without GoogleTest.)
#include <tenon/opcheck/opcheck.h>

#include <algorithm>
#include <set>

namespace tenon::opcheck {

std::vector<std::string> generated_names(const std::string& suite, const std::vector<std::string>& cases,
                                         const std::vector<std::string>& checks) {
  std::vector<std::string> names;
  for (const std::string& check : checks)
    for (const std::string& each : cases) {
      names.push_back(check + "__" + each);
      if (std::find(cases.begin(), cases.end(), names.back()) != cases.end())
        throw OpCheckError(fmt::format(
            "[opcheck] the test {}.{} is there already, and the one that is generated for {} would hide it: "
            "call it something else, or generate the tests of a suite only once",
            suite, names.back(), each));
    }
  return names;
}

namespace detail {
std::set<std::string>& not_generated() {
  static auto* names = new std::set<std::string>;
  return *names;
}
}  // namespace detail

}  // namespace tenon::opcheck

#include "json.h"

#include <tenon/opcheck/failures.h>

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>

namespace tenon::opcheck {
namespace {

constexpr const char* kDescription =
    "Checks that generated tests of operators are known to fail. Status: xfail (must fail) or skip (is not run). "
    "TENON_OPCHECK_UPDATE=1 rewrites it from what fails.";

std::string_view name(Status status) { return status == Status::XFail ? "xfail" : "skip"; }

}  // namespace

FailuresFile FailuresFile::parse(const std::string& path, std::string_view text) {
  Json whole = parse_json(text);
  const Json* data = whole.find("data");
  TENON_CHECK_VALUE(data, "[opcheck] {}: expected an object with \"data\"", path);
  Entries entries;
  for (const auto& [op, tests] : data->object())
    for (const auto& [test, known] : tests.object()) {
      const Json *status = known.find("status"), *comment = known.find("comment");
      TENON_CHECK_VALUE(status, "[opcheck] {}: {} of {} has no status", path, test, op);
      entries[op][test] = {status->text(), comment ? comment->text() : ""};
    }
  return FailuresFile(path, std::move(entries));
}

FailuresFile FailuresFile::load(const std::string& path) {
  std::ifstream file(path);
  if (!file) return FailuresFile(path);
  return parse(path, std::string(std::istreambuf_iterator<char>(file), {}));
}

std::string FailuresFile::str() const {
  Json::Object data;
  for (const auto& [op, tests] : entries_) {
    Json::Object known;
    for (const auto& [test, entry] : tests)
      known.emplace_back(test, Json::Object{{"comment", Json(entry.comment)}, {"status", Json(entry.status)}});
    data.emplace_back(op, Json(std::move(known)));
  }
  Json whole(Json::Object{
      {"_description", Json(std::string(kDescription))}, {"_version", Json(1.0)}, {"data", Json(std::move(data))}});
  return whole.str() + "\n";
}

void FailuresFile::save() const {
  std::ofstream file(path_);
  file << str();
  TENON_CHECK(file.good(), "[opcheck] the failures file {} cannot be written", path_);
}

Status FailuresFile::status(const std::string& op, const std::string& test) const {
  auto of_op = entries_.find(op);
  if (of_op == entries_.end()) return Status::Success;
  auto found = of_op->second.find(test);
  if (found == of_op->second.end()) return Status::Success;
  return found->second.status == "skip" ? Status::Skip : Status::XFail;
}

void FailuresFile::set(const std::string& op, const std::string& test, Status status, const std::string& comment) {
  if (status != Status::Success) {
    entries_[op][test] = {std::string(name(status)), comment};
    return;
  }
  if (auto of_op = entries_.find(op); of_op != entries_.end()) {
    of_op->second.erase(test);
    if (of_op->second.empty()) entries_.erase(of_op);
  }
}

void FailuresFile::validate(const std::string& suite, const std::vector<std::string>& checks,
                            const std::vector<std::string>& cases) const {
  for (const auto& [op, tests] : entries_)
    for (const auto& [test, entry] : tests) {
      TENON_CHECK(entry.status == "xfail" || entry.status == "skip",
                  "[opcheck] {}: {} of {}: got status={}, expected xfail or skip", path_, test, op, entry.status);
      size_t dot = test.find('.');
      TENON_CHECK(dot != std::string::npos, "[opcheck] {}: expected \"Suite.check__case\", got \"{}\"", path_, test);
      if (test.substr(0, dot) != suite) continue;
      std::string name = test.substr(dot + 1);
      auto check = std::find_if(checks.begin(), checks.end(),
                                [&](const std::string& each) { return name.starts_with(each + "__"); });
      TENON_CHECK(check != checks.end(), "[opcheck] {}: {} of {}: the name should begin with one of {}", path_, test,
                  op, fmt::join(checks, ", "));
      std::string known = name.substr(check->size() + 2);
      TENON_CHECK(std::find(cases.begin(), cases.end(), known) != cases.end(),
                  "[opcheck] {}: {} of {}: the case {} does not exist on the TestCase {}, which has {}", path_, test,
                  op, known, suite, fmt::join(cases, ", "));
    }
}

}  // namespace tenon::opcheck

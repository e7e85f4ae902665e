// The failures file of generated tests: which checks are known to fail on which operators, and why.
//
//  { "_description": "…", "_version": 1,
//  "data": { "mylib::foo": { "MySuite.test_faketensor__small": { "comment": "issue 12", "status": "xfail" } } } }
//
//   opcheck::FailuresFile failures("failures.json");
//   failures.set("mylib::foo", "MySuite.test_schema__small", opcheck::Status::Skip, "slow");
//   bool skipped = failures.status("mylib::foo", "MySuite.test_schema__small") == opcheck::Status::Skip;
//   bool none = opcheck::FailuresFile::load("/nowhere.json").entries().empty() && failures.path() == "failures.json";
//   std::string text = failures.str();
//   opcheck::FailuresFile same = opcheck::FailuresFile::parse("failures.json", text);
//   same.validate("MySuite", opcheck::all_tests(), {"small", "large"});
#pragma once

#include <tenon/support/error.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::opcheck {

enum class Status : uint8_t {
  Success,  // what is not in the file
  XFail,    // must fail
  Skip,     // is not run
};

class FailuresFile {
 public:
  struct Entry {
    std::string status, comment;
  };
  using Entries =
      std::map<std::string, std::map<std::string, Entry>>;  // operator → "Suite.check__case" → what is known

  explicit FailuresFile(std::string path, Entries entries = {})
      : path_(std::move(path)), entries_(std::move(entries)) {}
  // Without a file it is empty.
  static FailuresFile load(const std::string& path);
  static FailuresFile parse(const std::string& path, std::string_view text);
  void save() const;
  std::string str() const;

  Status status(const std::string& op, const std::string& test) const;
  void set(const std::string& op, const std::string& test, Status status, const std::string& comment = "");
  const Entries& entries() const { return entries_; }
  const std::string& path() const { return path_; }

  // A RuntimeError for a status that there is not, and, of the tests of this suite, for one that begins with none of
  // the checks or whose case is not in the suite.
  void validate(const std::string& suite, const std::vector<std::string>& checks,
                const std::vector<std::string>& cases) const;

 private:
  std::string path_;
  Entries entries_;
};

}  // namespace tenon::opcheck

// Texts that are checked in: tests/golden/<name>.txt. `make golden` writes them anew; read the difference before you
// commit it.
#pragma once

#include <string>

namespace tenon::golden {

// Fails the test, with the lines that differ, unless `text` is that of the file. With TENON_UPDATE_GOLDEN=1 in the
// environment writes the file instead.
void expect_golden(const std::string& name, const std::string& text);

// Lines of `before` and `after` that differ, with "-" and "+" and a few equal ones around; empty if there are none.
std::string difference(const std::string& before, const std::string& after);

}  // namespace tenon::golden

#include "support/out_of_memory.h"
#include "support/reworded.h"

#include <tenon/support/decision.h>
#include <tenon/support/error.h>

#include <fmt/format.h>

namespace tenon {
namespace {

constexpr std::string_view kNames[] = {"RuntimeError", "ValueError", "TypeError", "IndexError", "NotImplementedError"};

}  // namespace

std::string_view name(ErrorKind kind) { return kNames[static_cast<size_t>(kind)]; }

void raise(ErrorKind kind, const std::string& text) {
  switch (kind) {
    case ErrorKind::Value: throw ValueError(text);
    case ErrorKind::Type: throw TypeError(text);
    case ErrorKind::Index: throw IndexError(text);
    case ErrorKind::NotImplemented: throw NotImplementedError(text);
    case ErrorKind::Runtime: break;
  }
  throw RuntimeError(text);
}

void raise_named(std::string_view text) {
  for (size_t kind = 0; kind < std::size(kNames); ++kind) {
    std::string_view rest = text;
    if (!rest.starts_with(kNames[kind])) continue;
    rest.remove_prefix(kNames[kind].size());
    if (rest.starts_with(": ")) raise(static_cast<ErrorKind>(kind), std::string(rest.substr(2)));
  }
  throw RuntimeError(std::string(text));
}

namespace support {

// (An error for which there is no memory is another one.)
void fail(ErrorKind kind, fmt::string_view text, fmt::format_args arguments) try {
  raise(kind, fmt::vformat(text, arguments));
} catch (const std::bad_alloc&) {
  raise_no_memory();
}

void raise_reworded(const Error& error, const std::string& text) {
  if (dynamic_cast<const OverflowError*>(&error)) throw OverflowError(text);
  if (dynamic_cast<const MemoryError*>(&error)) throw MemoryError(text);
  raise(error.kind(), text);
}

void fail_internal(const char* condition, const char* file, int line, fmt::string_view text,
                   fmt::format_args arguments) {
  std::string words = fmt::format("internal error: expected {} ({}:{})", condition, file, line);
  if (std::string detail = fmt::vformat(text, arguments); !detail.empty()) words += ": " + detail;
  throw InternalError(words);
}

}  // namespace support

Decision Decision::refused(fmt::string_view why, fmt::format_args arguments) {
  Decision decision;
  decision.allowed_ = false;
  decision.why_ = fmt::vformat(why, arguments);
  return decision;
}

}  // namespace tenon

// The runner: all benchmarks, or those whose name contains a given word; a table, and JSON for programs.
//   bench [--json FILE] [--list] [WORD]...
#include <tenon/support/error.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdio>
#include <string_view>

#include "bench.h"

namespace tenon::bench {
namespace {

struct Benchmark {
  const char* name;
  Function function;
};

std::vector<Benchmark>& benchmarks() {
  static std::vector<Benchmark> all;
  return all;
}

const char* text_of(Judged judged) { return judged == Judged::Value ? "value" : "ratio"; }
const char* text_of(Better better) { return better == Better::Lower ? "lower" : "higher"; }

nlohmann::ordered_json number(std::optional<double> value) {
  if (!value || !std::isfinite(*value)) return nullptr;  // JSON has no other
  return *value;
}

std::string bar_text(const Row& row) {
  if (!row.bar) return "";
  return fmt::format("{} {} {:.4g}", text_of(row.judged), row.better == Better::Lower ? "≤" : "≥", *row.bar);
}

void print_heading() {
  fmt::print("{:<44} {:>12} {:<8} {:>8} {:<28} {:<14} {}\n", "benchmark", "value", "unit", "ratio", "against", "bar",
             "ok");
}

void print_row(const Row& row) {
  fmt::print("{:<44} {:>12.4g} {:<8} {:>8} {:<28} {:<14} {}\n", row.name, row.value, row.unit,
             row.ratio ? fmt::format("{:.3f}", *row.ratio) : "", row.against, bar_text(row),
             !row.bar   ? ""
             : row.ok() ? "yes"
                        : "NO");
  std::fflush(stdout);
}

// Under a temporary name first: a reader sees the old list or the new one, never half of it.
void write_file(const std::string& path, const std::string& text) {
  std::string temporary = path + ".new";
  std::FILE* file = std::fopen(temporary.c_str(), "w");
  TENON_CHECK(file, "[bench] cannot write {}", temporary);
  bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  written &= std::fclose(file) == 0;
  TENON_CHECK(written && std::rename(temporary.c_str(), path.c_str()) == 0, "[bench] cannot write {}", path);
}

bool wanted(std::string_view name, const std::vector<std::string>& words) {
  for (const std::string& word : words)
    if (name.find(word) != std::string_view::npos) return true;
  return words.empty();
}

int run(int argc, char** argv) {
  std::string json_path;
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i) {
    std::string_view argument = argv[i];
    if (argument == "--json") {
      TENON_CHECK(i + 1 < argc, "[bench] expected a file name after --json");
      json_path = argv[++i];
    } else if (argument == "--list") {
      for (const Benchmark& benchmark : benchmarks()) fmt::print("{}\n", benchmark.name);
      return 0;
    } else {
      TENON_CHECK(!argument.starts_with('-'), "[bench] unknown option {}: expected --json FILE, --list or words",
                  argument);
      words.emplace_back(argument);
    }
  }
  Report report;
  print_heading();
  for (const Benchmark& benchmark : benchmarks()) {
    if (!wanted(benchmark.name, words)) continue;
    size_t before = report.rows().size();
    benchmark.function(report);
    for (size_t i = before; i < report.rows().size(); ++i) print_row(report.rows()[i]);
  }
  if (!json_path.empty()) {
    write_file(json_path, report.json());
    fmt::print("written: {}\n", json_path);
  }
  return 0;
}

}  // namespace

bool Row::ok() const {
  if (!bar) return true;
  double judged_number = judged == Judged::Value ? value : ratio.value_or(std::nan(""));
  return better == Better::Lower ? judged_number <= *bar : judged_number >= *bar;
}

void Report::add(Row row) {
  TENON_CHECK(row.judged == Judged::Value || row.ratio, "[bench] {} is judged by a ratio that it does not have",
              row.name);
  rows_.push_back(std::move(row));
}

std::string Report::json() const {
  std::string text;
  for (const Row& row : rows_) {
    nlohmann::ordered_json entry = {{"name", row.name},
                                    {"value", number(row.value)},
                                    {"unit", row.unit},
                                    {"against", nullptr},
                                    {"ratio", number(row.ratio)},
                                    {"judged", text_of(row.judged)},
                                    {"better", text_of(row.better)},
                                    {"bar", number(row.bar)},
                                    {"ok", row.ok()}};
    if (!row.against.empty()) entry["against"] = row.against;
    text += (text.empty() ? "\n  " : ",\n  ") + entry.dump();
  }
  return "[" + text + "\n]\n";
}

Registration::Registration(const char* name, Function function) { benchmarks().push_back({name, function}); }

}  // namespace tenon::bench

int main(int argc, char** argv) {
  try {
    return tenon::bench::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}

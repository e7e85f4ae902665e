// A machine that runs out of memory, anywhere: small programs, each run again and again with allocations that fail at a
// point drawn at random. What comes of it is the result, or an Error; nothing is lost, and the same program run again
// computes what it always did.
//
//   low_memory [points [seed [program]]]   5000 points, seed 1, all programs
//   low_memory at PROGRAM FIRST LENGTH     one point, in this process, for a debugger; `first` in place of `at`: of the
//                                          program's first run
//
// Points run in children, so that one that ends its process is found, told, and the others go on.
#include "low_memory/failing_allocator.h"
#include "low_memory/programs.h"

#include <fmt/format.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <typeinfo>

namespace tenon::low_memory {
namespace {

constexpr int kLongest = 300;  // seconds for one child; a hang is a failure
constexpr int64_t kForEver = int64_t{1} << 60;

struct Point {
  int64_t first, length;
};

// How a run ended with allocations that failed; empty if as it should.
std::string run_at(const std::function<double()>& run, double expected, Point point) {
  try {
    double result;
    {
      Failing failing(point.first, point.length);
      result = run();
    }
    if (result != expected) return fmt::format("gave {} instead of {}", result, expected);
  } catch (const Error&) {
  } catch (const std::exception& error) {
    return fmt::format("threw {}: {} (in {})", typeid(error).name(), error.what(), Failing::where());
  } catch (...) {
    return "threw something";
  }
  return "";
}

std::string run_again(const std::function<double()>& run, double expected) {
  try {
    double again = run();
    return again == expected ? "" : fmt::format("then gave {} instead of {}", again, expected);
  } catch (const std::exception& error) {
    return fmt::format("then threw {}", error.what());
  }
}

// A program, run until nothing is new, with what it computes.
struct Prepared {
  std::function<double()> run;
  double expected = 0;

  explicit Prepared(const Program& program) : run(program.make()) {
    for (int at = 0; at < 4; ++at) expected = run();
  }
};

// Empty, or what is wrong.
std::string try_point(const Prepared& prepared, Point point) {
  int64_t before = live_allocations(), grown = 0;
  // What a failure leaves behind may be kept for a while (kernels that a running call could still see). What only ever
  // grows is lost.
  for (int round = 0; round < 40; ++round) {
    if (std::string wrong = run_at(prepared.run, prepared.expected, point); !wrong.empty()) return wrong;
    if (std::string wrong = run_again(prepared.run, prepared.expected); !wrong.empty()) return wrong;
    int64_t after = live_allocations();
    if (after <= before) return "";
    grown = after - before;
    before = after;
  }
  return fmt::format("leaves {} allocations behind, every time", grown);
}

// In a process that has computed nothing yet.
std::string try_first_run(const Program& program, double expected, Point point) {
  std::function<double()> run = program.make();
  if (std::string wrong = run_at(run, expected, point); !wrong.empty()) return wrong;
  std::string wrong = run_again(run, expected);
  return wrong.empty() ? run_again(run, expected) : wrong;
}

// What a child says, line by line, until it ends; the last line says how, if that was not as it should be.
std::vector<std::string> lines_of_child(const std::function<void(const std::function<void(std::string)>& say)>& work) {
  int ends[2];
  if (pipe(ends) != 0) return {"no pipe"};
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    alarm(kLongest);
    work([&](std::string line) {
      std::replace(line.begin(), line.end(), '\n', '|');
      line = line.substr(0, 2000) + '\n';
      if (write(ends[1], line.data(), line.size()) < 0) _exit(1);
    });
    _exit(0);
  }
  close(ends[1]);
  std::string said;
  char buffer[4096];
  for (ssize_t count; (count = read(ends[0], buffer, sizeof buffer)) > 0;)
    said.append(buffer, static_cast<size_t>(count));
  close(ends[0]);
  int status = 0;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  std::vector<std::string> lines;
  for (size_t at = 0, end; (end = said.find('\n', at)) != said.npos; at = end + 1)
    lines.push_back(said.substr(at, end - at));
  if (WIFSIGNALED(status)) lines.push_back(fmt::format("ended by signal {}", WTERMSIG(status)));
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
    lines.push_back(fmt::format("ended with status {}", WEXITSTATUS(status)));
  return lines;
}

// What a program computes, and how many allocations its first and its later runs take.
struct Measured {
  double expected = 0;
  int64_t first = 0, later = 0;
};
std::optional<Measured> measure(const Program& program) {
  std::vector<std::string> lines = lines_of_child([&](const auto& say) {
    std::function<double()> run = program.make();
    auto allocations = [&] {
      Failing none(kForEver, 0);
      run();
      return Failing::counted();
    };
    int64_t first = allocations();
    for (int at = 0; at < 3; ++at) run();
    int64_t later = allocations();
    say(fmt::format("{:a}", run()));
    say(std::to_string(first));
    say(std::to_string(later));
  });
  if (lines.size() != 3) return std::nullopt;
  Measured measured{std::strtod(lines[0].c_str(), nullptr), std::stoll(lines[1]), std::stoll(lines[2])};
  if (measured.first <= 0 || measured.later <= 0) return std::nullopt;  // the allocator is not in place
  return measured;
}

class Drawing {
 public:
  explicit Drawing(unsigned seed) : draw_(seed) {}
  Point operator()(int64_t allocations) {
    constexpr int64_t kLengths[] = {1, 1, 2, 5, 20, kForEver};
    return {std::uniform_int_distribution<int64_t>(0, allocations - 1)(draw_),
            kLengths[std::uniform_int_distribution<size_t>(0, std::size(kLengths) - 1)(draw_)]};
  }

 private:
  std::mt19937 draw_;
};

int run_all(int64_t points, unsigned seed, const std::string& only) {
  Drawing draw(seed);
  int64_t ran = 0, bad = 0;
  std::vector<const Program*> chosen;
  for (const Program& program : programs())
    if (only.empty() || only == program.name) chosen.push_back(&program);
  if (chosen.empty()) {
    fmt::print(stderr, "there is no program {}\n", only);
    return 2;
  }
  const int64_t share = (points + static_cast<int64_t>(chosen.size()) - 1) / static_cast<int64_t>(chosen.size());
  for (const Program* program : chosen) {
    std::optional<Measured> measured = measure(*program);
    if (!measured) {
      fmt::print("{}: cannot be run\n", program->name);
      ++bad;
      continue;
    }
    const int64_t before = bad;
    auto note = [&](const char* which, const Point& point, const std::string& wrong) {
      ++bad;
      fmt::print("{} {} {} {}: {}\n", which, program->name, point.first, point.length, wrong);
    };
    // A process for each first run; later runs share one until something is wrong.
    const int64_t firsts = share / 10;
    for (int64_t at = 0; at < firsts; ++at) {
      Point point = draw(measured->first);
      std::vector<std::string> lines =
          lines_of_child([&](const auto& say) { say(try_first_run(*program, measured->expected, point)); });
      if (lines.size() != 1 || !lines[0].empty()) note("first", point, lines.empty() ? "said nothing" : lines.back());
    }
    std::vector<Point> drawn;
    for (int64_t at = firsts; at < share; ++at) drawn.push_back(draw(measured->later));
    for (size_t at = 0; at < drawn.size();) {
      std::vector<std::string> lines = lines_of_child([&](const auto& say) {
        Prepared prepared(*program);
        for (size_t next = at; next < drawn.size(); ++next) {
          std::string wrong = try_point(prepared, drawn[next]);
          say(wrong);
          if (!wrong.empty()) return;
        }
      });
      for (const std::string& line : lines) {
        if (!line.empty()) note("at", drawn[at], line);
        ++at;
      }
      if (lines.empty()) note("at", drawn[at++], "said nothing");
    }
    ran += share;
    fmt::print("{}: {} allocations at first, then {}; {} points, {} bad\n", program->name, measured->first,
               measured->later, share, bad - before);
    std::fflush(stdout);
  }
  fmt::print("{} points, {} bad\n", ran, bad);
  return bad == 0 ? 0 : 1;
}

int run_one(bool first, const std::string& name, Point point) {
  for (const Program& program : programs()) {
    if (name != program.name) continue;
    std::string wrong;
    if (first) {
      std::optional<Measured> measured = measure(program);
      wrong = measured ? try_first_run(program, measured->expected, point) : "cannot be run";
    } else {
      wrong = try_point(Prepared(program), point);
    }
    fmt::print("{}\n", wrong.empty() ? "as it should be" : wrong);
    return wrong.empty() ? 0 : 1;
  }
  return 2;
}

}  // namespace
}  // namespace tenon::low_memory

int main(int count, char** words) {
  using namespace tenon::low_memory;
  setenv("TENON_CACHE", TENON_TEST_CACHE, /*overwrite=*/0);
  const std::string what = count > 1 ? words[1] : "";
  if (count == 5 && (what == "at" || what == "first"))
    return run_one(what == "first", words[2], {std::atoll(words[3]), std::atoll(words[4])});
  return run_all(count > 1 ? std::atoll(words[1]) : 5000, count > 2 ? static_cast<unsigned>(std::atoi(words[2])) : 1,
                 count > 3 ? words[3] : "");
}

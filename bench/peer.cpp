#include "peer.h"

#include <tenon/support/error.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <sstream>

namespace tenon::bench {
namespace {

std::map<std::string, double> run_peer() {
  std::map<std::string, double> figures;
  const char* python = std::getenv("TENON_PEER_PYTHON");
  if (!python || !*python) {
    std::fputs("bench: no peer: set TENON_PEER_PYTHON to a Python with PyTorch 2.13 to compare with it\n", stderr);
    return figures;
  }
  std::string command = fmt::format("\"{}\" \"{}\" 2>/dev/null", python,
                                    (std::filesystem::path(TENON_BENCH_FOLDER) / "peer.py").string());
  std::fputs("bench: measuring the peer (compiling there takes a minute) …\n", stderr);
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), &pclose);
  if (!pipe) return figures;
  char line[256];
  while (std::fgets(line, sizeof line, pipe.get())) {
    std::istringstream words(line);
    std::string name;
    double seconds;
    if (words >> name >> seconds) figures[name] = seconds;
  }
  if (figures.empty()) std::fputs("bench: the peer gave no figures: is PyTorch installed there?\n", stderr);
  return figures;
}

}  // namespace

std::optional<double> peer_figure(const std::string& name) {
  static const std::map<std::string, double> figures = run_peer();
  auto found = figures.find(name);
  return found == figures.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace tenon::bench

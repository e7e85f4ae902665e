#include "fuzz/peer.h"

#include "fuzz/grammar.h"

#include <tenon/tenon.h>

#include <cstring>
#include <fstream>
#include <regex>
#include <sstream>

#include <sys/wait.h>
#include <unistd.h>

namespace tenon::fuzz {

Peer::Peer(const std::string& python) {
  int in[2], out[2];
  TENON_CHECK(pipe(in) == 0 && pipe(out) == 0, "[fuzz] no pipe to the peer");
  process_ = fork();
  if (process_ == 0) {
    dup2(in[0], STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    for (int end : {in[0], in[1], out[0], out[1]}) close(end);
    execl(python.c_str(), python.c_str(), TENON_SOURCE_DIR "/tests/fuzz/peer.py", nullptr);
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  to_ = fdopen(in[1], "w");
  from_ = fdopen(out[0], "r");
}

Peer::~Peer() {
  std::fclose(to_);
  std::fclose(from_);
  waitpid(process_, nullptr, 0);
}

namespace {

Ints read_ints(const std::string& text) {
  Ints list;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');)
    if (!word.empty()) list.push_back(std::stoll(word));
  return list;
}

// "dtype sizes values": sizes separated by commas, values by blanks.
Tensor read_tensor(std::istream& words) {
  std::string dtype, sizes;
  std::getline(words, dtype, '|');
  std::getline(words, sizes, '|');
  std::vector<double> values;
  for (std::string word; words >> word;) values.push_back(std::strtod(word.c_str(), nullptr));
  SymInts shape;
  for (int64_t size : read_ints(sizes)) shape.push_back(size);
  return view(tensor(values, kFloat64).to(*dtype_from_name(dtype)), shape);
}

void read_line(const std::string& line, Observation& seen) {
  std::istringstream words(line);
  std::string kind;
  words >> kind;
  words.get();
  auto rest = [&] {
    std::string text;
    std::getline(words, text);
    return text.empty() ? std::string("an error without words") : text;
  };
  if (kind == "call_error") {
    seen.call_error = rest();
  } else if (kind == "action_error") {
    seen.action_error = rest();
  } else if (kind == "gradient_error") {
    seen.gradient_error = rest();
  } else if (kind == "state") {
    int mode = 0, moved = 0;
    words >> mode;
    seen.grad_mode = mode;
    while (words >> moved) seen.written.push_back(moved);
  } else if (kind == "hooks") {
    for (int64_t count = 0; words >> count;) seen.hook_calls.push_back(count);
  } else if (kind == "gradient") {
    seen.gradients.push_back(words.peek() == '-' ? Tensor() : read_tensor(words));
  } else {
    Seen one;
    std::string strides, flag;
    std::getline(words, one.name, '|');
    std::getline(words, strides, '|');
    one.strides = read_ints(strides);
    std::getline(words, flag, '|');
    std::istringstream flags(flag);
    flags >> one.requires_grad >> one.leaf >> one.shares_with >> one.distance;
    one.values = read_tensor(words);
    one.sizes = Ints(one.values.sizes());
    one.description = one.values.description();
    (kind == "after_call" ? seen.after_call : seen.after_actions).push_back(std::move(one));
  }
}

}  // namespace

std::vector<std::vector<Observation>> Peer::run(const std::vector<Program>& programs) {
  // The peer reads all of them before it answers: pipes are short.
  fmt::print(to_, "{}\n", programs.size());
  for (const Program& program : programs) {
    std::string text = python_source(program);
    fmt::print(to_, "{}\n{}", text.size(), text);
  }
  std::fflush(to_);
  std::vector<std::vector<Observation>> all;
  char* buffer = nullptr;
  size_t room = 0;
  for (size_t at = 0; at < programs.size(); ++at) {
    std::vector<Observation> calls;
    for (;;) {
      ssize_t length = getline(&buffer, &room, from_);
      TENON_CHECK(length > 0, "[fuzz] the peer is gone: is PyTorch installed for TENON_PEER_PYTHON?");
      std::string line(buffer, static_cast<size_t>(length - 1));
      if (line == "end") break;
      if (line == "call")
        calls.emplace_back();
      else
        read_line(line, calls.back());
    }
    all.push_back(std::move(calls));
  }
  std::free(buffer);
  return all;
}

PeerDifference compare_with_peer(const Program& program, const std::vector<Observation>& ours,
                                 const std::vector<Observation>& theirs) {
  for (size_t call = 0; call < ours.size() && call < theirs.size(); ++call) {
    Observation expected = theirs[call];
    // The generator is not the peer's.
    expected.seed = ours[call].seed;
    expected.offset = ours[call].offset;
    expected.hook_calls.resize(ours[call].hook_calls.size());
    std::string text = compare(program, ours[call], expected, false, Against::Peer);
    if (text.empty()) {
      if (!expected.call_error.empty()) break;
      continue;
    }
    auto has = [&](const char* word) { return text.find(word) != std::string::npos; };
    std::string aspect = has("refuse") || has("runs what")                      ? "raises"
                         : has("strides [")                                     ? "strides"
                         : has("requires_grad") || has("is_leaf")               ? "requires_grad"
                         : has("nothing is there to differentiate")             ? "requires_grad"
                         : has("shares its memory") || has(" elements behind ") ? "sharing"
                         : has("gradient") || has("hooks")                      ? "gradients"
                         : has("] instead of ")                                 ? "dtype"
                                                                                : "values";
    const bool of_numbers = aspect == "values" || aspect == "gradients";
    if (of_numbers && agree_but_for_rounding(program, call, ours[call], expected)) continue;
    for (auto [from, to] : {std::pair("compiled code ", ""), std::pair("eager", "PyTorch")})
      if (size_t at = text.find(from); at != std::string::npos) text.replace(at, std::strlen(from), to);
    return {fmt::format("call {}: {}", call + 1, text), aspect};
  }
  return {};
}

KnownDifferences::KnownDifferences(const std::string& path) {
  std::ifstream file(path);
  TENON_CHECK(file.good(), "[fuzz] {} is not there", path);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    static const std::regex form("(\\S+) (\\w+|\\*)( \"(.*)\")?: .*");
    std::smatch parts;
    TENON_CHECK(std::regex_match(line, parts, form),
                "[fuzz] {}: expected 'operator aspect: reason' or 'operator aspect \"text\": reason', got '{}'", path,
                line);
    known_.emplace(parts[1], PeerDifference{parts[4], parts[2]});
  }
}

std::string KnownDifferences::find(const Program& program, const PeerDifference& difference) const {
  std::vector<std::string> names = operators_of(program);
  names.push_back("*");
  for (const std::string& name : names)
    for (auto [at, end] = known_.equal_range(name); at != end; ++at) {
      const auto& [text, aspect] = at->second;
      if ((aspect == difference.aspect || aspect == "*") && difference.text.find(text) != std::string::npos)
        return name;
    }
  return "";
}

}  // namespace tenon::fuzz

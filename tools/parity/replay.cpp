// Replays calls of ATen that tools/parity/record.py wrote down, and compares what comes of them with PyTorch.
//
//   parity FOLDER [--compiled] [--only WORD] [--most N] [--known FILE]
//
// Of each call: whether it raises, dtypes, sizes, strides and values of its results, and of the arguments that it
// writes to; of a call with gradients those, in values, dtypes and sizes. `--compiled`: through compile() with symbolic
// sizes instead of eagerly. `--only`: operators whose name has the word. `--most`: how many differences of an operator
// are shown (2). `--known`: reasons for them, `operator: reason` a line; those of operators that do not differ any more
// are listed, too. Calls run in a child process, so that one that ends it is a difference, and the others go on.
#include <tenon/dispatch/packet.h>
#include <tenon/tenon.h>

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>

namespace tenon::parity {
namespace {

using dispatch::Value;
using nlohmann::json;

// The elements of all tensors, mapped.
class Data {
 public:
  explicit Data(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY);
    struct stat about{};
    if (file < 0 || fstat(file, &about) != 0) fail("[parity] {} cannot be read", path);
    size_ = static_cast<size_t>(about.st_size);
    void* mapped = size_ == 0 ? nullptr : mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (mapped == MAP_FAILED) fail("[parity] {} cannot be mapped", path);
    begin_ = static_cast<const char*>(mapped);
  }
  void copy(size_t at, size_t bytes, void* to) const {
    TENON_CHECK(at + bytes <= size_, "[parity] the file of elements ends at {}, and {} are wanted from {} on", size_,
                bytes, at);
    if (bytes > 0) std::memcpy(to, begin_ + at, bytes);
  }

 private:
  const char* begin_ = nullptr;
  size_t size_ = 0;
};

Tensor read_tensor(const json& text, const Data& data) {
  const auto sizes = text.at("sizes").get<std::vector<int64_t>>(),
             strides = text.at("strides").get<std::vector<int64_t>>();
  const Dtype dtype = dtype_from_name(text.at("dtype").get<std::string>()).value();
  const int64_t reach = text.at("reach");
  Tensor memory = empty({reach}, dtype);
  data.copy(text.at("at"), static_cast<size_t>(reach * memory.element_size()), memory.raw_data());
  return as_strided(memory, SymInts(std::span<const int64_t>(sizes)), SymInts(std::span<const int64_t>(strides)),
                    SymInt(text.value("offset", int64_t{0})));
}

double read_real(const std::string& text) { return std::strtod(text.c_str(), nullptr); }

const schema::Type& without_optional(const schema::Type& type) {
  return type.is_optional() ? without_optional(type.element[0]) : type;
}

Value read_value(const json& text, const schema::Type& given_type, const Data& data);

Value read_list(const json& text, const schema::Type& type, const Data& data) {
  const schema::Type& element = type.element[0];
  switch (without_optional(element).kind) {
    case schema::Kind::Tensor: {
      std::vector<std::optional<Tensor>> list;
      for (const json& each : text)
        list.push_back(each.is_null() ? std::nullopt : std::optional(read_tensor(each.at("tensor"), data)));
      if (element.is_optional()) return Value(list).own();
      std::vector<Tensor> tensors;
      for (const auto& each : list) tensors.push_back(each.value());
      return Value(tensors).own();
    }
    case schema::Kind::Float: {
      std::vector<double> list;
      for (const json& each : text) list.push_back(each.is_object() ? read_real(each.at("real")) : each.get<double>());
      return Value(list).own();
    }
    case schema::Kind::Bool: return Value(text.get<std::vector<bool>>());
    default: return Value(Ints(text.get<std::vector<int64_t>>())).own();
  }
}

Value read_value(const json& text, const schema::Type& given_type, const Data& data) {
  const schema::Type& type = without_optional(given_type);
  if (text.is_null()) return {};
  if (text.is_array()) return read_list(text, type, data);
  if (text.is_boolean()) return Value(text.get<bool>());
  if (text.is_number_integer()) {
    const auto number = text.get<int64_t>();
    if (type.is_list()) return Value(Ints{number}).own();  // one for all dimensions
    return type.kind == schema::Kind::Float ? Value(static_cast<double>(number)) : Value(number);
  }
  if (text.is_string()) return Value(std::string_view(text.get_ref<const std::string&>())).own();
  if (text.contains("tensor")) return Value(read_tensor(text.at("tensor"), data));
  if (text.contains("real")) return Value(read_real(text.at("real")));
  if (text.contains("dtype")) return Value(dtype_from_name(text.at("dtype").get<std::string>()).value());
  if (text.contains("device")) return Value(Device());
  if (text.contains("layout")) return Value(Layout::Strided);
  const std::string format = text.at("memory_format");
  if (format == "preserve_format") return Value(MemoryFormat::Preserve);
  if (format == "channels_last") return Value(MemoryFormat::ChannelsLast);
  if (format == "channels_last_3d") return Value(MemoryFormat::ChannelsLast3d);
  TENON_CHECK_IMPLEMENTED(format == "contiguous_format", "[parity] there is no memory format {}", format);
  return Value(MemoryFormat::Contiguous);
}

// How far a float may be off: by its size, and by itself.
std::pair<double, double> tolerance(Dtype dtype) {
  if (dtype == kFloat64) return {1e-7, 1e-7};
  if (dtype == kFloat32) return {1e-4, 1e-5};
  return dtype == kBFloat16 ? std::pair(2e-2, 1e-2) : std::pair(3e-3, 1e-3);
}

// `any_sign`: where only magnitudes mean something.
std::string compare(const Tensor& got, const Tensor& expected, bool values, bool any_sign = false) {
  if (got.dtype() != expected.dtype() || !std::ranges::equal(got.sizes(), expected.sizes()))
    return fmt::format("{} instead of {}", got.description(), expected.description());
  for (int64_t dim = 0; dim < got.dim() && got.numel().plain() > 0; ++dim) {
    const auto at = static_cast<size_t>(dim);
    if (got.sizes()[at] > 1 && got.strides()[at] != expected.strides()[at])
      return fmt::format("strides [{}] instead of [{}]", fmt::join(got.strides(), ", "),
                         fmt::join(expected.strides(), ", "));
  }
  if (!values || got.numel().plain() == 0) return "";
  if (!is_floating(got.dtype()))
    return equal(got, expected) ? "" : fmt::format("{} instead of {}", got.str(), expected.str());
  const auto [relative, absolute] = tolerance(got.dtype());
  Tensor mine = got.to(kFloat64).contiguous(), theirs = expected.to(kFloat64).contiguous();
  for (int64_t at = 0; at < mine.numel().plain(); ++at) {
    double is = mine.data<double>()[at], should = theirs.data<double>()[at];
    if (any_sign) is = std::fabs(is), should = std::fabs(should);
    if (is == should || (std::isnan(is) && std::isnan(should))) continue;
    if (!(std::fabs(is - should) <= absolute + relative * std::fabs(should)))
      return fmt::format("element {}: {} instead of {} ({})", at, is, should, got.description());
  }
  return "";
}

// Whether halves are what PyTorch gives for float32, rounded: where its own are not, being rounded on the way.
bool is_rounded(const Tensor& got, const Tensor& wide) {
  if (!is_floating(wide.dtype()) || !std::ranges::equal(got.sizes(), wide.sizes())) return false;
  const auto [relative, absolute] = tolerance(got.dtype());
  Tensor mine = got.to(kFloat64).contiguous(), theirs = wide.to(got.dtype()).to(kFloat64).contiguous();
  for (int64_t at = 0; at < mine.numel().plain(); ++at) {
    const double is = mine.data<double>()[at], should = theirs.data<double>()[at];
    if (is == should || (std::isnan(is) && std::isnan(should))) continue;
    if (!(std::fabs(is - should) <= absolute + relative * std::fabs(should))) return false;
  }
  return true;
}

// Whether the elements that `places` names along a dimension of `self` are `values`: of several that tie, any will do.
bool names_elements(const Tensor& self, int64_t dim, const Tensor& values, const Tensor& places) {
  if (self.dim() == 0 || places.dtype() != kInt64) return false;
  const int64_t along = dim < 0 ? dim + self.dim() : dim;
  const bool kept = values.dim() == self.dim();
  if (!kept && values.dim() != self.dim() - 1) return false;
  Tensor found = gather(self, along, kept ? places : unsqueeze(places, along));
  return compare(kept ? found : squeeze(found, along), values, true).starts_with("strides") ||
         compare(contiguous(kept ? found : squeeze(found, along)), contiguous(values), true).empty();
}

// A call as it was written down, for our operator.
struct Bound {
  const dispatch::Operator* op = nullptr;  // null: there is none
  dispatch::Values values;                 // by position in the schema
  std::vector<Tensor> written;             // what it writes to
  std::vector<Tensor> floats;              // what may have a gradient, in the order of the recorder
};

Bound bind(const json& line, const Data& data) {
  Bound bound;
  const std::string name = line.at("op");
  bound.op = dispatch::find_operator_or_null(name);
  if (!bound.op) return bound;
  // PyTorch shows a number of the program's as it is, where the operator takes a tensor.
  const json& second = line.at("args").size() > 1 ? line["args"][1] : json();
  if ((second.is_number() || second.contains("real")) && name.ends_with(".Tensor"))
    if (const auto* other = dispatch::find_operator_or_null(name.substr(0, name.rfind('.')) + ".Scalar"))
      bound.op = other;
  const schema::Schema& schema = bound.op->schema();
  std::vector<Value> args;
  std::vector<dispatch::Keyword> keywords;
  const auto note = [&](size_t at, const Value& value) {
    const auto& alias = schema.arguments[at].alias;
    value.each_tensor([&](const Tensor& each) {
      if (alias && alias->write) bound.written.push_back(each);
      if (is_floating(each.dtype())) bound.floats.push_back(each);
    });
  };
  for (size_t at = 0; at < line.at("args").size(); ++at) {
    TENON_CHECK(at < schema.arguments.size(), "[parity] {} takes {} arguments, got more", bound.op->name(),
                schema.arguments.size());
    args.push_back(read_value(line["args"][at], schema.arguments[at].type, data));
    note(at, args.back());
  }
  for (const auto& [word, text] : line.at("kwargs").items()) {
    const int at = schema.argument_index(word);
    TENON_CHECK(at >= 0, "[parity] {} has no argument '{}'", bound.op->name(), word);
    const schema::Argument& argument = schema.arguments[static_cast<size_t>(at)];
    keywords.push_back({argument.name, read_value(text, argument.type, data)});
    note(static_cast<size_t>(at), keywords.back().value);
  }
  bound.values = dispatch::bind_arguments(schema, args, keywords);
  return bound;
}

// The tensors that it gives, through compile(). `copies`: what it writes to is a copy.
std::vector<Tensor> call_compiled(const Bound& bound, bool copies) {
  std::vector<Tensor> inputs;
  for (const Value& value : bound.values) value.each_tensor([&](const Tensor& each) { inputs.push_back(each); });
  auto function = compile(
      [&](const std::vector<Tensor>& given) {
        size_t next = 0;
        dispatch::Values with;
        for (size_t at = 0; at < bound.values.size(); ++at) {
          const auto& alias = bound.op->schema().arguments[at].alias;
          with.push_back(bound.values[at].map_tensors([&](const Tensor& each) {
            if (!each.defined()) return each;
            const Tensor& taken = given[next++];
            return copies && alias && alias->write ? taken.clone() : taken;
          }));
        }
        std::vector<Tensor> made;
        for (const Value& value : dispatch::call_boxed(*bound.op, with))
          value.each_tensor([&](const Tensor& each) { made.push_back(each); });
        return made;
      },
      {.dynamic = Dynamic::On});
  return function(inputs);
}

// How far two gradients are apart at most: what is added up loses by its largest terms.
std::string compare_gradients(const Tensor& got, const Tensor& expected) {
  if (got.dtype() != expected.dtype() || !std::ranges::equal(got.sizes(), expected.sizes()))
    return fmt::format("{} instead of {}", got.description(), expected.description());
  const auto [relative, absolute] = tolerance(expected.dtype());
  Tensor mine = got.detach().to(kFloat64).contiguous(), theirs = expected.to(kFloat64).contiguous();
  double largest = 1;
  for (int64_t at = 0; at < theirs.numel().plain(); ++at)
    if (const double size = std::fabs(theirs.data<double>()[at]); std::isfinite(size))
      largest = std::max(largest, size);
  for (int64_t at = 0; at < mine.numel().plain(); ++at) {
    const double is = mine.data<double>()[at], should = theirs.data<double>()[at];
    if (is == should || (std::isnan(is) && std::isnan(should))) continue;
    if (!(std::fabs(is - should) <= absolute * largest + relative * std::fabs(should)))
      return fmt::format("element {}: {} instead of {} ({})", at, is, should, got.description());
  }
  return "";
}

// Empty: as PyTorch's. "?": there is no such operator.
std::string replay_gradients(const json& line, const Data& data, bool compiled) {
  Bound bound = bind(line, data);
  if (!bound.op) return "?";
  for (const Tensor& each : bound.floats) each.set_requires_grad();
  std::vector<Tensor> results, of, cotangents, gradients;
  try {
    if (compiled) {
      results = call_compiled(bound, true);
    } else {
      dispatch::Values given = bound.values;
      for (size_t at = 0; at < given.size(); ++at)
        if (const auto& alias = bound.op->schema().arguments[at].alias; alias && alias->write)
          given[at] = given[at].map_tensors([](const Tensor& each) { return each.defined() ? each.clone() : each; });
      for (const Value& value : dispatch::call_boxed(*bound.op, given))
        value.each_tensor([&](const Tensor& each) { results.push_back(each); });
    }
    std::erase_if(results, [](const Tensor& each) { return !each.defined(); });
    for (size_t at = 0; at < line.at("of").size(); ++at) {
      const size_t result = line["of"][at];
      if (result >= results.size()) return fmt::format("gradients: there is no result {}", result);
      if (!results[result].requires_grad()) return fmt::format("gradients: result {} has no history", result);
      of.push_back(results[result]);
      cotangents.push_back(read_tensor(line.at("cotangents")[at].at("tensor"), data));
    }
    gradients = autograd::grad(of, bound.floats, cotangents, false, false, true);
  } catch (const Error& raised) {
    return std::string("gradients: refuses: ") + raised.what();
  }
  for (size_t at = 0; at < gradients.size(); ++at) {
    const json& text = line.at("gradients").at(at);
    // No gradient, and one of zeros, are the same.
    if (text.is_null() && !gradients[at].defined()) continue;
    const Tensor expected = text.is_null() ? zeros_like(bound.floats[at]) : read_tensor(text.at("tensor"), data);
    const Tensor got = gradients[at].defined() ? gradients[at] : zeros_like(bound.floats[at]);
    if (std::string differs = compare_gradients(got, expected); !differs.empty())
      return fmt::format("gradient {}: {}", at, differs);
  }
  return "";
}

// Likewise.
std::string replay(const json& line, const Data& data, bool compiled) {
  if (line.contains("gradients")) return replay_gradients(line, data, compiled);
  std::vector<Value> results;
  std::string error;
  Bound bound;
  try {
    bound = bind(line, data);
    if (!bound.op) return "?";
    if (compiled)
      for (Tensor& each : call_compiled(bound, false)) results.emplace_back(std::move(each));
    else
      for (const Value& value : dispatch::call_boxed(*bound.op, bound.values)) results.push_back(value.own());
  } catch (const Error& raised) {
    error = raised.what();
  }
  if (line.contains("raises"))
    return error.empty() ? "runs what PyTorch refuses: " + line["raises"].get<std::string>() : "";
  if (!error.empty()) return "refuses: " + error;
  std::vector<Tensor> got, expected;
  for (const Value& value : results)
    if (value.is_number() && !compiled)
      got.push_back(value.tag() == Value::Tag::Real ? tensor(value.real(), kFloat64) : tensor(value.integer()));
    else
      value.each_tensor([&](const Tensor& each) { got.push_back(each); });
  const std::function<void(const json&)> expect = [&](const json& text) {
    if (text.is_array())
      for (const json& each : text) expect(each);
    else if (text.is_object() && text.contains("tensor"))
      expected.push_back(read_tensor(text["tensor"], data));
    else if (text.is_object() && text.contains("real") && !compiled)
      expected.push_back(tensor(read_real(text["real"]), kFloat64));
    else if ((text.is_number() || text.is_boolean()) && !compiled)
      expected.push_back(text.is_boolean() ? tensor(int64_t{text.get<bool>()}) : tensor(text.get<int64_t>()));
  };
  expect(line.at("results"));
  if (got.size() != expected.size()) return fmt::format("{} results instead of {}", got.size(), expected.size());
  const bool values = line.at("values");
  std::vector<Tensor> exact;
  if (line.contains("wide")) {
    std::swap(exact, expected);
    expect(line["wide"]);
    std::swap(exact, expected);
  }
  for (size_t at = 0; at < got.size(); ++at) {
    std::string text = compare(got[at], expected[at], values, line.value("any_sign", false));
    if (text.starts_with("element") && at < exact.size() && is_rounded(got[at], exact[at])) continue;
    if (!text.empty() && at == 1 && line.value("ties", false) && !compiled) {
      const int dim = bound.op->schema().argument_index("dim");
      if (names_elements(bound.values[0].tensor(), bound.values[static_cast<size_t>(dim)].integer(), got[0], got[1]))
        continue;
    }
    if (!text.empty()) return fmt::format("result {}: {}", at, text);
  }
  expected.clear();
  expect(line.at("after"));
  for (size_t at = 0; at < expected.size() && at < bound.written.size(); ++at)
    if (std::string text = compare(bound.written[at], expected[at], values); !text.empty())
      return fmt::format("written argument {}: {}", at, text);
  return "";
}

struct Tally {
  int64_t right = 0, wrong = 0, missing = 0;
  int64_t gradients_right = 0, gradients_wrong = 0;
};

// One line per call, from `first` on, into the pipe: what differs, without line breaks.
[[noreturn]] void run_child(const std::vector<std::string>& lines, size_t first, const Data& data, bool compiled,
                            int pipe_end) {
  for (size_t at = first; at < lines.size(); ++at) {
    alarm(120);
    std::string text;
    try {
      text = replay(json::parse(lines[at]), data, compiled);
    } catch (const std::exception& error) {
      text = std::string("breaks: ") + error.what();
    }
    for (char& letter : text)
      if (letter == '\n') letter = ' ';
    text = text.substr(0, 400) + '\n';
    if (write(pipe_end, text.data(), text.size()) < 0) _exit(1);
  }
  _exit(0);
}

int main(int argc, char** argv) {
  std::string folder, only, known_file;
  bool compiled = false;
  int64_t most = 2;
  for (int at = 1; at < argc; ++at) {
    const std::string word = argv[at];
    if (word == "--compiled")
      compiled = true;
    else if (word == "--only" && at + 1 < argc)
      only = argv[++at];
    else if (word == "--known" && at + 1 < argc)
      known_file = argv[++at];
    else if (word == "--most" && at + 1 < argc)
      most = std::atoll(argv[++at]);
    else if (folder.empty() && word[0] != '-')
      folder = word;
    else
      folder.clear(), at = argc;
  }
  if (folder.empty()) {
    fmt::print(stderr, "usage: parity FOLDER [--compiled] [--only WORD] [--most N] [--known FILE]\n");
    return 2;
  }
  const Data data(folder + "/data.bin");
  std::vector<std::string> lines, names;
  std::vector<bool> of_gradients;
  std::ifstream file(folder + "/calls.jsonl");
  for (std::string line; std::getline(file, line);) {
    // {"op":"NAME",…
    std::string name = line.substr(7, line.find('"', 7) - 7);
    if (name.find(only) == name.npos) continue;
    names.push_back(std::move(name));
    of_gradients.push_back(line.find("\"gradients\":[") != line.npos);
    lines.push_back(std::move(line));
  }
  std::map<std::string, Tally> tallies;
  std::map<std::string, std::vector<std::string>> shown;
  size_t done = 0;
  const auto note = [&](const std::string& text) {
    Tally& tally = tallies[names[done]];
    const bool differentiates = of_gradients[done];
    if (text.empty()) {
      ++(differentiates ? tally.gradients_right : tally.right);
    } else if (text == "?") {
      ++tally.missing;
    } else {
      ++(differentiates ? tally.gradients_wrong : tally.wrong);
      auto& list = shown[names[done]];
      if (static_cast<int64_t>(list.size()) < most) list.push_back(text);
    }
    if (++done % 5000 == 0) fmt::print(stderr, "{} of {} calls\n", done, lines.size());
  };
  while (done < lines.size()) {
    int ends[2];
    if (pipe(ends) != 0) return 2;
    const pid_t child = fork();
    if (child == 0) run_child(lines, done, data, compiled, ends[1]);
    close(ends[1]);
    FILE* input = fdopen(ends[0], "r");
    char* line = nullptr;
    size_t room = 0;
    for (ssize_t length; (length = getline(&line, &room, input)) > 0;)
      note(std::string(line, static_cast<size_t>(length - 1)));
    std::free(line);
    std::fclose(input);
    int status = 0;
    waitpid(child, &status, 0);
    if (done < lines.size())
      note(WIFSIGNALED(status) ? fmt::format("ends the process by signal {}", WTERMSIG(status)) : "ends the process");
  }
  std::map<std::string, std::string> known;
  std::ifstream reasons(known_file);
  for (std::string line; std::getline(reasons, line);)
    if (const size_t colon = line.find(": "); !line.starts_with('#') && colon != line.npos)
      known[line.substr(0, colon)] = line.substr(colon + 2);
  int64_t exist = 0, right = 0, calls = 0, whole = 0, overloads = 0, gradients_right = 0, gradients = 0;
  for (const auto& [name, tally] : tallies) {
    const bool is_there = tally.missing == 0, is_called = tally.right + tally.wrong + tally.missing > 0;
    overloads += is_called;
    exist += is_there && is_called;
    right += tally.right;
    calls += is_there ? tally.right + tally.wrong : 0;
    gradients_right += tally.gradients_right;
    gradients += is_there ? tally.gradients_right + tally.gradients_wrong : 0;
    whole += is_there && is_called && tally.wrong + tally.gradients_wrong == 0;
    if (tally.wrong > 0) fmt::print("{}: {} of {} wrong\n", name, tally.wrong, tally.right + tally.wrong);
    if (tally.gradients_wrong > 0)
      fmt::print("{}: {} of {} gradients wrong\n", name, tally.gradients_wrong,
                 tally.gradients_right + tally.gradients_wrong);
    if (const auto found = known.find(name); found != known.end() && tally.wrong + tally.gradients_wrong > 0)
      fmt::print("    known: {}\n", found->second);
    for (const std::string& text : shown[name]) fmt::print("    {}\n", text);
  }
  for (const auto& [name, reason] : known)
    if (const auto found = tallies.find(name);
        found != tallies.end() && found->second.wrong + found->second.gradients_wrong == 0)
      fmt::print("{}: known to differ, and does not\n", name);
  for (const auto& [name, tally] : tallies)
    if (tally.missing > 0) fmt::print("{}: missing ({} calls)\n", name, tally.missing);
  fmt::print("parity: overloads {}/{}, calls right {}/{}, operators wholly right {}/{}, gradients right {}/{}\n", exist,
             overloads, right, calls, whole, exist, gradients_right, gradients);
  return 0;
}

}  // namespace
}  // namespace tenon::parity

int main(int argc, char** argv) {
  try {
    return tenon::parity::main(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "parity: {}\n", error.what());
    return 2;
  }
}

// A failed check as a program: what was called, with arguments in its text or in a file beside it.
#include "checks.h"

#include <tenon/autograd/grad_mode.h>
#include <tenon/generated/ops.h>
#include <tenon/opcheck/mode.h>
#include <tenon/support/hash.h>

#include <filesystem>

namespace tenon::opcheck {
namespace {

constexpr int64_t kMostElements = 256;  // of a tensor that is written out; a larger one is made anew

std::string constant_of(Dtype dtype) {
  std::string text(name(dtype));  // "float32" → "kFloat32"
  if (text == "bfloat16") return "kBFloat16";
  if (text == "uint8") return "kUInt8";
  if (dtype == kFloat8E4M3FN) return "kFloat8E4M3FN";
  if (dtype == kFloat8E5M2) return "kFloat8E5M2";
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return "k" + text;
}

std::string list_of(std::span<const int64_t> numbers) { return fmt::format("{{{}}}", fmt::join(numbers, ", ")); }

// An expression that makes the tensor: its values, or for many of them others of the same sizes.
std::string tensor_text(const Tensor& tensor) {
  autograd::NoGrad off;
  if (!tensor.defined()) return "Tensor()";
  std::string dtype = constant_of(tensor.dtype()), text;
  int64_t count = tensor.numel().plain();
  Tensor plain = tensor.detach().to(kFloat64).contiguous();
  if (count > kMostElements) {
    text = fmt::format("randn({}).to({})", list_of(tensor.sizes()), dtype);
  } else {
    const double* values = plain.data<double>();
    text = fmt::format("tensor(std::vector<double>{{{}}}, {}).view({})",
                       fmt::join(std::span<const double>(values, static_cast<size_t>(count)), ", "), dtype,
                       list_of(tensor.sizes()));
  }
  if (!tensor.is_contiguous())
    text = fmt::format("empty_strided({}, {}, {}).copy_({})", list_of(tensor.sizes()), list_of(tensor.strides()), dtype,
                       text);
  return text;
}

// Lines that make one argument, and the expression that stands for it in the call.
struct Written {
  std::string lines, expression;
};

Written write_value(const std::string& name, const Value& value) {
  using Tag = Value::Tag;
  auto list = [&](std::string_view type, const std::string& items, std::string_view wrap) {
    return Written{fmt::format("  std::vector<{}> {} = {{{}}};\n", type, name, items),
                   fmt::format(fmt::runtime(wrap), name)};
  };
  auto joined = [](const auto& items, auto text) {
    std::vector<std::string> parts;
    for (const auto& item : items) parts.push_back(text(item));
    return fmt::format("{}", fmt::join(parts, ", "));
  };
  switch (value.tag()) {
    case Tag::Tensor: {
      Written made{fmt::format("  Tensor {} = {};\n", name, tensor_text(value.tensor())), name};
      if (value.tensor().defined() && value.tensor().is_floating_point() && value.tensor().requires_grad())
        made.lines += fmt::format("  {}.set_requires_grad();\n", name);
      return made;
    }
    case Tag::Tensors: return list("Tensor", joined(value.tensors(), tensor_text), "dispatch::Value({})");
    case Tag::OptionalTensors:
      return list("std::optional<Tensor>",
                  joined(value.optional_tensors(),
                         [](const std::optional<Tensor>& each) { return each ? tensor_text(*each) : "std::nullopt"; }),
                  "dispatch::Value({})");
    case Tag::Ints:
    case Tag::SymInts:
      return list("int64_t", joined(value.ints(), [](int64_t each) { return std::to_string(each); }),
                  "dispatch::Value(std::span<const int64_t>({}))");
    case Tag::Reals:
      return list("double", joined(value.reals(), [](double each) { return fmt::format("{}", each); }),
                  "dispatch::Value({})");
    case Tag::Bools:
      return list("bool", joined(value.bools(), [](bool each) { return each ? "true" : "false"; }),
                  "dispatch::Value({})");
    case Tag::Dtype: return {"", fmt::format("dispatch::Value({})", constant_of(value.dtype()))};
    case Tag::Device: return {"", fmt::format("dispatch::Value(parse_device(\"{}\"))", value.device().str())};
    case Tag::String: return {"", fmt::format("dispatch::Value(\"{}\")", value.string())};
    case Tag::Real: return {"", fmt::format("dispatch::Value(double({}))", value.real())};
    case Tag::Int: return {"", fmt::format("dispatch::Value({})", value.integer())};
    case Tag::Bool: return {"", fmt::format("dispatch::Value({})", value.boolean())};
    case Tag::Layout: return {"", "dispatch::Value(Layout::Strided)"};
    case Tag::MemoryFormat:
      switch (value.memory_format()) {
        case MemoryFormat::Contiguous: return {"", "dispatch::Value(MemoryFormat::Contiguous)"};
        case MemoryFormat::Preserve: return {"", "dispatch::Value(MemoryFormat::Preserve)"};
        case MemoryFormat::ChannelsLast: return {"", "dispatch::Value(MemoryFormat::ChannelsLast)"};
        case MemoryFormat::ChannelsLast3d: return {"", "dispatch::Value(MemoryFormat::ChannelsLast3d)"};
      }
      return {"", "dispatch::Value()"};
    default: return {"", "dispatch::Value()"};
  }
}

constexpr std::string_view kLine = "// =========================================================\n";

}  // namespace

std::string reproducer(const std::string& check, const Subject& subject, std::span<const Value> args,
                       std::span<const dispatch::Keyword> kwargs, const ReproducerOptions& options) {
  const Operator& op = subject.op();
  std::string text;
  text += kLine;
  text += "// BEGIN REPRODUCER\n";
  text += kLine;
  text +=
      "#include <tenon/opcheck/mode.h>\n#include <tenon/tenon.h>\n\nusing namespace tenon;\n\nint main() {\n"
      "  // Link the library that has the operator, or load it here: library::load_library(\"…\");\n";
  std::string given;
  if (options.save_data) {
    std::filesystem::path folder =
        options.folder.empty() ? std::filesystem::temp_directory_path() : std::filesystem::path(options.folder);
    std::string described = op.name() + check;
    for (const Value& value : args) described += value.str();
    std::string path = (folder / ("opcheck_" + fingerprint(described).hex() + ".safetensors")).string();
    if (!options.dry_run) save_arguments(path, args, kwargs);
    text += fmt::format("  opcheck::SavedArguments saved = opcheck::load_arguments(\"{}\");\n", path);
    given = "saved.args, saved.keywords()";
  } else {
    std::vector<std::string> positional, keywords;
    for (size_t at = 0; at < args.size(); ++at) {
      Written made = write_value(fmt::format("arg{}", at), args[at]);
      text += made.lines;
      positional.push_back(made.expression);
    }
    for (const dispatch::Keyword& keyword : kwargs) {
      Written made = write_value(std::string(keyword.name) + "_", keyword.value);
      text += made.lines;
      keywords.push_back(fmt::format("{{\"{}\", {}}}", keyword.name, made.expression));
    }
    given = fmt::format("{{{}}}, {{{}}}", fmt::join(positional, ", "), fmt::join(keywords, ", "));
  }
  text += fmt::format("  library::opcheck(\"{}\", {}, {{.tests = {{\"{}\"}}}});\n}}\n", op.name(), given, check);
  text += kLine;
  text += "// END REPRODUCER\n";
  text += kLine;
  return text;
}

}  // namespace tenon::opcheck

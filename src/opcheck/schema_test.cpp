// test_schema: the call against the annotations of the schema. What was changed is seen by version and by contents,
// what aliases by storage.
#include "checks.h"
#include "copies.h"

#include <tenon/autograd/grad_mode.h>

#include <cstring>
#include <optional>

namespace tenon::opcheck {
namespace {

// One tensor of an argument or a result.
struct Part {
  size_t at;                   // which argument or result
  std::optional<size_t> item;  // of a list
  Tensor tensor;
};

std::vector<Part> parts_of(std::span<const Value> values) {
  std::vector<Part> parts;
  for (size_t at = 0; at < values.size(); ++at) {
    bool list = values[at].tag() == Value::Tag::Tensors || values[at].tag() == Value::Tag::OptionalTensors;
    size_t item = 0;
    values[at].each_tensor([&](const Tensor& tensor) {
      if (tensor.defined()) parts.push_back({at, list ? std::optional(item) : std::nullopt, tensor});
      ++item;
    });
  }
  return parts;
}

std::string name_of(const schema::Schema& schema, const Part& part) {
  const std::string& name = schema.arguments[part.at].name;
  return part.item ? fmt::format("{}[{}]", name, *part.item) : name;
}

bool has_memory(const Tensor& tensor) { return tensor.numel().plain() > 0; }

bool shares(const Tensor& a, const Tensor& b) { return has_memory(a) && has_memory(b) && a.is_same_storage(b); }

bool sets_meet(const std::optional<schema::Alias>& a, const std::optional<schema::Alias>& b) {
  if (!a || !b) return false;
  auto wild = [](const std::vector<std::string>& set) { return std::find(set.begin(), set.end(), "*") != set.end(); };
  for (const auto* left : {&a->before, &a->after})
    for (const auto* right : {&b->before, &b->after}) {
      if (wild(*left) || wild(*right)) return true;
      for (const std::string& name : *left)
        if (std::find(right->begin(), right->end(), name) != right->end()) return true;
    }
  return false;
}

// The bytes of the elements, in order.
std::string contents(const Tensor& tensor) {
  autograd::NoGrad off;
  Tensor plain = tensor.detach().clone(MemoryFormat::Contiguous);
  return {static_cast<const char*>(plain.raw_data()),
          static_cast<size_t>(plain.numel().plain() * plain.element_size())};
}

void check_mutation(const Operator& op, const std::vector<Part>& arguments, const std::vector<std::string>& before,
                    const std::vector<int64_t>& versions) {
  const schema::Schema& schema = op.schema();
  auto declared = [&](const Part& part) {
    return schema.arguments[part.at].alias && schema.arguments[part.at].alias->write;
  };
  for (size_t at = 0; at < arguments.size(); ++at) {
    const Part& part = arguments[at];
    bool changed =
        contents(part.tensor) != before[at] || (part.tensor.impl()->version && part.tensor.version() != versions[at]);
    // Memory that another argument may be written through is no secret.
    bool allowed = std::any_of(arguments.begin(), arguments.end(), [&](const Part& other) {
      return declared(other) && (other.tensor.is(part.tensor) || shares(other.tensor, part.tensor));
    });
    if (changed && !allowed)
      fail(
          "[{}] Argument {} is not defined as mutable but was mutated: write to a clone, or declare it in the schema "
          "as {} (custom_op: .mutates = {{\"{}\"}}): {}",
          op.name(), name_of(schema, part), "Tensor(a!)", schema.arguments[part.at].name, schema.str());
  }
}

void check_aliases(const Operator& op, const std::vector<Part>& arguments, const std::vector<Part>& results) {
  const schema::Schema& schema = op.schema();
  for (const Part& result : results)
    for (const Part& argument : arguments) {
      bool same = result.tensor.is(argument.tensor);
      if (!same && !shares(result.tensor, argument.tensor)) continue;
      if (sets_meet(schema.returns[result.at].alias, schema.arguments[argument.at].alias)) continue;
      fail(
          "[{}] Argument {} is not defined to alias output but was aliasing: output {} {}; return a clone, or declare "
          "both as Tensor(a): {}",
          op.name(), name_of(schema, argument), result.at, same ? "is that very tensor" : "looks into its memory",
          schema.str());
    }
  for (size_t a = 0; a < results.size(); ++a)
    for (size_t b = a + 1; b < results.size(); ++b)
      if (shares(results[a].tensor, results[b].tensor) &&
          !sets_meet(schema.returns[results[a].at].alias, schema.returns[results[b].at].alias))
        fail(
            "[{}] Outputs {} and {} alias unexpectedly: the schema does not say that they share memory; return a "
            "clone: "
            "{}",
            op.name(), a, b, schema.str());
}

}  // namespace

void schema_test(const Operator& op, std::span<const Value> args) {
  Values copies = copy_arguments(args);
  std::vector<Part> arguments = parts_of(copies);
  std::vector<std::string> before;
  std::vector<int64_t> versions;
  for (const Part& part : arguments) {
    before.push_back(contents(part.tensor));
    versions.push_back(part.tensor.impl()->version ? part.tensor.version() : 0);
  }
  // A leaf that requires grad may be written to only where nothing is recorded.
  std::optional<autograd::NoGrad> off;
  if (op.schema().is_mutable()) off.emplace();
  dispatch::Results results = dispatch::call_boxed(op, copies);
  TENON_CHECK(results.size() == op.schema().returns.size(), "[{}] gave {} results, its schema says {}: {}", op.name(),
              results.size(), op.schema().returns.size(), op.schema().str());
  check_mutation(op, arguments, before, versions);
  // Of an operator that is nothing but calls of others, those are what everybody sees: what it returns is theirs.
  if (!op.is_composite_implicit()) check_aliases(op, arguments, parts_of(results.span()));
}

}  // namespace tenon::opcheck

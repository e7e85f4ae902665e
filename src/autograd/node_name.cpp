#include "autograd/node_name.h"
#include "autograd/row_plan.h"

#include <array>
#include <cctype>

namespace tenon::autograd {
namespace {

// Overloads of one operator are numbered in PyTorch; those that are not its first.
constexpr std::array<std::pair<std::string_view, int>, 27> kNumbers = {{
    {"scatter.value", 1},
    {"_native_batch_norm_legit.no_stats", 1},
    {"remainder.Tensor", 1},
    {"fmod.Tensor", 1},
    {"div.Tensor_mode", 2},
    {"div.Scalar_mode", 3},
    {"clamp", 1},
    {"masked_fill.Tensor", 1},
    {"lerp.Tensor", 1},
    {"max", 1},
    {"min", 1},
    {"prod.dim_int", 1},
    {"norm.ScalarOpt_dim", 1},
    {"add.Scalar", 1},
    {"sub.Scalar", 1},
    {"rsub.Scalar", 1},
    {"mul.Scalar", 1},
    {"div.Scalar", 1},
    {"pow.Tensor_Tensor", 1},
    {"pow.Scalar", 2},
    {"fill.Tensor", 1},
    {"squeeze.dim", 1},
    {"squeeze.dims", 2},
    {"sum.dim_IntList", 1},
    {"mean.dim", 1},
    {"any.dims", 2},
    {"all.dims", 2},
}};

// Operators with a backward step of their own in PyTorch that are a case of another one here.
const std::string* special_case(const RecordedCall& call) {
  static const auto &transposed = *new std::string("TBackward0"), &whole_sum = *new std::string("SumBackward0");
  const schema::Schema& schema = call.row->schema;
  using Tag = dispatch::Value::Tag;
  if (schema.name == "permute" && call.arguments[1].tag() == Tag::Ints) {
    Ints dims = call.arguments[1].ints();
    if (dims.size() == 2 && dims[0] == 1 && dims[1] == 0) return &transposed;
  }
  if (schema.name == "sum" && (call.arguments[1].is_none() || call.arguments[1].ints().size() == 0)) return &whole_sum;
  return nullptr;
}

}  // namespace

std::string name_of_step(const ops::Row& row) {
  std::string name = row.schema.name;
  if (name.ends_with('_')) name.pop_back();
  if (name == "copy") return "CopyBackwards";
  if (name == "to") return "ToCopyBackward0";
  if (name == "_strided_view") return "AsStridedBackward0";
  std::string overload = row.schema.overload.empty() ? name : name + "." + row.schema.overload;
  std::string camel;
  bool upper = true;
  for (char letter : name) {
    if (letter != '_') camel += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(letter))) : letter;
    // "max_pool2d" is "MaxPool2D".
    upper = letter == '_' || std::isdigit(static_cast<unsigned char>(letter));
  }
  int number = 0;
  for (const auto& [known, its] : kNumbers)
    if (known == overload) number = its;
  return camel + "Backward" + std::to_string(number);
}

const std::string& node_name(const RecordedCall& call) {
  const ops::Row& row = *call.row;
  if (row.schema.name == "permute" || row.schema.name == "sum")
    if (const std::string* special = special_case(call)) return *special;
  return plan_of(row).node_name;
}

}  // namespace tenon::autograd

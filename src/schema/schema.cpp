#include <tenon/schema/schema.h>

#include <algorithm>

namespace tenon::schema {

namespace {

bool intersect(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return std::any_of(a.begin(), a.end(),
                     [&](const std::string& name) { return std::find(b.begin(), b.end(), name) != b.end(); });
}

}  // namespace

bool Type::is_tensor_like() const {
  const Type* type = this;
  while (!type->element.empty()) type = &type->element[0];
  return type->kind == Kind::Tensor;
}

int Schema::argument_index(std::string_view argument) const {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].name == argument) return static_cast<int>(i);
  }
  return -1;
}

std::vector<int> Schema::mutated_arguments() const {
  std::vector<int> mutated;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].alias && arguments[i].alias->write) mutated.push_back(static_cast<int>(i));
  }
  return mutated;
}

bool Schema::is_mutable() const { return !mutated_arguments().empty(); }

bool Schema::is_view() const {
  for (const Argument& result : returns) {
    if (!result.alias) continue;
    for (const Argument& argument : arguments) {
      if (!argument.alias || argument.alias->write) continue;
      if (intersect(result.alias->before, argument.alias->before) ||
          intersect(result.alias->before, argument.alias->after)) {
        return true;
      }
    }
  }
  return false;
}

bool Schema::is_functional() const { return !is_mutable() && !is_view(); }

}  // namespace tenon::schema

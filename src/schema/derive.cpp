#include <tenon/schema/derive.h>

#include <tenon/support/error.h>

#include <algorithm>

namespace tenon::schema {

namespace {

bool is_tensor(const Argument& argument) { return argument.type.kind == Kind::Tensor; }

// A functional schema has at most dead annotations; they would meet the ones that a form adds.
Schema without_aliases(Schema schema) {
  for (Argument& argument : schema.arguments) argument.alias.reset();
  for (Argument& result : schema.returns) result.alias.reset();
  return schema;
}

Alias written(size_t index) {
  const std::string name = index < 26 ? std::string(1, static_cast<char>('a' + index)) : fmt::format("a{}", index);
  return Alias{{name}, {name}, true};
}

bool may_derive(const Schema& schema) { return schema.is_functional() && !schema.name.ends_with('_'); }

}  // namespace

bool has_self(const Schema& schema) {
  return !schema.arguments.empty() && is_tensor(schema.arguments[0]) && schema.arguments[0].name == "self";
}

bool has_inplace_form(const Schema& schema) {
  return may_derive(schema) && has_self(schema) && schema.returns.size() == 1 && is_tensor(schema.returns[0]);
}

bool has_out_form(const Schema& schema) {
  return may_derive(schema) && !schema.returns.empty() &&
         std::all_of(schema.returns.begin(), schema.returns.end(), is_tensor);
}

Schema inplace_form(const Schema& schema) {
  TENON_CHECK(
      has_inplace_form(schema),
      "[schema] expected a functional operator on `Tensor self` that returns one Tensor, to derive its in-place "
      "form; got `{}`",
      schema.str());
  Schema form = without_aliases(schema);
  form.name += "_";
  form.arguments[0].alias = written(0);
  form.returns = {Argument{"", Type{Kind::Tensor, {}, {}}, written(0), std::nullopt, false}};
  return form;
}

Schema out_form(const Schema& schema) {
  TENON_CHECK(has_out_form(schema),
              "[schema] expected a functional operator that returns Tensors, to derive its out form; got `{}`",
              schema.str());
  Schema form = without_aliases(schema);
  form.overload += form.overload.empty() ? "out" : "_out";
  for (size_t i = 0; i < form.returns.size(); ++i) {
    const std::string name = form.returns.size() == 1 ? "out" : fmt::format("out{}", i);
    TENON_CHECK(schema.argument_index(name) < 0, "[schema] the out form of `{}` has an argument `{}` already",
                schema.str(), name);
    form.arguments.push_back(Argument{name, Type{Kind::Tensor, {}, {}}, written(i), std::nullopt, true});
    form.returns[i].alias = written(i);
  }
  return form;
}

}  // namespace tenon::schema

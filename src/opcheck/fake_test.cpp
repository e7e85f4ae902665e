// test_faketensor: what the fake implementation says of the results, against what the kernel gives.
#include "checks.h"
#include "copies.h"

#include <tenon/autograd/grad_mode.h>
#include <tenon/core/random.h>
#include <tenon/fake/dynamic_size.h>
#include <tenon/fake/fake.h>

#include <set>

namespace tenon::opcheck {
namespace {

// The fake's symbols get their values from the sizes that the kernel gave; every other place must then agree.
class Symbols {
 public:
  explicit Symbols(Ref<sym::ShapeEnv> env) : env_(std::move(env)) {}

  void bind(const SymInt& said, int64_t given) {
    if (!said.is_symbolic() || !said.expr().is_symbol()) return;
    int32_t id = said.expr().symbol_id();
    if (!bound_.insert(id).second) return;
    sym::Range range = env_->pool().range(said.expr());
    if (given < range.min || given > range.max)
      out_of_range_ = fmt::format("the fake says that {} lies in [{}, {}], the kernel gave {}", said.str(), range.min,
                                  range.max == sym::Range::kMax ? "inf" : std::to_string(range.max), given);
    else
      env_->give_hint(id, given);
  }
  const std::string& out_of_range() const { return out_of_range_; }
  bool is_bound(int32_t id) const { return bound_.contains(id); }

  std::optional<int64_t> value(const SymInt& said) const {
    if (!said.is_symbolic()) return said.plain();
    return env_->hint(said.expr());
  }

 private:
  Ref<sym::ShapeEnv> env_;
  std::set<int32_t> bound_;
  std::string out_of_range_;
};

std::string where(size_t result, const std::optional<size_t>& item) {
  return item ? fmt::format("result {}[{}]", result, *item) : fmt::format("result {}", result);
}

bool agrees(const Symbols& symbols, const SymInts& said, std::span<const int64_t> given) {
  if (said.size() != given.size()) return false;
  for (size_t dim = 0; dim < given.size(); ++dim) {
    std::optional<int64_t> value = symbols.value(said[dim]);
    if (value && *value != given[dim]) return false;
  }
  return true;
}

// Strides of dimensions of one element, or of tensors without any, say nothing.
bool strides_agree(const Symbols& symbols, const Tensor& real, const SymInts& said) {
  for (int64_t size : real.sizes())
    if (size == 0) return true;
  for (size_t dim = 0; dim < real.sizes().size(); ++dim) {
    std::optional<int64_t> value = symbols.value(said[dim]);
    if (real.sizes()[dim] > 1 && value && *value != real.strides()[dim]) return false;
  }
  return true;
}

void compare_tensors(const Operator& op, const std::string& at, const Tensor& real, const Tensor& fake,
                     const Symbols& symbols) {
  auto refuse = [&](std::string_view what, const std::string& given, const std::string& said) {
    throw AssertionError(fmt::format(
        "[{}] {} {} and {} are not equal! ({}: the kernel gave {}, the fake implementation {}); see register_fake",
        op.name(), what, given, said, at, real.defined() ? real.description() : "nothing",
        fake.defined() ? fake.description() : "nothing"));
  };
  if (real.defined() != fake.defined())
    refuse("Definedness", real.defined() ? "defined" : "undefined", fake.defined() ? "defined" : "undefined");
  if (!real.defined()) return;
  if (!agrees(symbols, fake.sym_sizes(), real.sizes())) refuse("Shapes", str(real.sym_sizes()), str(fake.sym_sizes()));
  if (real.dtype() != fake.dtype()) refuse("Dtypes", std::string(name(real.dtype())), std::string(name(fake.dtype())));
  if (real.device() != fake.device()) refuse("Devices", real.device().str(), fake.device().str());
  if (!strides_agree(symbols, real, fake.sym_strides()))
    refuse("Strides", str(real.sym_strides()), str(fake.sym_strides()));
}

void bind_sizes(const Tensor& real, const Tensor& fake, Symbols& symbols) {
  if (!real.defined() || !fake.defined() || real.dim() != fake.dim()) return;
  for (size_t dim = 0; dim < real.sizes().size(); ++dim) symbols.bind(fake.sym_sizes()[dim], real.sizes()[dim]);
}

// Which arguments share memory with each tensor of the results.
std::vector<std::set<size_t>> aliases(std::span<const Value> args, std::span<const Value> results) {
  std::vector<Tensor> arguments = tensors_of(args);
  std::vector<std::set<size_t>> found;
  for (const Tensor& result : tensors_of(results)) {
    found.emplace_back();
    for (size_t at = 0; at < arguments.size(); ++at)
      if (arguments[at].is_same_storage(result)) found.back().insert(at);
  }
  return found;
}

std::vector<Tensor> tensors_in(const Value& value) {
  std::vector<Tensor> list;
  value.each_tensor([&](const Tensor& tensor) { list.push_back(tensor); });
  return list;
}

bool empty_result(std::span<const Value> results) {
  for (const Tensor& tensor : tensors_of(results))
    if (tensor.numel().plain() == 0) return true;
  return false;
}

}  // namespace

void fake_test(const Operator& op, std::span<const Value> args) {
  autograd::NoGrad off;
  Values real_args = copy_arguments(args);
  dispatch::Results real = dispatch::call_boxed(op, real_args);
  Values fake_args = fake_arguments(args);
  auto env = make_ref<sym::ShapeEnv>();
  dispatch::Results fake;
  std::vector<int32_t> fresh;
  {
    fake::FakeMode mode;
    fake::DynamicSizes sizes(env);
    fake = dispatch::call_boxed(op, fake_args);
    fresh = env->take_fresh();
  }
  auto refuse = [&](const std::string& why) {
    throw AssertionError(fmt::format("[{}] {}; see register_fake", op.name(), why));
  };
  if (real.size() != fake.size())
    refuse(fmt::format("the kernel gave {} results, the fake implementation {}", real.size(), fake.size()));
  Symbols symbols(env);
  for (size_t at = 0; at < real.size(); ++at) {
    std::vector<Tensor> given = tensors_in(real[at]), said = tensors_in(fake[at]);
    if (given.size() != said.size())
      refuse(fmt::format("result {}: the kernel gave {} tensors, the fake implementation {}", at, given.size(),
                         said.size()));
    for (size_t item = 0; item < given.size(); ++item) bind_sizes(given[item], said[item], symbols);
    if (real[at].tag() == Value::Tag::Int && fake[at].tag() == Value::Tag::Int)
      symbols.bind(fake[at].sym_int(), real[at].integer());
  }
  if (!symbols.out_of_range().empty()) refuse(symbols.out_of_range());
  for (size_t at = 0; at < real.size(); ++at) {
    std::vector<Tensor> given = tensors_in(real[at]), said = tensors_in(fake[at]);
    bool list = real[at].tag() == Value::Tag::Tensors || real[at].tag() == Value::Tag::OptionalTensors;
    for (size_t item = 0; item < given.size(); ++item)
      compare_tensors(op, where(at, list ? std::optional(item) : std::nullopt), given[item], said[item], symbols);
    if (real[at].is_number() && !fake[at].is_symbolic() && fake[at].is_number() && real[at].str() != fake[at].str())
      refuse(
          fmt::format("result {}: the kernel gave {}, the fake implementation {}: leave a number that depends on data "
                      "to a symbol",
                      at, real[at].str(), fake[at].str()));
  }
  // A symbol that no size is by itself gets no value at run time.
  for (int32_t id : fresh) {
    bool number = false;
    for (const Value& value : fake) number = number || (value.is_symbolic() && value.tag() != Value::Tag::Int);
    if (!symbols.is_bound(id) && !number)
      refuse(
          fmt::format("unbound dynamic size u{}: no size of a result is this symbol by itself, so nothing tells its "
                      "value; give new_dynamic_size() as a size as it is",
                      id));
  }
  if (!empty_result(real.span()) && aliases(real_args, real.span()) != aliases(fake_args, fake.span()))
    refuse("the results of the fake implementation alias other arguments than those of the kernel");
}

}  // namespace tenon::opcheck

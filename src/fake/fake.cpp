#include "dispatch/named_errors.h"
#include "unknown_numbers.h"

#include <tenon/dispatch/registration.h>
#include <tenon/fake/dynamic_size.h>
#include <tenon/fake/fake.h>
#include <tenon/ops/row.h>

#include <algorithm>

namespace tenon::fake {

Tensor make(const SymInts& sizes, const SymInts& strides, Dtype dtype, Device device) {
  return core::make_without_data(sizes, strides, dtype, device, KeySet{DispatchKey::Fake});
}

Tensor like(const Tensor& real) { return make(real.sym_sizes(), real.sym_strides(), real.dtype(), real.device()); }

class FakeModeState {
 public:
  dispatch::IncludeKeys include{KeySet{DispatchKey::Fake}};
};

FakeMode::FakeMode() : state_(std::make_unique<FakeModeState>()) {}
FakeMode::~FakeMode() = default;

namespace {

sym::Range range_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::UInt8: return {0, 255};
    case Dtype::Int8: return {-128, 127};
    case Dtype::Int16: return {-32768, 32767};
    case Dtype::Int32: return {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
    default: return {};
  }
}

// The element of a tensor without data: a new symbol of its kind.
Scalar unknown_item(const Tensor& tensor) {
  Ref<sym::ShapeEnv> env = DynamicSizes::for_items();
  if (!env)
    throw NeedsData(
        fmt::format("[item] the value of {} is not known: a fake tensor has no data", tensor.description()));
  check(tensor.numel() == 1, fmt::format("[item] expected a tensor of one element, got {}", tensor.description()));
  if (tensor.dtype() == kBool) return Scalar(env->create_unbacked_bool());
  if (is_floating(tensor.dtype())) return Scalar(env->create_unbacked_real());
  return Scalar(env->create_unbacked(range_of(tensor.dtype())));
}

bool returns_numbers_alone(const schema::Schema& schema) {
  return !schema.returns.empty() &&
         std::none_of(schema.returns.begin(), schema.returns.end(),
                      [](const schema::Argument& result) { return result.type.is_tensor_like(); });
}

// Sizes and dtypes by the row's rules.
void run_fake(dispatch::Call& call) {
  const ops::Row* row = ops::row_of(call.op);
  if (call.op.brief_name() == "_local_scalar_dense")
    return call.results.push_back(dispatch::Value(unknown_item(call.args[0].tensor())).own());
  if (!row && dispatch::has_kernel(call.op, dispatch::KernelKey::Meta))
    return (*call.op.kernel(DispatchKey::Meta))(call);
  if (!row && give_unknown_numbers(call)) return;
  TENON_CHECK(row,
              "[{0}] There was no fake impl registered for {0}. This is necessary for compile() and tracing to work. "
              "Please use "
              "register_fake to add one.",
              call.op.name());
  // Said in guards that the shape rule records.
  struct Place {
    std::string before = sym::ShapeEnv::place();
    explicit Place(const std::string& now) { sym::ShapeEnv::set_place(now); }
    ~Place() { sym::ShapeEnv::set_place(std::move(before)); }
  } place(call.op.brief_name());
  ops::Arguments arguments(call.op, call.args);
  switch (row->kind) {
    case ops::Kind::View: {
      const Tensor& self = call.args[0].tensor();
      ops::Geometry geometry = row->view.geometry(arguments);
      call.results.push_back(core::make_view(self, geometry.sizes, geometry.strides, geometry.offset,
                                             geometry.dtype.value_or(self.dtype())));
      return;
    }
    case ops::Kind::Composite: row->decomposition(call); return;
    default: break;
  }
  std::vector<ops::TensorMeta> metas = ops::infer(*row, arguments);
  if (row->inplace()) {
    call.results.push_back(Tensor(arguments.tensor("self")));
    return;
  }
  // A meta tensor is as empty as a fake one, but says so.
  bool fake = call.keys.has(DispatchKey::Fake);
  for (ops::TensorMeta& meta : metas)
    call.results.push_back(fake ? make(meta.sizes, meta.strides, meta.dtype, meta.device)
                                : core::make_without_data(meta.sizes, meta.strides, meta.dtype, kMeta, {}));
}

// Tensors on the meta device: the same rules; a custom operator's fake implementation serves them too.
void run_meta(dispatch::Call& call) {
  const ops::Row* row = ops::row_of(call.op);
  if (!row && dispatch::has_kernel(call.op, dispatch::KernelKey::Fake))
    return (*call.op.kernel(DispatchKey::Fake))(call);
  TENON_CHECK_IMPLEMENTED(
      row, "[{}] has no fake impl or Meta kernel: register one with register_fake to call it on meta tensors",
      call.op.name());
  run_fake(call);
}

// A row knows that its size lies within others, which may be symbols.
SymInt size_in_row(const SymInt& min, const std::optional<SymInt>& max) {
  if (!max || !max->is_symbolic()) return new_dynamic_size(min, max);
  SymInt size = new_dynamic_size(min, std::nullopt);
  SymBool within = size <= *max;
  if (within.is_symbolic()) max->env()->pool().assume(within.expr());
  return size;
}

[[maybe_unused]] const bool registered = [] {
  dispatch::register_fallback(DispatchKey::Fake,
                              [](dispatch::Call& call) { dispatch::naming(call, [&] { run_fake(call); }); });
  dispatch::register_fallback(DispatchKey::Meta,
                              [](dispatch::Call& call) { dispatch::naming(call, [&] { run_meta(call); }); });
  ops::set_dynamic_size_source(size_in_row);
  return true;
}();

}  // namespace

bool give_unknown_numbers(dispatch::Call& call) {
  if (!returns_numbers_alone(call.op.schema())) return false;
  Ref<sym::ShapeEnv> env = DynamicSizes::for_items();
  if (!env) throw NeedsData(fmt::format("[{}] gives a number that only a run can tell", call.op.name()));
  for (const schema::Argument& result : call.op.schema().returns) switch (result.type.kind) {
      case schema::Kind::Float: call.results.push_back(dispatch::Value(env->create_unbacked_real()).own()); break;
      case schema::Kind::Bool: call.results.push_back(dispatch::Value(env->create_unbacked_bool()).own()); break;
      case schema::Kind::Int:
      case schema::Kind::SymInt: call.results.push_back(dispatch::Value(env->create_unbacked({})).own()); break;
      default:
        fail("[{}] returns a {}: register_fake must say which, because a graph cannot hold it", call.op.name(),
             result.type.str());
    }
  return true;
}

}  // namespace tenon::fake

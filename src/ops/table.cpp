#include "category.h"
#include "dispatch/named_errors.h"
#include "support/thread_context.h"

#include <tenon/dispatch/registration.h>
#include <tenon/ops/table.h>
#include <tenon/schema/derive.h>
#include <tenon/sym/size_rules.h>

#include <algorithm>
#include <atomic>
#include <typeinfo>

namespace tenon::ops {
namespace {

std::atomic<PieceMaker> piece_maker{nullptr};

// A gradient that nobody has written, as an operator: a graph that is traced beforehand may have it, and only whoever
// runs that part is told.
constexpr const char* kNoDerivative = "tenon::derivative_not_implemented";

void refuse_derivative(dispatch::Call& call) {
  fail<NotImplementedError>("[{}] the derivative for '{}' is not implemented.", call.args[3].string(),
                            call.args[4].string());
}

void derivative_without_data(dispatch::Call& call) {
  // Made of the gradient, so that it is a fake if that is one; nobody else is to see how.
  dispatch::ExcludeKeys alone(KeySet{DispatchKey::Trace, DispatchKey::Functionalize, DispatchKey::ADInplaceOrView,
                                     DispatchKey::Autograd, DispatchKey::Autocast, DispatchKey::Capture,
                                     DispatchKey::Batched, DispatchKey::UserMode});
  SymInts sizes = call.args[1].sym_ints();
  Tensor one = sum(call.args[0].tensor()).to(call.args[2].dtype());
  call.results.emplace_back(clone(expand(one, sizes), MemoryFormat::Contiguous));
}

[[maybe_unused]] const bool registered = [] {
  dispatch::Operator& op = dispatch::define(schema::parse(
      "tenon::derivative_not_implemented(Tensor grad, SymInt[] size, ScalarType dtype, str name, str what) -> Tensor"));
  dispatch::add_tags(op, {dispatch::Tag::pt2_compliant_tag});
  dispatch::register_kernel(op, DispatchKey::CPU, refuse_derivative);
  for (DispatchKey key : {DispatchKey::Meta, DispatchKey::Fake})
    dispatch::register_kernel(op, key, derivative_without_data);
  return true;
}();

dispatch::Operator& define_row(const std::shared_ptr<Row>& row) {
  schema::Schema schema = row->schema;
  if (schema.ns.empty()) schema.ns = "aten";
  row->schema = schema;
  dispatch::Operator& defined = dispatch::define(std::move(schema), row);
  row->op = &defined;
  dispatch::add_tags(defined, {dispatch::Tag::pt2_compliant_tag});
  if (row->kind == Kind::Pointwise) dispatch::add_tags(defined, {dispatch::Tag::pointwise});
  if (row->moves_self) dispatch::add_tags(defined, {dispatch::Tag::inplace_view});
  return defined;
}

// The in-place form of a pointwise row: the same expression, written over `self`.
void define_inplace(const std::shared_ptr<Row>& row) {
  auto derived = std::make_shared<Row>(*row);
  derived->schema = schema::inplace_form(row->schema);
  derived->functional = row.get();
  derived->functional_op = row->op;
  derived->role = Role::None;
  derived->op = nullptr;
  row->inplace_op = &define_row(derived);
}

bool is_recorded(const dispatch::Call& call) {
  bool found = false;
  for (const dispatch::Value& value : call.args)
    value.each_tensor([&](const Tensor& tensor) { found |= tensor.defined() && tensor.requires_grad(); });
  return found && support::thread_context.grad_enabled;
}

// The in-place form of any other row: what it gives, copied into `self`.
void define_inplace_copy(const std::shared_ptr<Row>& row) {
  dispatch::Operator& form = dispatch::define(schema::inplace_form(row->schema));
  dispatch::add_tags(form, {dispatch::Tag::pt2_compliant_tag});
  row->inplace_op = &form;
  const dispatch::Operator* functional = row->op;
  // What a row is taken apart into may save `self`, too.
  bool saves_self = row->kind == Kind::Composite && row->grads.empty();
  for (const GradRule& rule : row->grads)
    saves_self |= std::find(rule.saves.begin(), rule.saves.end(), "self") != rule.saves.end();
  dispatch::register_composite(form, dispatch::Composite::Implicit, [functional, saves_self](dispatch::Call& call) {
    static const dispatch::Operator &copy = dispatch::find_operator("aten::copy_"),
                                    &clone = dispatch::find_operator("aten::clone");
    Tensor self = call.args[0].tensor();
    dispatch::Values given(call.args.begin(), call.args.end());
    // What backward needs of self is as it was before it is written to.
    if (saves_self && is_recorded(call)) {
      const dispatch::Value args[] = {dispatch::Value(self), dispatch::Value()};
      given[0] = dispatch::Value(dispatch::call_boxed(clone, args)[0].take_tensor());
    }
    Tensor result = dispatch::call_boxed(*functional, given)[0].take_tensor();
    TENON_CHECK(category(result.dtype()) <= category(self.dtype()),
                "[{}] a result of {} cannot be stored in self of {}", call.op.brief_name(), name(result.dtype()),
                name(self.dtype()));
    const dispatch::Value args[] = {dispatch::Value(self), dispatch::Value(result), dispatch::Value(false)};
    dispatch::call_boxed(copy, args);
    call.results.push_back(std::move(self));
  });
}

// What lies in a tensor of the caller's has no history.
void refuse_gradients(const dispatch::Call& call) {
  if (!support::thread_context.grad_enabled) return;
  for (const dispatch::Value& value : call.args)
    value.each_tensor([&](const Tensor& tensor) {
      TENON_CHECK(!tensor.defined() || !tensor.requires_grad(),
                  "[{}] the form with out= records no gradient, and an argument requires grad: use no_grad(), or the "
                  "form without out=",
                  call.op.brief_name());
    });
}

// The `out` form of a pointwise row: the result is written into a tensor of the caller's, which must have its shape.
void define_out(const std::shared_ptr<Row>& row) {
  dispatch::Operator& out = dispatch::define(schema::out_form(row->schema));
  dispatch::add_tags(out, {dispatch::Tag::pt2_compliant_tag, dispatch::Tag::generated});
  const dispatch::Operator* functional = row->op;
  dispatch::register_composite(out, dispatch::Composite::Implicit, [functional](dispatch::Call& call) {
    static const dispatch::Operator& copy = dispatch::find_operator("aten::copy_");
    Tensor target = call.args.back().tensor();
    TENON_CHECK(target.defined(), "[{}] expected a tensor to write to, got an undefined one", call.op.brief_name());
    refuse_gradients(call);
    Tensor result = dispatch::call_boxed(*functional, call.args.first(call.args.size() - 1))[0].take_tensor();
    SymInts expected = result.sym_sizes(), given = target.sym_sizes();
    bool fits = expected.size() == given.size();
    for (size_t dim = 0; fits && dim < given.size(); ++dim) fits = same_size(expected[dim], given[dim]);
    TENON_CHECK(fits, "[{}] expected an out tensor of shape {}, got {}", call.op.brief_name(), str(expected),
                target.description());
    const dispatch::Value args[] = {dispatch::Value(target), dispatch::Value(result), dispatch::Value(false)};
    dispatch::call_boxed(copy, args);
    call.results.push_back(std::move(target));
  });
}

}  // namespace

RowBuilder::RowBuilder(const char* schema, const char* family, std::source_location where)
    : row_(std::make_shared<Row>()) {
  row_->schema = schema::parse(schema);
  row_->family = family;
  row_->file = where.file_name();
  row_->line = static_cast<int>(where.line());
}

RowBuilder&& RowBuilder::grad_not_implemented(std::string input, std::string what) && {
  std::string name = row_->schema.name;
  if (what.empty()) what = name;
  auto refuse = [name, what, input](Grad& g) {
    SymInts sizes = g.sizes(input);
    const dispatch::Value args[] = {dispatch::Value(g.grad()), dispatch::Value(sizes), dispatch::Value(g.dtype(input)),
                                    dispatch::Value(std::string_view(name)), dispatch::Value(std::string_view(what))};
    return std::vector{dispatch::call_boxed(dispatch::find_operator(kNoDerivative), args)[0].take_tensor()};
  };
  row_->grads.push_back({std::move(input), {}, std::move(refuse), false});
  return std::move(*this);
}

RowBuilder::~RowBuilder() noexcept(false) {
  if (std::uncaught_exceptions() > 0) return;
  dispatch::Operator& defined = define_row(row_);
  if (row_->kind == Kind::Pointwise) {
    size_t lanes = 0;
    for (const schema::Argument& argument : row_->schema.arguments) lanes += is_lane(argument);
    TENON_ASSERT(lanes == row_->pointwise.lanes, "{}: {} lane arguments, its expression takes {}", row_->schema.str(),
                 lanes, row_->pointwise.lanes);
    if (row_->derives_inplace && schema::has_inplace_form(row_->schema)) define_inplace(row_);
    if (row_->derives_inplace && schema::has_out_form(row_->schema)) define_out(row_);
  }
  if (row_->inplace_by_copy) {
    TENON_ASSERT(row_->kind != Kind::Pointwise && schema::has_inplace_form(row_->schema),
                 "{} has no in-place form by copying", row_->schema.str());
    define_inplace_copy(row_);
  }
  // Autograd differentiates its parts; one whose results carry no gradient runs as a whole, in as little memory as its
  // kernels need.
  bool is_taken_apart = !row_->differentiable() && row_->not_differentiable.empty();
  if (row_->kind == Kind::Composite && (is_taken_apart || row_->gives_pieces))
    dispatch::register_composite(defined, dispatch::Composite::Implicit, [row = row_.get()](dispatch::Call& call) {
      PieceMaker maker = row->gives_pieces ? piece_maker.load(std::memory_order_relaxed) : nullptr;
      dispatch::naming(call, [&] { maker ? maker(*row, call) : row->decomposition(call); });
    });
}

void set_piece_maker(PieceMaker maker) { piece_maker = maker; }

namespace {
std::atomic<DynamicSizeSource> dynamic_size_source{nullptr};
}

void set_dynamic_size_source(DynamicSizeSource source) { dynamic_size_source = source; }

SymInt new_dynamic_size(const SymInt& min, const std::optional<SymInt>& max) {
  DynamicSizeSource source = dynamic_size_source;
  TENON_ASSERT(source, "there are no fakes that could have such sizes");
  // A bound that is itself a symbol says less than it costs.
  return source(min, max && max->is_symbolic() ? std::nullopt : max);
}

bool Row::ignores(std::string_view argument) const {
  return std::find(ignored.begin(), ignored.end(), argument) != ignored.end();
}

const dispatch::OpaqueKernel* Row::opaque_kernel() const {
  return opaque.cpu.fill || opaque.cpu.make ? &opaque.cpu : nullptr;
}

const GradRule* Row::grad_of(std::string_view input) const {
  for (const GradRule& rule : grads)
    if (rule.input == input) return &rule;
  return nullptr;
}

bool Row::implements_gradients() const {
  return std::all_of(grads.begin(), grads.end(), [](const GradRule& rule) { return rule.implemented; });
}

const Row* row_of(const dispatch::Operator& op) {
  const dispatch::OperatorTraits* traits = op.traits();
  return traits && typeid(*traits) == typeid(Row) ? static_cast<const Row*>(traits) : nullptr;
}

Role role_of(const dispatch::Operator& op) {
  const Row* row = row_of(op);
  return row ? row->role : Role::None;
}

}  // namespace tenon::ops

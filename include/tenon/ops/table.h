// How rows are written. A family is a block; a row is a statement in it:
//
//   OPS(unary) {
//     op("sin(Tensor self) -> Tensor")
//         .pointwise(Promotion::ToFloat, [](Lane x) { return sin(x); })
//         .grad("self", saves("self"), [](Grad& g) { return g.grad() * cos(g.saved("self")); });
//   }
//
// Where only the kernels of opaque rows are wanted (the library that runs saved functions), the same files are compiled
// with TENON_KERNELS_ONLY: everything else that a row says is read over, and leaves no code.
#pragma once

#include <tenon/dispatch/call.h>
#include <tenon/generated/ops.h>
#include <tenon/ops/row.h>

#include <initializer_list>
#include <source_location>
#include <utility>

namespace tenon::ops {

template <typename... Names>
std::vector<std::string> saves(Names... names) {
  return {std::string(names)...};
}

#ifdef TENON_KERNELS_ONLY

// An operator that is known by its schema and its kernel.
class KernelOfRow final : public dispatch::OperatorTraits {
 public:
  dispatch::OpaqueKernel cpu;
  const dispatch::OpaqueKernel* opaque_kernel() const override { return &cpu; }
};

class RowBuilder {
 public:
  RowBuilder(const char* schema, const char*, std::source_location) : schema_(schema) {}
  ~RowBuilder() noexcept(false);
  RowBuilder(RowBuilder&&) = delete;

  template <typename Cpu, typename... Rest>
  RowBuilder&& kernel(Cpu cpu, Rest&&...) && {
    kernel_.fill = std::move(cpu);
    return std::move(*this);
  }
  template <typename Cpu>
  RowBuilder&& kernel_with(std::vector<dispatch::Epilogue> epilogues, Cpu cpu) && {
    kernel_.fill_with = std::move(cpu);
    kernel_.epilogues = std::move(epilogues);
    return std::move(*this);
  }
  template <typename Make>
  RowBuilder&& dynamic_kernel(Make make) && {
    kernel_.make = std::move(make);
    return std::move(*this);
  }
  template <typename F>
  RowBuilder&& as(F&& say) && {
    return say(std::move(*this));
  }
#define TENON_READ_OVER(name)      \
  template <typename... Rest>      \
  RowBuilder&& name(Rest&&...)&& { \
    return std::move(*this);       \
  }
  TENON_READ_OVER(pointwise)
  TENON_READ_OVER(rounds_operands)
  TENON_READ_OVER(reduce)
  TENON_READ_OVER(element)
  TENON_READ_OVER(writes)
  TENON_READ_OVER(in_parts)
  TENON_READ_OVER(view)
  TENON_READ_OVER(scatter)
  TENON_READ_OVER(replay)
  TENON_READ_OVER(of_storage)
  TENON_READ_OVER(copied_in_kernels)
  TENON_READ_OVER(captured_in_parts)
  TENON_READ_OVER(decompose)
  TENON_READ_OVER(moves_self)
  TENON_READ_OVER(pieces)
  TENON_READ_OVER(is_epilogue)
  TENON_READ_OVER(check)
  TENON_READ_OVER(shape)
  TENON_READ_OVER(grad)
  TENON_READ_OVER(grad_not_implemented)
  TENON_READ_OVER(random)
  TENON_READ_OVER(uninitialised)
  TENON_READ_OVER(ignores)
  TENON_READ_OVER(not_differentiable)
  TENON_READ_OVER(no_inplace)
  TENON_READ_OVER(with_inplace)
  TENON_READ_OVER(moves_elements)
  TENON_READ_OVER(role)
#undef TENON_READ_OVER

 private:
  const char* schema_;
  dispatch::OpaqueKernel kernel_;
};

#else

// Builds a row; the statement's end registers it.
class RowBuilder {
 public:
  RowBuilder(const char* schema, const char* family, std::source_location where);
  ~RowBuilder() noexcept(false);
  RowBuilder(RowBuilder&&) = delete;

  template <typename Body>
  RowBuilder&& pointwise(Promotion promotion, Body body) && {
    row_->kind = Kind::Pointwise;
    row_->pointwise.promotion = promotion;
    row_->pointwise.rounds_operands = promotion == Promotion::Compare;
    set_body(std::move(body), &Body::operator());
    return std::move(*this);
  }
  RowBuilder&& rounds_operands() && {
    row_->pointwise.rounds_operands = true;
    return std::move(*this);
  }
  RowBuilder&& reduce(loop::ReduceKind kind, Dtype (*result)(Dtype) = nullptr) && {
    row_->kind = Kind::Reduction;
    row_->reduction = {kind, result};
    return std::move(*this);
  }
  RowBuilder&& element(std::function<Lane(Element&)> body) && {
    row_->kind = Kind::Element;
    row_->element.body = std::move(body);
    return std::move(*this);
  }
  RowBuilder&& writes(std::function<Tensor(const Tensor& whole, const Arguments&)> place) && {
    row_->element.place = std::move(place);
    return std::move(*this);
  }
  // Of an Element row: what computes it where one kernel would be too large.
  template <typename F>
  RowBuilder&& in_parts(std::function<bool(const Arguments&)> whole, F function) && {
    row_->element.whole = std::move(whole);
    row_->decomposition = dispatch::boxed(std::move(function));
    return std::move(*this);
  }
  RowBuilder&& view(std::function<Geometry(const Arguments&)> geometry,
                    std::function<std::vector<Expr>(ViewIndex&)> index) && {
    row_->kind = Kind::View;
    row_->view.geometry = std::move(geometry);
    row_->view.index = std::move(index);
    return std::move(*this);
  }
  RowBuilder&& scatter(std::function<Tensor(const Tensor&, const Tensor&, const Arguments&)> put_back) && {
    row_->view.scatter = std::move(put_back);
    return std::move(*this);
  }
  RowBuilder&& replay(std::function<Tensor(const Tensor&, const Arguments&)> view_of_another) && {
    row_->view.replay = std::move(view_of_another);
    return std::move(*this);
  }
  RowBuilder&& of_storage() && {
    row_->view.of_storage = true;
    return std::move(*this);
  }
  // Of a view that loops cannot address: the kernels of a graph read what this function gives instead.
  template <typename F>
  RowBuilder&& copied_in_kernels(F function) && {
    row_->decomposition = dispatch::boxed(std::move(function));
    return std::move(*this);
  }
  RowBuilder&& captured_in_parts() && {
    row_->captured_in_parts = true;
    return std::move(*this);
  }
  // A function of other operators. With gradients of its own it stays whole through autograd and aot; without, it is
  // taken apart where it is first met.
  template <typename F>
  RowBuilder&& decompose(F function) && {
    if (row_->kind != Kind::Opaque || !row_->opaque.cpu.fill) row_->kind = Kind::Composite;
    row_->decomposition = dispatch::boxed(std::move(function));
    return std::move(*this);
  }
  // Of a function that gives `self` another shape: a compiled function calls it as it is.
  RowBuilder&& moves_self() && {
    row_->moves_self = true;
    return std::move(*this);
  }
  // Of a function that gives a list of views of `self`: they share one step of backward, whose gradient follows.
  RowBuilder&& pieces() && {
    row_->gives_pieces = true;
    return std::move(*this);
  }
  RowBuilder&& kernel(std::function<void(const Arguments&, std::span<Tensor>)> cpu,
                      std::function<bool(const Arguments&)> supports = nullptr) && {
    row_->kind = Kind::Opaque;
    row_->opaque.cpu.fill = std::move(cpu);
    row_->opaque.supports = std::move(supports);
    return std::move(*this);
  }
  // Of a kernel that can do more to each element of its result than the operator asks for.
  RowBuilder&& kernel_with(std::vector<dispatch::Epilogue> epilogues,
                           std::function<void(const Arguments&, std::span<Tensor>, dispatch::Epilogue)> cpu) && {
    row_->opaque.cpu.fill_with = std::move(cpu);
    row_->opaque.cpu.epilogues = std::move(epilogues);
    return std::move(*this);
  }
  // Of a pointwise row: what it is to such kernels.
  RowBuilder&& is_epilogue(dispatch::Epilogue epilogue) && {
    row_->pointwise.epilogue = epilogue;
    return std::move(*this);
  }
  RowBuilder&& dynamic_kernel(std::function<std::vector<Tensor>(const Arguments&)> make) && {
    row_->kind = Kind::Opaque;
    row_->opaque.cpu.make = std::move(make);
    return std::move(*this);
  }
  // What several rows have in common, as a function that says it of one.
  template <typename F>
  RowBuilder&& as(F&& say) && {
    return say(std::move(*this));
  }
  RowBuilder&& check(std::function<void(const Arguments&)> refuse) && {
    row_->check = std::move(refuse);
    return std::move(*this);
  }
  RowBuilder&& shape(ShapeRule rule) && {
    row_->shape = std::move(rule);
    return std::move(*this);
  }
  // A formula gives one tensor, or a vector for a tensor list.
  template <typename F>
  RowBuilder&& grad(std::string input, std::vector<std::string> saved, F formula) && {
    GradRule rule{std::move(input), std::move(saved), {}};
    if constexpr (std::is_same_v<std::invoke_result_t<F, Grad&>, Tensor>)
      rule.formula = [formula](Grad& g) { return std::vector<Tensor>{formula(g)}; };
    else
      rule.formula = formula;
    row_->grads.push_back(std::move(rule));
    return std::move(*this);
  }
  // Of an input that the results depend on, smoothly or not, and for which nobody has written a formula: whoever asks
  // for its gradient is told so. `what`: as the error calls it; empty: the operator.
  RowBuilder&& grad_not_implemented(std::string input, std::string what = {}) &&;
  RowBuilder&& random() && {
    row_->element.random = true;
    return std::move(*this);
  }
  RowBuilder&& uninitialised() && {
    row_->kind = Kind::Element;
    row_->element.body = [](Element& e) { return e.builder().constant(int64_t{0}, e.dtype()); };
    row_->element.uninitialised = true;
    return std::move(*this);
  }
  RowBuilder&& ignores(std::string argument) && {
    row_->ignored.push_back(std::move(argument));
    return std::move(*this);
  }
  RowBuilder&& not_differentiable(std::string result) && {
    row_->not_differentiable.push_back(std::move(result));
    return std::move(*this);
  }
  RowBuilder&& no_inplace() && {
    row_->derives_inplace = false;
    return std::move(*this);
  }
  // Elements go to the result as they are, at most converted: what dtypes of storage can have done to them.
  RowBuilder&& moves_elements() && {
    row_->moves_elements = true;
    return std::move(*this);
  }
  // What passes over graphs know it by.
  RowBuilder&& role(Role role) && {
    row_->role = role;
    return std::move(*this);
  }
  // Of a row that is not pointwise: `name_` computes the result and copies it into self.
  RowBuilder&& with_inplace() && {
    row_->inplace_by_copy = true;
    return std::move(*this);
  }

 private:
  template <typename Body, typename... Lanes>
  void set_body(Body body, Lane (Body::*)(Lanes...) const) {
    row_->pointwise.lanes = sizeof...(Lanes);
    row_->pointwise.body = [body](std::span<const Lane> lanes, Dtype) {
      return [&]<size_t... I>(std::index_sequence<I...>) {
        return body(lanes[I]...);
      }(std::index_sequence_for<Lanes...>());
    };
  }
  // An expression that depends on which numbers the dtype has.
  template <typename Body, typename... Lanes>
  void set_body(Body body, Lane (Body::*)(Dtype, Lanes...) const) {
    row_->pointwise.lanes = sizeof...(Lanes);
    row_->pointwise.body = [body](std::span<const Lane> lanes, Dtype dtype) {
      return [&]<size_t... I>(std::index_sequence<I...>) {
        return body(dtype, lanes[I]...);
      }(std::index_sequence_for<Lanes...>());
    };
  }

  std::shared_ptr<Row> row_;
};

#endif

// What a family's block calls `op`.
struct RowMaker {
  const char* family;
  RowBuilder operator()(const char* schema, std::source_location where = std::source_location::current()) const {
    return RowBuilder(schema, family, where);
  }
};

struct FamilyRegistrar {
  FamilyRegistrar(const char* family, void (*rows)(const RowMaker&)) { rows(RowMaker{family}); }
};

}  // namespace tenon::ops

#define OPS(family)                                                                      \
  static void family##_rows(const ::tenon::ops::RowMaker& op);                           \
  static const ::tenon::ops::FamilyRegistrar family##_registrar(#family, family##_rows); \
  static void family##_rows(const ::tenon::ops::RowMaker& op)

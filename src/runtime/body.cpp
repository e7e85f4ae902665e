#include <tenon/kernels/item.h>
#include <tenon/runtime/body.h>
#include <tenon/runtime/plan.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace tenon::runtime {
namespace {

using Numbers = std::span<const int64_t>;

Ints values(const std::vector<sym::Expr>& expressions, Numbers numbers) {
  Ints list;
  for (sym::Expr each : expressions) list.push_back(sym::evaluate(each, numbers));
  return list;
}

// Whether the last dimensions of a tensor lie so.
bool lies_so(const Tensor& tensor, const Ints& strides) {
  const size_t first = tensor.sizes().size() - strides.size();
  for (size_t dim = 0; dim < strides.size(); ++dim)
    if (tensor.sizes()[first + dim] > 1 && tensor.strides()[first + dim] != strides[dim]) return false;
  return true;
}

Tensor copied(const Tensor& tensor, const Ints& strides) {
  Tensor copy = core::allocate(tensor.sizes(), strides.span(), tensor.dtype(), tensor.device());
  copy.copy_(tensor);
  return copy;
}

Tensor own(const Tensor& tensor) { return copied(tensor, Ints(tensor.strides())); }

// As the body was traced with it.
Tensor laid_out(const Tensor& tensor, const Ints& strides) {
  return lies_so(tensor, strides) ? tensor : copied(tensor, strides);
}
Tensor laid_out(const Tensor& tensor, const BodyTensor& like, Numbers numbers) {
  return laid_out(tensor, values(like.strides, numbers));
}

std::vector<Ints> strides_of(std::span<const BodyTensor> tensors, Numbers numbers) {
  std::vector<Ints> strides;
  for (const BodyTensor& each : tensors) strides.push_back(values(each.strides, numbers));
  return strides;
}

// Whose slices lie so.
Tensor stack_of(const Tensor& xs, const BodyTensor& like, Numbers numbers) {
  const Ints strides = values(like.strides, numbers);
  if (lies_so(xs, strides)) return xs;
  Ints all;
  all.push_back(1);
  for (size_t dim = 0; dim < strides.size(); ++dim) {
    all[0] *= xs.sizes()[dim + 1];
    all.push_back(strides[dim]);
  }
  return copied(xs, all);
}

Tensor slice_at(const Tensor& stack, int64_t step) {
  return core::make_view(stack, SymInts(stack.sizes().subspan(1)), SymInts(stack.strides().subspan(1)),
                         stack.storage_offset() + step * stack.strides()[0]);
}

// Memory for as many steps as are said, each like this.
Tensor stack_for(int64_t steps, std::span<const int64_t> sizes, Dtype dtype, Device device) {
  Ints all;
  all.push_back(steps);
  for (int64_t each : sizes) all.push_back(each);
  Ints strides = all;
  int64_t count = 1;
  for (size_t dim = all.size(); dim-- > 0;) {
    strides[dim] = count;
    count *= std::max<int64_t>(1, all[dim]);
  }
  return core::allocate(all.span(), strides.span(), dtype, device);
}

void put(const Tensor& made, const Tensor& stack, int64_t step) {
  if (made.is_contiguous()) {
    const size_t bytes = static_cast<size_t>(made.numel().plain()) * size_of(made.dtype());
    if (bytes > 0)
      std::memcpy(static_cast<char*>(stack.raw_data()) + static_cast<size_t>(step) * bytes, made.raw_data(), bytes);
  } else {
    slice_at(stack, step).copy_(made);
  }
}

// What a body passed on as it was given it is still the caller's, and what happens to be one tensor is two of them.
void own_memory(std::span<Tensor> results, std::initializer_list<std::span<const Tensor>> given) {
  for (size_t at = 0; at < results.size(); ++at) {
    auto shares = [&](const Tensor& other) { return other.is_same_storage(results[at]); };
    bool is_shared = std::any_of(results.begin(), results.begin() + static_cast<ptrdiff_t>(at), shares);
    for (std::span<const Tensor> list : given) is_shared = is_shared || std::any_of(list.begin(), list.end(), shares);
    if (is_shared) results[at] = own(results[at]);
  }
}

struct Call {
  std::span<const Tensor> carry, xs, captured;
  Ints numbers;
};

Ints plain(const SymInts& numbers) {
  Ints list;
  for (const SymInt& each : numbers) list.push_back(each.plain());
  return list;
}

std::vector<Tensor> scan(const Bodies& scan, const Call& call, int64_t steps, bool reverse) {
  const BodyShape& shape = scan.bodies[0]->shape();
  const Numbers numbers = call.numbers.span();
  const size_t carried = call.carry.size();
  std::vector<Tensor> inputs, xs, kept;
  for (const Tensor& tensor : call.carry) inputs.push_back(laid_out(tensor, shape.inputs[inputs.size()], numbers));
  for (const Tensor& tensor : call.xs) xs.push_back(stack_of(tensor, shape.inputs[carried + xs.size()], numbers));
  inputs.resize(carried + xs.size());
  for (const Tensor& tensor : call.captured) inputs.push_back(laid_out(tensor, shape.inputs[inputs.size()], numbers));
  for (size_t which = carried; which < shape.results.size(); ++which) {
    const BodyTensor& like = shape.results[which];
    kept.push_back(stack_for(steps, values(like.sizes, numbers).span(), like.dtype, kCPU));
  }
  const std::vector<Ints> before = strides_of(std::span(shape.inputs).first(carried), numbers);
  const std::vector<Ints> after = strides_of(std::span(shape.results).first(carried), numbers);
  const BodyPlanRef body = steps > 0 ? scan.bodies[0]->find(numbers) : nullptr;
  for (int64_t at = 0; at < steps; ++at) {
    const int64_t time = reverse ? steps - 1 - at : at;
    for (size_t which = 0; which < xs.size(); ++which) inputs[carried + which] = slice_at(xs[which], time);
    std::vector<Tensor> results = run(*body, inputs, numbers);
    const std::vector<Ints>& next = at + 1 == steps ? after : before;
    for (size_t which = 0; which < carried; ++which) inputs[which] = laid_out(results[which], next[which]);
    for (size_t which = carried; which < results.size(); ++which) put(results[which], kept[which - carried], time);
  }
  std::vector<Tensor> results(inputs.begin(), inputs.begin() + static_cast<ptrdiff_t>(carried));
  if (steps == 0)
    for (size_t at = 0; at < carried; ++at) results[at] = laid_out(results[at], after[at]);
  own_memory(results, {call.carry, call.captured});
  results.insert(results.end(), kept.begin(), kept.end());
  return results;
}

std::vector<Tensor> branch(const Bodies& branches, const Tensor& predicate, const Call& call) {
  const BodyRef& taken = branches.bodies[kernels::item(predicate).to_bool() ? 0 : 1];
  const BodyShape& shape = taken->shape();
  std::vector<Tensor> inputs;
  for (const Tensor& tensor : call.captured)
    inputs.push_back(laid_out(tensor, shape.inputs[inputs.size()], call.numbers.span()));
  std::vector<Tensor> results = run(*taken->find(call.numbers.span()), inputs, call.numbers.span());
  own_memory(results, {inputs});
  for (size_t at = 0; at < results.size(); ++at)
    results[at] = laid_out(results[at], shape.results[at], call.numbers.span());
  return results;
}

// What is kept of every step, in memory that grows.
class Stack {
 public:
  Stack(const Ints& sizes, Dtype dtype) : memory_(stack_for(0, sizes.span(), dtype, kCPU)) {}

  void add(const Tensor& made) {
    if (count_ == capacity_) grow();
    put(made, memory_, count_++);
  }
  Tensor all() const {
    Ints sizes(memory_.sizes());
    sizes[0] = count_;
    return core::make_view(memory_, SymInts(sizes.span()), SymInts(memory_.strides()), 0);
  }

 private:
  void grow() {
    capacity_ = std::max<int64_t>(4, 2 * capacity_);
    Tensor larger = stack_for(capacity_, memory_.sizes().subspan(1), memory_.dtype(), memory_.device());
    const size_t bytes = static_cast<size_t>(count_ * memory_.strides()[0]) * size_of(memory_.dtype());
    if (bytes > 0) std::memcpy(larger.raw_data(), memory_.raw_data(), bytes);
    memory_ = std::move(larger);
  }

  Tensor memory_;
  int64_t count_ = 0, capacity_ = 0;
};

std::vector<Tensor> loop_while(const Bodies& loop, const Call& call) {
  const BodyShape& shape = loop.bodies[1]->shape();
  const Numbers numbers = call.numbers.span();
  const size_t carried = call.carry.size();
  std::vector<Tensor> inputs;
  for (const std::span<const Tensor> list : {call.carry, call.captured})
    for (const Tensor& tensor : list) inputs.push_back(laid_out(tensor, shape.inputs[inputs.size()], numbers));
  std::vector<Stack> stacks;
  for (size_t which = carried; which < shape.results.size(); ++which)
    stacks.emplace_back(values(shape.results[which].sizes, numbers), shape.results[which].dtype);
  const std::vector<Ints> order = strides_of(std::span(shape.inputs).first(carried), numbers);
  const BodyPlanRef condition = loop.bodies[0]->find(numbers);
  for (BodyPlanRef body; kernels::item(run(*condition, inputs, numbers)[0]).to_bool();) {
    if (!body) body = loop.bodies[1]->find(numbers);
    std::vector<Tensor> results = run(*body, inputs, numbers);
    for (size_t which = 0; which < carried; ++which) inputs[which] = laid_out(results[which], order[which]);
    for (size_t which = carried; which < results.size(); ++which) stacks[which - carried].add(results[which]);
  }
  std::vector<Tensor> results(inputs.begin(), inputs.begin() + static_cast<ptrdiff_t>(carried));
  own_memory(results, {call.carry, call.captured});
  for (const Stack& each : stacks) results.push_back(each.all());
  return results;
}

struct Slot {
  BodiesRef bodies;
};
Slot& slot_of(const dispatch::Operator& op) {
  return op.derived<Slot>([] { return std::make_shared<Slot>(); });
}

}  // namespace

void set_bodies_of(const dispatch::Operator& op, BodiesRef bodies) { slot_of(op).bodies = std::move(bodies); }
BodiesRef bodies_of(const dispatch::Operator& op) { return slot_of(op).bodies; }

bool holds(const BodyPlan& plan, std::span<const int64_t> numbers) {
  return std::all_of(plan.conditions.begin(), plan.conditions.end(),
                     [&](sym::Expr each) { return sym::evaluate(each, numbers) != 0; });
}

std::vector<Tensor> run(const BodyPlan& plan, std::span<const Tensor> inputs, std::span<const int64_t> numbers) {
  std::vector<dispatch::Value> outputs = plan.plan ? run(*plan.plan, inputs, numbers) : plan.run(inputs, numbers);
  std::vector<Tensor> results;
  for (int32_t at : plan.results) {
    const Tensor& result = at >= 0 ? outputs[static_cast<size_t>(at)].tensor() : inputs[static_cast<size_t>(-1 - at)];
    results.push_back(result);
  }
  return results;
}

BodyPlanRef SavedBody::find(std::span<const int64_t> numbers) {
  for (const BodyPlanRef& each : plans_)
    if (holds(*each, numbers)) return each;
  fail("the body of a loop or a branch was not compiled for such sizes: [{}]", fmt::join(numbers, ", "));
}

std::vector<Tensor> run(const Bodies& bodies, std::span<const dispatch::Value> arguments) {
  switch (bodies.kind) {
    case Bodies::Kind::Scan: {
      const Call call{arguments[0].tensors(), arguments[1].tensors(), arguments[2].tensors(),
                      plain(arguments[3].sym_ints())};
      return scan(bodies, call, arguments[4].sym_int().plain(), arguments[5].boolean());
    }
    case Bodies::Kind::Branch:
      return branch(bodies, arguments[0].tensor(), {{}, {}, arguments[1].tensors(), plain(arguments[2].sym_ints())});
    case Bodies::Kind::While:
      return loop_while(bodies, {arguments[0].tensors(), {}, arguments[1].tensors(), plain(arguments[2].sym_ints())});
  }
  return {};
}

}  // namespace tenon::runtime

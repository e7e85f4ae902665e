// The loss of connectionist temporal classification, and its gradient.
#include "ops/by_name.h"

#include <tenon/kernels/ctc.h>
#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

#include <algorithm>

namespace tenon::ops {
namespace {

void check_dtype(const Tensor& log_probs) {
  TENON_CHECK_IMPLEMENTED(log_probs.dtype() == kFloat32 || log_probs.dtype() == kFloat64,
                          "[ctc_loss] expected log_probs of float32 or float64, got {}", log_probs.description());
}

// What the kernels rely on, as far as sizes tell it.
void check(const Tensor& log_probs, const Tensor& targets, const Ints& input_lengths, const Ints& target_lengths,
           int64_t blank) {
  TENON_CHECK(given(log_probs, "ctc_loss").dim() == 3, "[ctc_loss] expected log_probs [T, N, C], got {}",
              log_probs.description());
  check_dtype(log_probs);
  TENON_CHECK((given(targets, "ctc_loss").dtype() == kInt64 || targets.dtype() == kInt32) &&
                  (targets.dim() == 1 || targets.dim() == 2),
              "[ctc_loss] expected targets of int64 or int32, [N, S] or [all of them], got {}", targets.description());
  const auto count = static_cast<int64_t>(input_lengths.size());
  TENON_CHECK(same_size(log_probs.size(1), SymInt(count)) && target_lengths.size() == input_lengths.size(),
              "[ctc_loss] expected a length of input and of target for each of {} entries, got {} and {}",
              log_probs.size(1).str(), input_lengths.size(), target_lengths.size());
  TENON_CHECK(blank >= 0 && expect(log_probs.size(2) > blank), "[ctc_loss] the blank {} is none of {} classes", blank,
              log_probs.size(2).str());
  SymInt total = 0;
  for (size_t n = 0; n < input_lengths.size(); ++n) {
    TENON_CHECK(input_lengths[n] >= 0 && expect(log_probs.size(0) >= input_lengths[n]),
                "[ctc_loss] entry {} has {} steps of {}", n, input_lengths[n], log_probs.size(0).str());
    TENON_CHECK(target_lengths[n] >= 0 && (targets.dim() == 1 || expect(targets.size(1) >= target_lengths[n])),
                "[ctc_loss] entry {} has {} targets, and they are {}", n, target_lengths[n], targets.description());
    total = total + target_lengths[n];
  }
  TENON_CHECK(targets.dim() == 1 ? same_size(targets.size(0), total) : same_size(targets.size(0), SymInt(count)),
              "[ctc_loss] expected {} targets or {} rows of them, got {}", total.str(), count, targets.description());
}

// Lengths that a tensor holds.
Ints lengths_in(const Tensor& tensor) {
  TENON_CHECK(given(tensor, "ctc_loss").dim() == 1 && (tensor.dtype() == kInt64 || tensor.dtype() == kInt32),
              "[ctc_loss] expected a vector of int64 or int32 as lengths, got {}", tensor.description());
  Ints lengths;
  for (int64_t at = 0; at < tensor.sizes()[0]; ++at) {
    const int64_t where = at * tensor.strides()[0];
    lengths.push_back(tensor.dtype() == kInt32 ? tensor.data<int32_t>()[where] : tensor.data<int64_t>()[where]);
  }
  return lengths;
}
Ints lengths_of(const Arguments& arguments, const char* name) {
  const dispatch::Value& value = arguments[name];
  return value.tag() == dispatch::Value::Tag::Tensor ? lengths_in(value.tensor()) : Ints(value.ints());
}

int64_t longest(const Ints& lengths) {
  return std::max<int64_t>(0, lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end()));
}

std::vector<TensorMeta> metas(const Tensor& log_probs, const SymInt& width) {
  return {TensorMeta::contiguous({log_probs.size(1)}, log_probs.dtype(), log_probs.device()),
          TensorMeta::contiguous({log_probs.size(1), log_probs.size(0), width}, log_probs.dtype(), log_probs.device())};
}

void forward(const Arguments& arguments, std::span<Tensor> outputs) {
  const Tensor &log_probs = arguments.tensor("log_probs"), &targets = arguments.tensor("targets");
  const Ints inputs = lengths_of(arguments, "input_lengths"), lengths = lengths_of(arguments, "target_lengths");
  check(log_probs, targets, inputs, lengths, arguments["blank"].integer());
  kernels::ctc_loss({log_probs, targets, inputs, lengths, arguments["blank"].integer()}, outputs[0], outputs[1]);
}

void backward(const Arguments& arguments, std::span<Tensor> outputs) {
  const Tensor &log_probs = arguments.tensor("log_probs"), &targets = arguments.tensor("targets");
  const Ints inputs = lengths_of(arguments, "input_lengths"), lengths = lengths_of(arguments, "target_lengths");
  check(log_probs, targets, inputs, lengths, arguments["blank"].integer());
  const Tensor& alpha = arguments.tensor("log_alpha");
  TENON_CHECK(alpha.sizes()[2] > 2 * longest(lengths), "[_ctc_loss_backward] expected log_alpha of {} states, got {}",
              2 * longest(lengths) + 1, alpha.description());
  kernels::ctc_loss_backward({log_probs, targets, inputs, lengths, arguments["blank"].integer()},
                             arguments.tensor("grad"), arguments.tensor("neg_log_likelihood"), alpha.contiguous(),
                             arguments.boolean("zero_infinity"), outputs[0]);
}

std::vector<TensorMeta> backward_shape(const Arguments& arguments) {
  const Tensor& log_probs = given(arguments.tensor("log_probs"), "_ctc_loss_backward");
  check_dtype(log_probs);
  for (const char* name : {"grad", "neg_log_likelihood", "log_alpha"}) {
    const Tensor& each = given(arguments.tensor(name), "_ctc_loss_backward");
    const bool is_alpha = std::string_view(name) == "log_alpha";
    TENON_CHECK(log_probs.dim() == 3 && each.dtype() == log_probs.dtype() && each.dim() == (is_alpha ? 3 : 1) &&
                    same_size(each.size(0), log_probs.size(1)) &&
                    (!is_alpha || same_size(each.size(1), log_probs.size(0))),
                "[_ctc_loss_backward] expected {} to fit log_probs {}, got {}", name, log_probs.description(),
                each.description());
  }
  return {TensorMeta::contiguous(log_probs.sym_sizes(), log_probs.dtype(), log_probs.device())};
}

Tensor gradient(Grad& g, const char* op_name) {
  return call(op_name, {g.grad(), g.saved("log_probs"), g.saved("targets"), g.argument("input_lengths"),
                        g.argument("target_lengths"), g.saved("result0"), g.saved("result1"), g.argument("blank"),
                        g.argument("zero_infinity")});
}

// One loss for each entry, their mean by length, or their sum.
Tensor reduced(const Tensor& each, const Tensor& target_lengths, int64_t reduction, bool zero_infinity, bool alone) {
  TENON_CHECK_VALUE(reduction >= 0 && reduction <= 2,
                    "[ctc_loss] expected a reduction of 0 (none), 1 (mean) or 2 (sum), got {}", reduction);
  Tensor loss = zero_infinity ? where(isinf(each), zeros_like(each), each) : each;
  if (reduction == 1) return mean(loss / clamp_min(target_lengths.to(loss.dtype()), 1));
  if (reduction == 2) return sum(loss);
  return alone ? squeeze(loss, 0) : loss;
}

Tensor as_batch(const Tensor& log_probs) {
  return given(log_probs, "ctc_loss").dim() == 2 ? unsqueeze(log_probs, 1) : log_probs;
}

}  // namespace

OPS(ctc) {
  op("_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, bool "
     "zero_infinity=False) -> (Tensor, Tensor)")
      .kernel(forward)
      .shape([](const Arguments& arguments) {
        const Tensor &log_probs = arguments.tensor("log_probs"), &targets = arguments.tensor("targets");
        const Ints lengths = arguments["target_lengths"].ints();
        check(log_probs, targets, arguments["input_lengths"].ints(), lengths, arguments["blank"].integer());
        return metas(log_probs, SymInt(2 * longest(lengths) + 1));
      })
      .grad("log_probs", saves("log_probs", "targets", "result0", "result1"),
            [](Grad& g) { return gradient(g, "aten::_ctc_loss_backward"); })
      .not_differentiable("result1");
  // How long the longest target is, only data tells.
  op("_ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, "
     "bool "
     "zero_infinity=False) -> (Tensor, Tensor)")
      .dynamic_kernel([](const Arguments& arguments) {
        const Ints lengths = lengths_in(arguments.tensor("target_lengths"));
        const Tensor& log_probs = given(arguments.tensor("log_probs"), "ctc_loss");
        check(log_probs, arguments.tensor("targets"), lengths_in(arguments.tensor("input_lengths")), lengths,
              arguments["blank"].integer());
        std::vector<Tensor> made;
        for (const TensorMeta& meta : metas(log_probs, SymInt(2 * longest(lengths) + 1)))
          made.push_back(empty(meta.sizes, TensorOptions(meta.dtype, meta.device)));
        forward(arguments, made);
        return made;
      })
      .shape([](const Arguments& arguments) {
        const Tensor& log_probs = given(arguments.tensor("log_probs"), "ctc_loss");
        TENON_CHECK(log_probs.dim() == 3, "[ctc_loss] expected log_probs [T, N, C], got {}", log_probs.description());
        check_dtype(log_probs);
        return metas(log_probs, new_dynamic_size(1, std::nullopt));
      })
      .grad("log_probs", saves("log_probs", "targets", "input_lengths", "target_lengths", "result0", "result1"),
            [](Grad& g) {
              return call("aten::_ctc_loss_backward.Tensor",
                          {g.grad(), g.saved("log_probs"), g.saved("targets"), g.saved("input_lengths"),
                           g.saved("target_lengths"), g.saved("result0"), g.saved("result1"), g.argument("blank"),
                           g.argument("zero_infinity")});
            })
      .not_differentiable("result1");
  op("_ctc_loss_backward(Tensor grad, Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, "
     "Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False) -> Tensor")
      .kernel(backward)
      .shape(backward_shape)
      .grad_not_implemented("grad")
      .grad_not_implemented("log_probs")
      .grad_not_implemented("neg_log_likelihood")
      .grad_not_implemented("log_alpha");
  op("_ctc_loss_backward.Tensor(Tensor grad, Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor "
     "target_lengths, Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False) -> Tensor")
      .kernel(backward)
      .shape(backward_shape)
      .grad_not_implemented("grad")
      .grad_not_implemented("log_probs")
      .grad_not_implemented("neg_log_likelihood")
      .grad_not_implemented("log_alpha");
  // Example: ctc_loss(log_softmax(ones({5, 2, 4}), 2), ones({2, 3}, kInt64), {5, 5}, {3, 3});
  op("ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, int "
     "reduction=1, bool zero_infinity=False) -> Tensor")
      .decompose([](const Tensor& log_probs, const Tensor& targets, const Ints& input_lengths,
                    const Ints& target_lengths, int64_t blank, int64_t reduction, bool zero_infinity) {
        Tensor each = call("aten::_ctc_loss",
                           {as_batch(log_probs), targets, input_lengths, target_lengths, blank, zero_infinity});
        std::vector<Tensor> lengths;  // as tensors that a graph can make
        for (int64_t length : target_lengths)
          lengths.push_back(full(SymInts{1}, length, TensorOptions(kInt64, log_probs.device())));
        return reduced(each, lengths.empty() ? each : cat(lengths), reduction, zero_infinity, log_probs.dim() == 2);
      });
  // Example: ctc_loss(log_softmax(ones({5, 2, 4}), 2), ones({2, 3}, kInt64), full({2}, 5), full({2}, 3));
  op("ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, int "
     "reduction=1, bool zero_infinity=False) -> Tensor")
      .decompose([](const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                    const Tensor& target_lengths, int64_t blank, int64_t reduction, bool zero_infinity) {
        Tensor each = call("aten::_ctc_loss.Tensor", {as_batch(log_probs), targets, reshape(input_lengths, {-1}),
                                                      reshape(target_lengths, {-1}), blank, zero_infinity});
        return reduced(each, target_lengths, reduction, zero_infinity, log_probs.dim() == 2);
      });
}

}  // namespace tenon::ops

// What a node of the backward graph holds, item by item: so that two walks can be compared, and a walk can be repeated
// on other tensors and other sizes.
//
// A node shows its items always in the same order. A visitor may only look (to describe the node), or put others in
// their place (in a copy of the node, to repeat it).
#pragma once

#include <tenon/autograd/saved_tensor.h>
#include <tenon/dispatch/any_value.h>
#include <tenon/support/function_ref.h>
#include <tenon/sym/sym_float.h>

namespace tenon::autograd {

// A number for something that is not there yet: a class of nodes, a formula, a hook. Never given twice.
uint64_t new_kind();

class NodeVisitor {
 public:
  virtual ~NodeVisitor() = default;

  // Part of what the node is: which operator, how many, which dtype.
  virtual void fixed(uint64_t number) = 0;
  virtual void fixed(std::string_view text) = 0;
  // A size or a number; at the next walk it may be another.
  virtual void number(SymInt& number) = 0;
  virtual void number(SymFloat& number) = 0;
  // One that is known to change: something was compiled for any value of it.
  virtual void symbol(SymInt& symbol) { number(symbol); }
  virtual void tensor(Tensor& tensor) = 0;
  // `history`: what a saved result is given when it is read.
  virtual void saved(SavedTensor& tensor, std::string_view reader, FunctionRef<Edge()> history) = 0;

  void numbers(SymInts& list);
  void value(AnyValue& value);
};

}  // namespace tenon::autograd

// Index expressions: each is emitted in the outermost scope where its symbols are known.
#include "division.h"
#include "emitter.h"

#include <llvm/ADT/STLExtras.h>

namespace tenon::codegen {

using llvm::Value;
using sym::Expr;
using sym::Op;

int Emitter::level_of(Expr expr) {
  if (expr.is_constant()) return 0;
  if (expr.is_symbol()) return symbol_levels_[static_cast<size_t>(expr.symbol_id())];
  auto found = levels_.find(expr.node());
  if (found != levels_.end()) return found->second;
  int level = 0;
  for (Expr argument : expr.args()) level = std::max(level, level_of(argument));
  return levels_[expr.node()] = level;
}

int Emitter::place_of(int level) const {
  if (level >= top()) return top();
  return scopes_[static_cast<size_t>(level)].is_entry ? level : level + 1;
}

Value* Emitter::scalar_index(Expr expr) {
  if (expr.is_constant()) return b_.getInt64(static_cast<uint64_t>(expr.constant()));
  if (expr.is_symbol()) return symbols_[static_cast<size_t>(expr.symbol_id())].parts[0];
  const int level = level_of(expr), place = place_of(level);
  for (int at_level : {level, place}) {
    auto& known = scopes_[static_cast<size_t>(at_level)].scalars;
    if (auto found = known.find(expr.node()); found != known.end()) return found->second;
  }
  Value* made = at(place, [&] { return build_scalar(expr); });
  return scopes_[static_cast<size_t>(place)].scalars[expr.node()] = made;
}

Value* Emitter::sum_of(llvm::ArrayRef<Expr> terms, int* level) {
  llvm::SmallVector<Expr, 8> sorted(terms.begin(), terms.end());
  llvm::stable_sort(sorted, [&](Expr a, Expr b) { return level_of(a) < level_of(b); });
  Value* sum = nullptr;
  *level = 0;
  for (Expr term : sorted) {
    Value* next = scalar_index(term);
    *level = std::max(*level, level_of(term));
    sum = sum ? at(place_of(*level), [&] { return b_.CreateAdd(sum, next); }) : next;
  }
  return sum ? sum : b_.getInt64(0);
}

// One operation of integers, or of vectors of them.
Value* Emitter::index_operation(Expr expr, llvm::ArrayRef<Value*> args, bool small) {
  auto truth = [&](Value* condition) { return b_.CreateZExt(condition, args[0]->getType()); };
  auto fold = [&](auto join) {
    Value* all = args[0];
    for (Value* next : args.drop_front()) all = join(all, next);
    return all;
  };
  switch (expr.op()) {
    case Op::Add: return fold([&](Value* a, Value* b) { return b_.CreateAdd(a, b); });
    case Op::Mul: return fold([&](Value* a, Value* b) { return b_.CreateMul(a, b); });
    case Op::FloorDiv: return index_floor_div(context_, args[0], args[1], small).quotient;
    case Op::Mod: return index_floor_div(context_, args[0], args[1], small).remainder;
    case Op::Min:
      return fold([&](Value* a, Value* b) { return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, b); });
    case Op::Max:
      return fold([&](Value* a, Value* b) { return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, a, b); });
    case Op::Eq: return truth(b_.CreateICmpEQ(args[0], args[1]));
    case Op::Ne: return truth(b_.CreateICmpNE(args[0], args[1]));
    case Op::Lt: return truth(b_.CreateICmpSLT(args[0], args[1]));
    case Op::Le: return truth(b_.CreateICmpSLE(args[0], args[1]));
    case Op::And: return fold([&](Value* a, Value* b) { return b_.CreateAnd(a, b); });
    case Op::Or: return fold([&](Value* a, Value* b) { return b_.CreateOr(a, b); });
    case Op::Not: return b_.CreateXor(args[0], llvm::ConstantInt::get(args[0]->getType(), 1));
    case Op::Abs: return b_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, args[0], b_.getFalse());
    default: break;
  }
  TENON_ASSERT(false, "unknown expression {}", expr.str());
}

Value* Emitter::build_scalar(Expr expr) {
  auto args = expr.args();
  if (expr.op() == Op::Add) {
    int level;
    return sum_of(llvm::ArrayRef<Expr>(args.data(), args.size()), &level);
  }
  if (expr.is_constant() || expr.is_symbol()) return scalar_index(expr);
  llvm::SmallVector<Value*, 4> values;
  for (Expr argument : args) values.push_back(scalar_index(argument));
  return index_operation(expr, values, false);
}

Value* Emitter::lane_numbers() {
  llvm::SmallVector<llvm::Constant*, 16> lanes;
  for (int i = 0; i < target_.lanes; ++i) lanes.push_back(b_.getInt64(static_cast<uint64_t>(i)));
  return llvm::ConstantVector::get(lanes);
}

Value* Emitter::vector_index(Expr expr, int part) {
  if (!analysis_.varying(expr)) return splat(scalar_index(expr), level_of(expr));
  const int level = level_of(expr), place = place_of(level);
  const size_t index = static_cast<size_t>(part);
  for (int at_level : {level, place}) {
    auto& known = scopes_[static_cast<size_t>(at_level)].vectors;
    if (auto found = known.find(expr.node()); found != known.end() && index < found->second.size())
      if (Value* made = found->second[index]) return made;
  }
  Value* made = at(place, [&] { return build_vector(expr, part); });
  auto& slot = scopes_[static_cast<size_t>(place)].vectors[expr.node()];
  if (slot.size() <= index) slot.resize(index + 1);
  return slot[index] = made;
}

// A bound on |expr| as a number of bits, 64 if there is none. A loop's index stays below 2^40: nobody waits for longer
// loops.
int Emitter::magnitude_bits(Expr expr) const {
  auto args = expr.args();
  auto most = [&] {
    int bits = 0;
    for (Expr argument : args) bits = std::max(bits, magnitude_bits(argument));
    return bits;
  };
  auto bits_of = [](uint64_t number) { return 64 - __builtin_clzll(number | 1); };
  switch (expr.op()) {
    case Op::Constant: return bits_of(static_cast<uint64_t>(std::abs(expr.constant())));
    case Op::Symbol: return is_loop_index_[static_cast<size_t>(expr.symbol_id())] ? 40 : 64;
    case Op::Add: return std::min(64, most() + bits_of(args.size()));
    case Op::Mul: {
      int all = 0;
      for (Expr argument : args) all += magnitude_bits(argument);
      return std::min(64, all);
    }
    case Op::FloorDiv: return std::min(64, magnitude_bits(args[0]) + 1);
    case Op::Mod: return magnitude_bits(args[1]);
    case Op::Min:
    case Op::Max:
    case Op::Abs: return most();
    default: return expr.is_boolean() ? 1 : 64;
  }
}

Value* Emitter::build_vector(Expr expr, int part) {
  if (expr.is_symbol()) {
    if (!vector_ || expr.symbol_id() != vector_->symbol)
      return symbols_[static_cast<size_t>(expr.symbol_id())].parts[static_cast<size_t>(part)];
    Value* start = b_.CreateAdd(vector_->index, b_.getInt64(static_cast<uint64_t>(part * target_.lanes)));
    return b_.CreateAdd(b_.CreateVectorSplat(static_cast<unsigned>(target_.lanes), start), lane_numbers());
  }
  llvm::SmallVector<Value*, 4> values;
  for (Expr argument : expr.args()) values.push_back(vector_index(argument, part));
  const bool divides = expr.op() == Op::FloorDiv || expr.op() == Op::Mod;
  return index_operation(expr, values, divides && magnitude_bits(expr.args()[0]) <= 52);
}

std::optional<Emitter::Affine> Emitter::affine(Expr expr) {
  Affine form;
  auto is_lane = [&](Expr e) { return e.is_symbol() && vector_ && e.symbol_id() == vector_->symbol; };
  auto add_term = [&](Expr term) {
    if (!analysis_.varying(term)) return form.rest.push_back(term), true;
    if (is_lane(term)) return ++form.constant_stride, true;
    if (term.op() != Op::Mul) return false;
    int64_t constant = 1;
    int lanes = 0;
    llvm::SmallVector<Expr, 2> factors;
    for (Expr factor : term.args()) {
      if (is_lane(factor))
        ++lanes;
      else if (analysis_.varying(factor))
        return false;
      else if (factor.is_constant())
        constant *= factor.constant();
      else
        factors.push_back(factor);
    }
    if (lanes != 1) return false;
    if (factors.empty()) return form.constant_stride += constant, true;
    form.stride_products.push_back({constant, factors});
    return true;
  };
  if (expr.op() == Op::Add) {
    for (Expr term : expr.args())
      if (!add_term(term)) return std::nullopt;
  } else if (!add_term(expr)) {
    return std::nullopt;
  }
  return form;
}

Value* Emitter::stride_value(const Affine& form, int* level) {
  *level = 0;
  for (const auto& product : form.stride_products)
    for (Expr factor : product.factors) *level = std::max(*level, level_of(factor));
  return at(place_of(*level), [&] {
    Value* sum = b_.getInt64(static_cast<uint64_t>(form.constant_stride));
    for (const auto& product : form.stride_products) {
      Value* all = b_.getInt64(static_cast<uint64_t>(product.constant));
      for (Expr factor : product.factors) all = b_.CreateMul(scalar_index(factor), all);
      sum = b_.CreateAdd(sum, all);
    }
    return sum;
  });
}

}  // namespace tenon::codegen

// Loads and stores.
#include "convert.h"
#include "emitter.h"

#include "../bounds.h"

#include <llvm/IR/Module.h>

namespace tenon::codegen {

using llvm::Align;
using llvm::Value;
using loop::Buffer;
using loop::Op;

namespace {
unsigned count(int n) { return static_cast<unsigned>(n); }
}  // namespace

Emitter::Address Emitter::address(int32_t buffer, sym::Expr index) {
  const Buffer& described = kernel_.buffers[static_cast<size_t>(buffer)];
  llvm::Type* element = storage_type(context_, described.dtype);
  Value* base = buffers_[static_cast<size_t>(buffer)];
  Address result;
  result.level = level_of(index);
  if (!analysis_.varying(index)) {
    result.kind = Address::Uniform;
    Value* offset = scalar_index(index);
    result.pointer = at(place_of(result.level), [&] { return b_.CreateGEP(element, base, offset); });
    return result;
  }
  std::optional<Affine> form = affine(index);
  if (!form) {
    result.kind = Address::Scattered;
    for (int part = 0; part < vector_->parts; ++part) result.indices.push_back(vector_index(index, part));
    return result;
  }
  int rest_level;
  Value* rest = sum_of(form->rest, &rest_level);
  Value* start = at(place_of(rest_level), [&] { return b_.CreateGEP(element, base, rest); });
  const int place = place_of(result.level);
  if (form->stride_products.empty() && form->constant_stride == 1) {
    result.kind = Address::Contiguous;
    result.pointer = at(place, [&] { return b_.CreateGEP(element, start, vector_->index); });
    return result;
  }
  result.kind = Address::Strided;
  int stride_level;
  Value* stride = stride_value(*form, &stride_level);
  result.lane_offsets = at(place_of(stride_level), [&] {
    return b_.CreateMul(b_.CreateVectorSplat(count(target_.lanes), stride), lane_numbers());
  });
  result.part_step = at(place_of(stride_level),
                        [&] { return b_.CreateMul(stride, b_.getInt64(static_cast<uint64_t>(target_.lanes))); });
  result.pointer = at(place, [&] { return b_.CreateGEP(element, start, b_.CreateMul(vector_->index, stride)); });
  return result;
}

Value* Emitter::part_pointer(const Address& address, llvm::Type* element, int part) {
  if (part == 0 || address.kind == Address::Uniform) return address.pointer;
  Value* offset = address.kind == Address::Contiguous
                      ? b_.getInt64(static_cast<uint64_t>(part * target_.lanes))
                      : b_.CreateMul(address.part_step, b_.getInt64(static_cast<uint64_t>(part)));
  return b_.CreateGEP(element, address.pointer, offset);
}

Value* Emitter::lane_pointers(const Address& address, const Buffer& buffer, Value* base, int part) {
  llvm::Type* element = storage_type(context_, buffer.dtype);
  if (address.kind == Address::Scattered) return b_.CreateGEP(element, base, address.indices[count(part)]);
  return b_.CreateGEP(element, part_pointer(address, element, part), address.lane_offsets);
}

Value* Emitter::zeros() {
  constexpr std::string_view kName = "tenon_zeros";
  if (llvm::GlobalVariable* made = module_.getNamedGlobal(kName)) return made;
  llvm::Type* type = llvm::ArrayType::get(b_.getInt64Ty(), static_cast<uint64_t>(target_.lanes));
  auto* made = new llvm::GlobalVariable(module_, type, true, llvm::GlobalValue::InternalLinkage,
                                        llvm::Constant::getNullValue(type), kName);
  made->setAlignment(Align(64));
  return made;
}

Value* Emitter::load_part(const Address& from, const Buffer& buffer, int part, Value* wanted) {
  llvm::Type* element = storage_type(context_, buffer.dtype);
  const Align alignment(static_cast<uint64_t>(size_of(buffer.dtype)));
  Value* base = buffers_[static_cast<size_t>(&buffer - kernel_.buffers.data())];
  const bool by_lane = wanted && wanted->getType()->isVectorTy();
  // Where every lane wants the same, zeros are read instead of nothing.
  auto readable = [&](Value* pointer) {
    if (!wanted) return pointer;
    return b_.CreateSelect(by_lane ? any_lane(wanted) : wanted, pointer, zeros());
  };
  llvm::Type* type = llvm::FixedVectorType::get(element, count(target_.lanes));
  Value* nothing = llvm::Constant::getNullValue(type);
  if (from.kind == Address::Uniform) {
    Value* one = b_.CreateAlignedLoad(element, readable(from.pointer), alignment);
    if (by_lane) one = b_.CreateSelect(wanted, b_.CreateVectorSplat(count(target_.lanes), one), nothing);
    return from_storage(context_, buffer.dtype, one);
  }
  Value* mask = vector_->mask;
  if (by_lane) mask = mask ? b_.CreateAnd(mask, wanted) : wanted;
  Value* raw;
  if (from.kind == Address::Contiguous) {
    Value* pointer = part_pointer(from, element, part);
    if (!by_lane) pointer = readable(pointer);
    raw = mask ? static_cast<Value*>(b_.CreateMaskedLoad(type, pointer, alignment, mask, nothing))
               : b_.CreateAlignedLoad(type, pointer, alignment);
  } else {
    if (wanted && !by_lane) {
      Value* all = b_.CreateVectorSplat(count(target_.lanes), wanted);
      mask = mask ? b_.CreateAnd(mask, all) : all;
    }
    raw = b_.CreateMaskedGather(type, lane_pointers(from, buffer, base, part), alignment, mask, nothing);
  }
  return from_storage(context_, buffer.dtype, raw);
}

std::vector<int32_t> Emitter::loop_indices(sym::Expr index) const {
  std::vector<int32_t> result;
  for (int32_t id : sym::symbols_of(index))
    if (is_loop_index_[static_cast<size_t>(id)]) result.push_back(id);
  return result;
}

// Sums down columns jump from row to row: the processor's own prefetching ends with the page.
void Emitter::prefetch_rows(const Address& from, const Op& op) {
  constexpr int64_t kRows = 12;  // ahead
  if (!vector_ || from.kind != Address::Contiguous || loops_.empty() || !loops_.back() || !loops_.back()->reduction ||
      vector_->symbol == loops_.back()->index.symbol_id())
    return;
  const sym::Expr index = loops_.back()->index;
  sym::Expr step = kernel_.pool->substitute(op.index, {{index.symbol_id(), index + 1}}) - op.index;
  if (analysis_.varying(step) || step.is_constant(0) || step.is_constant(1)) return;
  for (int32_t symbol : sym::symbols_of(step))
    if (symbol == index.symbol_id()) return;
  llvm::Type* element = storage_type(context_, kernel_.buffers[static_cast<size_t>(op.buffer)].dtype);
  Value* ahead = b_.CreateMul(scalar_index(step), b_.getInt64(kRows));
  for (int part = 0; part < vector_->parts; ++part) {
    Value* there = b_.CreateGEP(element, part_pointer(from, element, part), ahead);
    b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {there->getType()},
                       {there, b_.getInt32(0), b_.getInt32(3), b_.getInt32(1)});
  }
}

// What is read in order beside a streaming store is asked for in time: with a long body the processor does not see far
// enough ahead to hide the latency of memory, nor that of the second cache for rows that are read again and again,
// which the streams push out of the first. Many streams beside such rows must not take up so much of it.
void Emitter::prefetch(const Address& from, const Op& op) {
  prefetch_rows(from, op);
  if (!vector_ || !vector_->streaming || from.kind != Address::Contiguous) return;
  const bool streams = loop_indices(op.index) == streamed_over_;
  const int64_t ahead = crowded_ ? 512 : streams ? 2048 : 1024;  // bytes
  llvm::Type* element = storage_type(context_, kernel_.buffers[static_cast<size_t>(op.buffer)].dtype);
  for (int part = 0; part < vector_->parts; ++part) {
    Value* there =
        b_.CreateConstGEP1_64(b_.getInt8Ty(), part_pointer(from, element, part), static_cast<uint64_t>(ahead));
    b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {there->getType()},
                       {there, b_.getInt32(0), b_.getInt32(3), b_.getInt32(1)});
  }
}

void Emitter::emit_load(const Op& op) {
  check_bounds(op);
  const Buffer& buffer = kernel_.buffers[static_cast<size_t>(op.buffer)];
  Address from = address(op.buffer, op.index);
  const Parts* condition = op.operands[0] == loop::kNone ? nullptr : &value(op.operands[0]);
  if (!condition) prefetch(from, op);
  Parts result;
  // A load may move out of a loop if nothing in the kernel writes there; the loop's entry runs only if the loop does.
  const bool movable = !analysis_.is_stored(op.buffer) && !bounds_checks();
  result.level = movable ? std::max(from.level, condition ? condition->level : 0) : top();
  const int parts = analysis_.varying(op.result) ? vector_->parts : 1;
  at(place_of(result.level), [&] {
    for (int part = 0; part < parts; ++part)
      result.parts.push_back(load_part(from, buffer, part, condition ? part_of(*condition, part) : nullptr));
  });
  define(op.result, std::move(result));
}

void Emitter::store_part(const Address& to, const Buffer& buffer, int part, Value* value) {
  const Align alignment(static_cast<uint64_t>(size_of(buffer.dtype)));
  Value* base = buffers_[static_cast<size_t>(&buffer - kernel_.buffers.data())];
  Value* raw = to_storage(context_, buffer.dtype, value);
  if (to.kind == Address::Uniform) {
    b_.CreateAlignedStore(raw, to.pointer, alignment);
  } else if (to.kind != Address::Contiguous) {
    b_.CreateMaskedScatter(raw, lane_pointers(to, buffer, base, part), alignment, vector_->mask);
  } else if (Value* pointer = part_pointer(to, storage_type(context_, buffer.dtype), part); vector_->mask) {
    b_.CreateMaskedStore(raw, pointer, alignment, vector_->mask);
  } else if (vector_->streaming && buffer.streaming) {
    const int64_t bytes = std::min<int64_t>(target_.bits / 8, target_.lanes * size_of(buffer.dtype));
    llvm::StoreInst* store = b_.CreateAlignedStore(raw, pointer, Align(static_cast<uint64_t>(bytes)));
    store->setMetadata(llvm::LLVMContext::MD_nontemporal,
                       llvm::MDNode::get(b_.getContext(), llvm::ConstantAsMetadata::get(b_.getInt32(1))));
    wrote_streaming_ = true;
  } else {
    b_.CreateAlignedStore(raw, pointer, alignment);
  }
}

void Emitter::emit_store(const Op& op) {
  check_bounds(op);
  const Buffer& buffer = kernel_.buffers[static_cast<size_t>(op.buffer)];
  Address to = address(op.buffer, op.index);
  const Parts& stored = value(op.operands[0]);
  if (to.kind == Address::Uniform) {
    // Every lane writes the same element, so any may win; lane 0 always exists.
    Value* one = stored.parts[0];
    store_part(to, buffer, 0, one->getType()->isVectorTy() ? b_.CreateExtractElement(one, uint64_t{0}) : one);
    return;
  }
  for (int part = 0; part < vector_->parts; ++part) store_part(to, buffer, part, vector_part(stored, part));
}

void Emitter::check_bounds(const Op& op) {
  const Buffer& buffer = kernel_.buffers[static_cast<size_t>(op.buffer)];
  if (!bounds_checks() || !buffer.extent.defined()) return;
  Value* extent = scalar_index(buffer.extent);
  const bool varying = analysis_.varying(op.index);
  for (int part = 0; part < (varying ? vector_->parts : 1); ++part) {
    Value* index = varying ? vector_index(op.index, part) : scalar_index(op.index);
    Value* limit = varying ? splat(extent, level_of(buffer.extent)) : extent;
    Value* bad = b_.CreateICmpUGE(index, limit);
    Value* masked = varying && vector_->mask ? b_.CreateAnd(bad, vector_->mask) : bad;
    if (op.code == loop::OpCode::Load && op.operands[0] != loop::kNone) {
      const Parts& condition = value(op.operands[0]);
      if (varying) {
        masked = b_.CreateAnd(masked, vector_part(condition, part));
      } else {
        // One index, and perhaps a condition for each lane.
        Value* any = nullptr;
        for (Value* each : condition.parts) any = any ? b_.CreateOr(any, any_lane(each)) : any_lane(each);
        masked = b_.CreateAnd(masked, any);
      }
    }
    llvm::BasicBlock* after = begin_rare(varying ? b_.CreateOrReduce(masked) : masked);
    Value* first = index;
    if (varying) {
      // The smallest bad index; as unsigned numbers negative ones are large, and are shown if there is nothing else.
      Value* none = llvm::Constant::getAllOnesValue(index->getType());
      first = b_.CreateIntMinReduce(b_.CreateSelect(masked, index, none), false);
    }
    llvm::FunctionCallee report = module_.getOrInsertFunction(
        "tenon_bounds_failed",
        llvm::FunctionType::get(b_.getVoidTy(), {b_.getPtrTy(), b_.getInt64Ty(), b_.getInt64Ty()}, false));
    b_.CreateCall(report, {b_.CreateGlobalString(kernel_.name + ": " + std::string(loop::traits(op.code).name) + " " +
                                                 buffer.name),
                           first, extent});
    end_rare(after);
  }
}

}  // namespace tenon::codegen

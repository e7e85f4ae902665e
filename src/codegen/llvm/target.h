// The machine that kernels are generated for: the host's features, capped by `isa_bits()`.
#pragma once

#include "backend.h"

#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <string>

namespace tenon::codegen {

struct TargetSpec {
  int bits = 128;  // the widest vectors
  int lanes = 4;   // lanes of every vector, whatever the dtype: bits / 32
  bool has_fma = false;
  bool has_half = false;  // conversions between float16 and float32 (F16C)
  std::string cpu;        // as LLVM names it
  std::string features;   // "+avx2,+fma,…"
};

const TargetSpec& target_spec(Target target);
// The widest vectors of the host: 128, 256 or 512.
int host_bits();

// A TargetMachine may serve one thread at a time; `borrow_target_machine` takes one from a pool and the handle gives
// it back.
struct ReturnTargetMachine {
  Target target;
  void operator()(llvm::TargetMachine* machine) const;
};
using TargetMachineHandle = std::unique_ptr<llvm::TargetMachine, ReturnTargetMachine>;
TargetMachineHandle borrow_target_machine(Target target);

}  // namespace tenon::codegen

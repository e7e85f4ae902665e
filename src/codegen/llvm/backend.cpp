#include "backend.h"

#include "emitter.h"
#include "target.h"

#include "../bounds.h"

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/MCContext.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/Scalar.h>
#include <llvm/Transforms/Utils/Cloning.h>

namespace tenon::codegen {
namespace {

// Common subexpressions and constants only: the emitter already puts everything where it belongs.
void simplify(llvm::Module& module) {
  llvm::legacy::FunctionPassManager passes(&module);
  passes.add(llvm::createEarlyCSEPass());
  passes.doInitialization();
  for (llvm::Function& function : module)
    if (!function.isDeclaration()) passes.run(function);
  passes.doFinalization();
}

std::string machine_code(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  bool failed = machine.addPassesToEmitFile(passes, stream, nullptr, type, /*DisableVerify=*/true);
  TENON_ASSERT(!failed, "the target cannot write objects");
  passes.run(module);
  return std::string(bytes.begin(), bytes.end());
}

}  // namespace

GeneratedObject generate_object(const loop::Kernel& kernel, Target target, bool want_text) {
  TargetMachineHandle machine = borrow_target_machine(target);
  llvm::LLVMContext context;
  llvm::Module module(kernel.name, context);
  module.setTargetTriple(machine->getTargetTriple().str());
  module.setDataLayout(machine->createDataLayout());
  emit_kernel(kernel, target_spec(target), module);
  std::string problem;
  llvm::raw_string_ostream problem_stream(problem);
  if ((want_text || bounds_checks()) && llvm::verifyModule(module, &problem_stream)) {
    std::string text;
    llvm::raw_string_ostream(text) << module;
    TENON_ASSERT(false, "{}\n{}\n{}", problem, loop::to_string(kernel), text);
  }
  simplify(module);
  GeneratedObject result;
  if (want_text) {
    llvm::raw_string_ostream(result.llvm_ir) << module;
    result.assembly = machine_code(*llvm::CloneModule(module), *machine, llvm::CodeGenFileType::AssemblyFile);
  }
  result.object = machine_code(module, *machine, llvm::CodeGenFileType::ObjectFile);
  return result;
}

}  // namespace tenon::codegen

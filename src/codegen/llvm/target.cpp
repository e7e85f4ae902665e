#include "target.h"
#include "support/at_fork.h"

#include <tenon/codegen/compile.h>

#include <fmt/format.h>
#include <llvm/ADT/StringMap.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/Host.h>

#include "../bounds.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <vector>

namespace tenon::codegen {
namespace {

// What AVX-512 kernels may count on: without these the host counts as a 256-bit one.
constexpr const char* kAvx512[] = {"avx512f", "avx512bw", "avx512dq", "avx512vl"};
constexpr const char* kAvx2[] = {"avx2", "fma", "f16c"};

const llvm::StringMap<bool>& host_features() {
  // Never destroyed: static objects may compile while the process ends.
  static const auto* features = [] {
    auto* copy = new llvm::StringMap<bool>;
    for (const auto& entry : llvm::sys::getHostCPUFeatures()) (*copy)[entry.getKey()] = entry.getValue();
    return copy;
  }();
  return *features;
}

template <size_t N>
bool host_has(const char* const (&names)[N]) {
  for (const char* name : names)
    if (!host_features().lookup(name)) return false;
  return true;
}

// Intel's cores up to Ice Lake ask for 256-bit vectors to keep their clock; our vectors are explicit.
constexpr const char* kWholeVectors = "-prefer-256-bit";

std::string all_features() {
  std::vector<std::string> on;
  for (const auto& entry : host_features())
    if (entry.getValue()) on.push_back("+" + entry.getKey().str());
  std::sort(on.begin(), on.end());
  on.push_back(kWholeVectors);
  return fmt::format("{}", fmt::join(on, ","));
}

std::atomic<int> forced_bits{0};

int default_bits() {
  static const int bits = [] {
    const char* text = std::getenv("TENON_ISA");
    if (!text || !*text) return host_bits();
    for (int good : {128, 256, 512})
      if (std::to_string(good) == text) return std::min(good, host_bits());
    fail("[TENON_ISA] expected 128, 256 or 512, got '{}'", text);
  }();
  return bits;
}

struct Pool {
  support::ForkSafe<std::mutex> mutex;
  std::vector<llvm::TargetMachine*> idle[4];  // by `slot`
};
// Never destroyed: threads may still hold machines when the process ends.
Pool& machine_pool() {
  static Pool* pool = new Pool;
  return *pool;
}
// (What we ask of a machine with narrower vectors, all such machines have.)
size_t slot(Target target) { return target.bits == 128 ? 0 : target.bits == 256 ? 1 : target.portable ? 3 : 2; }

// Sets one of LLVM's own switches, which are reached by name only.
void set_llvm_switch(const char* switch_name, bool on) {
  auto& all = llvm::cl::getRegisteredOptions();
  auto found = all.find(switch_name);
  TENON_ASSERT(found != all.end(), "LLVM has no switch {}", switch_name);
  static_cast<llvm::cl::opt<bool>*>(found->second)->setValue(on);
}

llvm::TargetMachine* make_machine(Target machine_wanted) {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    // LLVM would end the process. It is built without exceptions: what it had in hand is lost, and the kernel is
    // refused.
    llvm::install_bad_alloc_error_handler([](void*, const char*, bool) { throw std::bad_alloc(); });
    // A third of the time of a small kernel, and the emitter's addresses are already simple.
    set_llvm_switch("disable-lsr", true);
  });
  std::string error;
  const std::string triple = llvm::sys::getProcessTriple();
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, error);
  TENON_ASSERT(target, "{}", error);
  const TargetSpec& spec = target_spec(machine_wanted);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  options.EnableFastISel = false;
  options.TrapUnreachable = false;
  llvm::TargetMachine* machine =
      target->createTargetMachine(triple, spec.cpu, spec.features, options, llvm::Reloc::PIC_, llvm::CodeModel::Small,
                                  llvm::CodeGenOptLevel::Default, /*JIT=*/true);
  TENON_ASSERT(machine, "no target machine for {}", triple);
  machine->setFastISel(false);
  return machine;
}

}  // namespace

int host_bits() {
  static const int bits = !host_has(kAvx2) ? 128 : host_has(kAvx512) ? 512 : 256;
  return bits;
}

int isa_bits() {
  int forced = forced_bits.load(std::memory_order_relaxed);
  return forced ? forced : default_bits();
}

void set_isa(int bits) {
  TENON_CHECK(bits == 0 || bits == 128 || bits == 256 || bits == 512, "[set_isa] expected 128, 256 or 512, got {}",
              bits);
  // Going back to the machine's own asks for nothing: destructors do that, also where there is no memory.
  forced_bits = bits == 0 ? 0 : std::min(bits, host_bits());
}

static TargetSpec make_spec(Target target) {
  TargetSpec spec;
  spec.bits = target.bits;
  spec.lanes = target.bits / 32;
  spec.has_fma = spec.has_half = target.bits >= 256;
  spec.cpu = target.bits == 512 ? "x86-64-v4" : target.bits == 256 ? "x86-64-v3" : "x86-64-v2";
  if (target.bits == 512) spec.features = kWholeVectors;
  if (target.bits == 512 && !target.portable) {
    spec.cpu = llvm::sys::getHostCPUName().str();
    spec.features = all_features();
  }
  return spec;
}

// Made once: asking the host for its features is slow, above all inside a virtual machine.
const TargetSpec& target_spec(Target target) {
  // Never destroyed: threads may compile while the process ends.
  static const auto& specs =
      *new std::array{make_spec({128}), make_spec({256}), make_spec({512}), make_spec({512, true})};
  return specs[slot(target)];
}

std::string target_description() {
  const TargetSpec& spec = target_spec({isa_bits()});
  return fmt::format("{}-bit {} {} llvm {} tenon {}{}", spec.bits, spec.cpu, spec.features, LLVM_VERSION_STRING,
                     kVersion, bounds_checks() ? " bounds" : "");
}

void ReturnTargetMachine::operator()(llvm::TargetMachine* machine) const {
  Pool& pool = machine_pool();
  std::lock_guard lock(pool.mutex);
  pool.idle[slot(target)].push_back(machine);
}

TargetMachineHandle borrow_target_machine(Target target) {
  Pool& pool = machine_pool();
  {
    std::lock_guard lock(pool.mutex);
    auto& idle = pool.idle[slot(target)];
    if (!idle.empty()) {
      llvm::TargetMachine* machine = idle.back();
      idle.pop_back();
      return TargetMachineHandle(machine, {target});
    }
  }
  return TargetMachineHandle(make_machine(target), {target});
}

}  // namespace tenon::codegen

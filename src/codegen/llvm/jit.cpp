#include "jit.h"
#include "support/at_fork.h"

#include "../runtime_symbols.h"

#include <tenon/support/error.h>

#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>
#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/ExecutorProcessControl.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/Support/MemoryBuffer.h>

#include <atomic>
#include <mutex>

namespace tenon::codegen {
namespace {

namespace orc = llvm::orc;

// One session for the process, never ended: kernels may be held by whatever is destroyed last.
struct Session {
  std::unique_ptr<orc::ExecutionSession> session;
  std::unique_ptr<orc::ObjectLinkingLayer> layer;
  orc::JITDylib* externals = nullptr;
  std::atomic<int64_t> count{0}, loaded{0};
  support::ForkSafe<std::mutex> mutex;
  std::string problem;  // what was reported last: lookups say only that they failed

  Session() {
    auto control = orc::SelfExecutorProcessControl::Create();
    TENON_ASSERT(control, "{}", llvm::toString(control.takeError()));
    session = std::make_unique<orc::ExecutionSession>(std::move(*control));
    session->setErrorReporter([this](llvm::Error error) {
      std::lock_guard lock(mutex);
      problem = llvm::toString(std::move(error));
    });
    layer = std::make_unique<orc::ObjectLinkingLayer>(*session);
    externals = &session->createBareJITDylib("externals");
    orc::SymbolMap symbols;
    for (const RuntimeSymbol& symbol : runtime_symbols())
      symbols[session->intern(symbol.name)] = {orc::ExecutorAddr::fromPtr(symbol.address),
                                               llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
    llvm::cantFail(externals->define(orc::absoluteSymbols(std::move(symbols))));
  }
};

Session& jit_session() {
  static Session* session = new Session;
  return *session;
}

}  // namespace

LoadedCode load_object_code(const std::string& object, std::string* error) {
  Session& jit = jit_session();
  orc::JITDylib& library = jit.session->createBareJITDylib("kernel" + std::to_string(jit.count++));
  ++jit.loaded;
  std::shared_ptr<void> owner(&library, [](orc::JITDylib* unused) {
    support::NoFork session_is_locked;
    Session& same = jit_session();
    if (llvm::Error problem = same.session->removeJITDylib(*unused)) llvm::consumeError(std::move(problem));
    --same.loaded;
  });
  library.addToLinkOrder(*jit.externals);
  auto buffer = llvm::MemoryBuffer::getMemBufferCopy(object, "kernel");
  if (llvm::Error problem = jit.layer->add(library, std::move(buffer))) {
    *error = llvm::toString(std::move(problem));
    return {};
  }
  auto symbol = jit.session->lookup({&library}, jit.session->intern(kEntryName));
  if (!symbol) {
    std::lock_guard lock(jit.mutex);
    *error = fmt::format("{}: {}", llvm::toString(symbol.takeError()), std::exchange(jit.problem, ""));
    return {};
  }
  return {symbol->getAddress().toPtr<loop::EntryPoint>(), std::move(owner)};
}

int64_t loaded_object_count() { return jit_session().loaded; }

}  // namespace tenon::codegen

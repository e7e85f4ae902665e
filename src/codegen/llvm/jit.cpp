#include "jit.h"

#include "../runtime_symbols.h"

#include <tenon/support/error.h>

#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>
#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/ExecutorProcessControl.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/Support/MemoryBuffer.h>

#include <atomic>

namespace tenon::codegen {
namespace {

namespace orc = llvm::orc;

// One session for the process, never ended: entry points outlive everything.
struct Session {
  std::unique_ptr<orc::ExecutionSession> session;
  std::unique_ptr<orc::ObjectLinkingLayer> layer;
  orc::JITDylib* externals = nullptr;
  std::atomic<int64_t> count{0};

  Session() {
    auto control = orc::SelfExecutorProcessControl::Create();
    TENON_ASSERT(control, "{}", llvm::toString(control.takeError()));
    session = std::make_unique<orc::ExecutionSession>(std::move(*control));
    session->setErrorReporter([](llvm::Error error) { llvm::consumeError(std::move(error)); });
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

loop::EntryPoint load_entry_point(const std::string& object, std::string* error) {
  Session& jit = jit_session();
  orc::JITDylib& library = jit.session->createBareJITDylib("kernel" + std::to_string(jit.count++));
  library.addToLinkOrder(*jit.externals);
  auto buffer = llvm::MemoryBuffer::getMemBufferCopy(object, "kernel");
  if (llvm::Error problem = jit.layer->add(library, std::move(buffer))) {
    *error = llvm::toString(std::move(problem));
    return nullptr;
  }
  auto symbol = jit.session->lookup({&library}, jit.session->intern(kEntryName));
  if (!symbol) {
    *error = llvm::toString(symbol.takeError());
    return nullptr;
  }
  return symbol->getAddress().toPtr<loop::EntryPoint>();
}

}  // namespace tenon::codegen

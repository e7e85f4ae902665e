#include <tenon/dispatch/opaque_kernel.h>

#include <algorithm>

namespace tenon::dispatch {

std::string_view name(Epilogue epilogue) { return epilogue == Epilogue::Relu ? "relu" : "nothing"; }

bool OpaqueKernel::takes(Epilogue epilogue) const {
  return std::find(epilogues.begin(), epilogues.end(), epilogue) != epilogues.end();
}

const OpaqueKernel* opaque_kernel_of(const Operator& op) {
  return op.traits() ? op.traits()->opaque_kernel() : nullptr;
}

}  // namespace tenon::dispatch

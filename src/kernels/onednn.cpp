#include "kernels/onednn.h"

#include <cstdlib>

namespace tenon::kernels::onednn {
namespace {

dnnl::engine* make_engine() {
  // oneDNN 2.6.3 ends the process with an illegal instruction where it uses AMX tiles: it stays below them unless told.
  if (!std::getenv("DNNL_MAX_CPU_ISA")) dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx512_core_bf16);
  return new dnnl::engine(dnnl::engine::kind::cpu, 0);
}

}  // namespace

dnnl::engine& engine() {
  static dnnl::engine* cpu = make_engine();  // never destroyed: threads may end after it would be
  return *cpu;
}

dnnl::memory::data_type data_type(Dtype dtype) {
  return dtype == Dtype::BFloat16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

}  // namespace tenon::kernels::onednn

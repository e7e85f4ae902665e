#include "kernels/onednn.h"

#include "kernels/at_end.h"

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

// oneDNN keeps its caches and lists of implementations in static objects of its functions, made when one is first
// described. Static objects go in the reverse order: made while this library is loaded, they outlive every object of
// the program, and a destructor or an `atexit` handler may still compute products. Takes about a millisecond.
[[maybe_unused]] const bool described = [] {
  using dnnl::memory;
  auto layout = [](const memory::dims& sizes, memory::format_tag tag) {
    return memory::desc(sizes, memory::data_type::f32, tag);
  };
  const memory::desc rows = layout({4, 4}, memory::format_tag::ab), columns = layout({4, 4}, memory::format_tag::ba);
  const memory::desc image = layout({1, 1, 4}, memory::format_tag::abc),
                     tap = layout({1, 1, 1}, memory::format_tag::abc);
  try {
    dnnl::get_primitive_cache_capacity();
    dnnl::matmul::primitive_desc product(dnnl::matmul::desc(rows, rows, rows), engine());
    dnnl::reorder::primitive_desc reorder(engine(), rows, engine(), columns);
    using Forward = dnnl::convolution_forward;
    Forward::primitive_desc convolution(
        Forward::desc(dnnl::prop_kind::forward, dnnl::algorithm::convolution_direct, image, tap, image, {1}, {0}, {0}),
        engine());
  } catch (const dnnl::error&) {
    return false;  // whoever computes one is told
  }
  return true;
}();

// Right before those go.
[[maybe_unused]] const bool closes = [] {
  at_end(support::NoFork::close);
  return true;
}();

dnnl::memory::data_type data_type(Dtype dtype) {
  return dtype == Dtype::BFloat16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

}  // namespace tenon::kernels::onednn

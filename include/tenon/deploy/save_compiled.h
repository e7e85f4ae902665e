// Compiled functions as files, for programs that have no compiler (package/load_compiled.h).
//
//   nn::Linear layer(2, 2);
//   auto infer = freeze(layer, {.dynamic = Dynamic::On});
//   NoGrad off;
//   infer(ones({3, 2}));                       // what was compiled is what is saved
//   auto path = std::filesystem::temp_directory_path() / "tenon_example_layer.tenon";
//   save_compiled(infer, path);
//   auto loaded = load_compiled<Tensor(Tensor)>(path);
//   Tensor y = loaded(ones({5, 2}));
//   std::filesystem::remove(path);
#pragma once

#include <tenon/capture/compile.h>

#include <filesystem>

namespace tenon {

namespace deploy {
void save(const capture::CompiledFunction& compiled, const std::filesystem::path& path);
}

// Writes every way in which the function was compiled, with its guards and its kernels for two levels of x86-64 (v3 and
// v4), and the tensors that it reaches by itself (parameters, or what freezing made of them) as they are now. An Error
// that says why if the function cannot be saved: it breaks, computes gradients, or was not called yet. The file appears
// when it is complete.
//
//   auto twice = compile([](Tensor a) { return a * 2; });
//   twice(ones({3}));
//   auto path = std::filesystem::temp_directory_path() / "tenon_example_twice.tenon";
//   save_compiled(twice, path);
//   std::filesystem::remove(path);
template <typename F>
void save_compiled(const Compiled<F>& compiled, const std::filesystem::path& path) {
  deploy::save(compiled.compiled_function(), path);
}

}  // namespace tenon

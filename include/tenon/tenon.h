// Everything that an ordinary program needs.
#pragma once

#include <tenon/autograd/checkpoint.h>
#include <tenon/autograd/engine.h>
#include <tenon/autograd/forward_ad.h>
#include <tenon/autograd/function.h>
#include <tenon/autograd/functional.h>
#include <tenon/autograd/grad.h>
#include <tenon/autograd/grad_mode.h>
#include <tenon/autograd/inference_mode.h>
#include <tenon/autograd/meta.h>
#include <tenon/autograd/view_func.h>
#include <tenon/autograd/vmap.h>
#include <tenon/capture/compile.h>
#include <tenon/capture/marks.h>
#include <tenon/compiled_autograd/enable.h>
#include <tenon/control/cond.h>
#include <tenon/control/scan.h>
#include <tenon/control/while_loop.h>
#include <tenon/core/accessor.h>
#include <tenon/core/cell.h>
#include <tenon/core/dlpack.h>
#include <tenon/core/generators.h>
#include <tenon/core/indexing.h>
#include <tenon/core/print.h>
#include <tenon/core/random.h>
#include <tenon/core/tensor.h>
#include <tenon/data/dataset.h>
#include <tenon/data/loader.h>
#include <tenon/data/progress.h>
#include <tenon/data/text.h>
#include <tenon/deploy/save_compiled.h>
#include <tenon/dispatch/autocast.h>
#include <tenon/dispatch/numbers.h>
#include <tenon/dispatch/profiler.h>
#include <tenon/generated/ops.h>
#include <tenon/io/numpy.h>
#include <tenon/io/pytorch.h>
#include <tenon/io/safetensors.h>
#include <tenon/io/tensors.h>
#include <tenon/nn/activations.h>
#include <tenon/nn/attention.h>
#include <tenon/nn/containers.h>
#include <tenon/nn/convolution.h>
#include <tenon/nn/dropout.h>
#include <tenon/nn/embedding.h>
#include <tenon/nn/evaluating.h>
#include <tenon/nn/functional.h>
#include <tenon/nn/generate.h>
#include <tenon/nn/gpt.h>
#include <tenon/nn/init.h>
#include <tenon/nn/initialize.h>
#include <tenon/nn/layer.h>
#include <tenon/nn/linear.h>
#include <tenon/nn/losses.h>
#include <tenon/nn/modules.h>
#include <tenon/nn/normalization.h>
#include <tenon/nn/pooling.h>
#include <tenon/nn/recurrent.h>
#include <tenon/nn/recurrent_sequential.h>
#include <tenon/nn/residual.h>
#include <tenon/nn/shape.h>
#include <tenon/nn/sizes.h>
#include <tenon/nn/utils.h>
#include <tenon/nn/weight_norm.h>
#include <tenon/numerics/conjugate_gradients.h>
#include <tenon/numerics/lobpcg.h>
#include <tenon/numerics/ode.h>
#include <tenon/numerics/stencil.h>
#include <tenon/optim/adam.h>
#include <tenon/optim/adaptive.h>
#include <tenon/optim/lbfgs.h>
#include <tenon/optim/minimize.h>
#include <tenon/optim/optimizer.h>
#include <tenon/optim/schedulers.h>
#include <tenon/optim/sgd.h>
#include <tenon/package/load_compiled.h>
#include <tenon/support/counters.h>
#include <tenon/support/log.h>
#include <tenon/support/parallel.h>
#include <tenon/training/evaluate.h>
#include <tenon/training/fit.h>

namespace tenon {

// Beside `backward`, where people look for it:
//
//   Tensor w = ones({3}).set_requires_grad();
//   Tensor slope = grad({(w * w).sum()}, {w})[0];  // twos
using autograd::grad;

}  // namespace tenon

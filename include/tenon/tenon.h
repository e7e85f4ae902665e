// Everything that an ordinary program needs.
#pragma once

#include <tenon/autograd/engine.h>
#include <tenon/autograd/grad_mode.h>
#include <tenon/autograd/meta.h>
#include <tenon/capture/compile.h>
#include <tenon/capture/marks.h>
#include <tenon/compiled_autograd/enable.h>
#include <tenon/core/accessor.h>
#include <tenon/core/cell.h>
#include <tenon/core/random.h>
#include <tenon/core/tensor.h>
#include <tenon/dispatch/profiler.h>
#include <tenon/generated/ops.h>
#include <tenon/nn/functional.h>
#include <tenon/nn/modules.h>
#include <tenon/nn/recurrent.h>
#include <tenon/optim/sgd.h>
#include <tenon/support/counters.h>
#include <tenon/support/log.h>
#include <tenon/support/parallel.h>

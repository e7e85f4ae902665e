// The layers, the losses and what holds them.
#pragma once

#include <tenon/nn/activations.h>
#include <tenon/nn/attention.h>
#include <tenon/nn/containers.h>
#include <tenon/nn/convolution.h>
#include <tenon/nn/dropout.h>
#include <tenon/nn/embedding.h>
#include <tenon/nn/functional.h>
#include <tenon/nn/init.h>
#include <tenon/nn/layer.h>
#include <tenon/nn/linear.h>
#include <tenon/nn/losses.h>
#include <tenon/nn/module.h>
#include <tenon/nn/normalization.h>
#include <tenon/nn/pooling.h>
#include <tenon/nn/recurrent.h>
#include <tenon/nn/shape.h>
#include <tenon/nn/sizes.h>
#include <tenon/nn/utils.h>

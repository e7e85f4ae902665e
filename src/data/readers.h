// The readers of pictures, from bytes: what the datasets do once their files are mapped. For the tests and the fuzz
// targets.
#pragma once

#include <tenon/core/tensor.h>

#include "io/bytes.h"

namespace tenon::data {

Tensor read_idx(const io::Bytes& file);
// Rows of a label and 3 planes of 32 by 32 pixels, all of them bytes.
Tensor read_cifar10(const io::Bytes& file);

}  // namespace tenon::data

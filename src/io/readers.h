// The readers, from bytes: what the functions of the public headers do once the file is mapped. For the tests and the
// fuzz targets.
#pragma once

#include <tenon/io/numpy.h>
#include <tenon/io/pytorch.h>
#include <tenon/io/safetensors.h>

#include "io/bytes.h"

namespace tenon::io {

Safetensors read_safetensors(const Bytes& bytes);
Tensor read_npy(const Bytes& bytes);
NamedTensors read_npz(const Bytes& bytes);
Object read_pytorch(const Bytes& bytes);

}  // namespace tenon::io

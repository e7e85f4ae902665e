#include <tenon/core/scalar.h>

namespace tenon {

Dtype Scalar::dtype() const {
  switch (kind_) {
    case Kind::Bool: return Dtype::Bool;
    case Kind::Int: return Dtype::Int64;
    case Kind::Real: return Dtype::Float32;
  }
  return Dtype::Float32;
}

std::string Scalar::str() const {
  switch (kind_) {
    case Kind::Bool: return sym_bool().str();
    case Kind::Int: return integer_.str();
    case Kind::Real: return real_.str();
  }
  return {};
}

}  // namespace tenon

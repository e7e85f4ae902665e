#include <tenon/core/scalar.h>

#include <fmt/format.h>

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
    case Kind::Bool: return to_bool() ? "true" : "false";
    case Kind::Int: return integer_.str();
    case Kind::Real: {
      std::string text = fmt::format("{}", real_);
      return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
    }
  }
  return {};
}

}  // namespace tenon

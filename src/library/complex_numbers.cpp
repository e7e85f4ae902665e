// Operators on complex numbers. They have no tensors, so they are no rows: each is one step of C++.
#include <tenon/dispatch/function.h>
#include <tenon/dispatch/registration.h>

namespace tenon::library {
namespace {

using Complex = std::complex<double>;

void define(std::string_view schema, Complex (*function)(Complex, Complex)) {
  dispatch::Defined defined =
      dispatch::define_scoped(schema::parse(schema), {dispatch::Tag::pt2_compliant_tag}, "complex_numbers.cpp");
  dispatch::register_scoped(defined.op, dispatch::KernelKey::CompositeImplicitAutograd,
                            dispatch::kernel_for(defined.op.schema(), function, "the function"))
      .keep();
  defined.registration.keep();
}

[[maybe_unused]] const bool defined = [] {
  define("aten::add.complex(complex a, complex b) -> complex", [](Complex a, Complex b) { return a + b; });
  define("aten::sub.complex(complex a, complex b) -> complex", [](Complex a, Complex b) { return a - b; });
  define("aten::mul.complex(complex a, complex b) -> complex", [](Complex a, Complex b) { return a * b; });
  return true;
}();

}  // namespace
}  // namespace tenon::library

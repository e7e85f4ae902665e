// Made by tools/fit_polynomials; coefficients from the constant term up.
#pragma once

namespace tenon::codegen {

// ln(2); multiples of the first up to 2^8 are exact in float.
constexpr double kLn2F32[] = {0x1.62e4000000000p-1, 0x1.7f7d1c0000000p-20};
// ln(2); multiples of the first up to 2^11 are exact in double.
constexpr double kLn2F64[] = {0x1.62e42fefa3800p-1, 0x1.ef35793c76730p-45};
// log2(e).
constexpr double kLog2EF32[] = {0x1.7154760000000p+0, 0x1.4ae0c00000000p-26};
// log2(e).
constexpr double kLog2EF64[] = {0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56};
// log10(e).
constexpr double kLog10EF32[] = {0x1.bcb7b20000000p-2, -0x1.5b235e0000000p-27};
// log10(e).
constexpr double kLog10EF64[] = {0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57};
// log10(2).
constexpr double kLog10Of2F32[] = {0x1.3442000000000p-2, -0x1.95ec100000000p-19};
// log10(2).
constexpr double kLog10Of2F64[] = {0x1.34413509f7800p-2, 0x1.fef311f12b358p-46};
// pi/2, for fused multiply-add.
constexpr double kHalfPiF32[] = {0x1.921fb60000000p+0, -0x1.777a5c0000000p-25, -0x1.ee59da0000000p-50};
// pi/2, for fused multiply-add.
constexpr double kHalfPiF64[] = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110};
// pi/2; multiples of all but the last up to 2^20 are exact in double.
constexpr double kHalfPiShortF64[] = {0x1.921fb54400000p+0, 0x1.0b4611a600000p-34, 0x1.3198a2e000000p-69, 0x1.b839a252049c1p-104};
// (exp(r) - 1 - r) / r^2 for |r| <= ln(2)/2; error 7.21e-8.
constexpr double kExpF32[] = {0x1.0000000000000p-1, 0x1.5554ce0000000p-3, 0x1.5555480000000p-5, 0x1.121a440000000p-7, 0x1.6cbd100000000p-10};
// (log(1 + f) - f + f^2/2) / f^3 for sqrt(1/2) <= 1 + f <= sqrt(2); error 1.54e-9.
constexpr double kLogF32[] = {0x1.5555480000000p-2, -0x1.0000700000000p-2, 0x1.99a5400000000p-3, -0x1.552f0c0000000p-3, 0x1.23034e0000000p-3, -0x1.01055c0000000p-3, 0x1.eff7ce0000000p-4, -0x1.bf13460000000p-4, 0x1.b53c6c0000000p-5};
// (2 atanh(s) / s - 2) / s^2 in z = s^2, |s| <= 0.1716; error 3.0e-8.
constexpr double kAtanhF32[] = {0x1.5555560000000p-1, 0x1.9996a40000000p-2, 0x1.2581360000000p-2, 0x1.aa6f940000000p-3};
// (sin(x) - x) / x^3 in z = x^2, |x| <= pi/4; error 2.98e-8.
constexpr double kSinF32[] = {-0x1.5555560000000p-3, 0x1.1112420000000p-7, -0x1.a15d360000000p-13, 0x1.c619b20000000p-19};
// (cos(x) - 1 + x^2/2) / x^4 in z = x^2, |x| <= pi/4; error 2.98e-8.
constexpr double kCosF32[] = {0x1.5555560000000p-5, -0x1.6c19280000000p-10, 0x1.a2aae20000000p-16, -0x1.d6a3600000000p-22};

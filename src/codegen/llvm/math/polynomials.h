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
constexpr double kHalfPiShortF64[] = {0x1.921fb54400000p+0, 0x1.0b4611a600000p-34, 0x1.3198a2e000000p-69,
                                      0x1.b839a252049c1p-104};
// (exp(r) - 1 - r) / r^2 for |r| <= ln(2)/2; error 7.21e-8.
constexpr double kExpF32[] = {0x1.0000000000000p-1, 0x1.5554ce0000000p-3, 0x1.5555480000000p-5, 0x1.121a440000000p-7,
                              0x1.6cbd100000000p-10};
// (log(1 + f) - f + f^2/2) / f^3 for sqrt(1/2) <= 1 + f <= sqrt(2); error 1.54e-9.
constexpr double kLogF32[] = {0x1.5555480000000p-2,  -0x1.0000700000000p-2, 0x1.99a5400000000p-3,
                              -0x1.552f0c0000000p-3, 0x1.23034e0000000p-3,  -0x1.01055c0000000p-3,
                              0x1.eff7ce0000000p-4,  -0x1.bf13460000000p-4, 0x1.b53c6c0000000p-5};
// (2 atanh(s) / s - 2) / s^2 in z = s^2, |s| <= 0.1716; error 3.0e-8.
constexpr double kAtanhF32[] = {0x1.5555560000000p-1, 0x1.9996a40000000p-2, 0x1.2581360000000p-2, 0x1.aa6f940000000p-3};
// (sin(x) - x) / x^3 in z = x^2, |x| <= pi/4; error 2.98e-8.
constexpr double kSinF32[] = {-0x1.5555560000000p-3, 0x1.1112420000000p-7, -0x1.a15d360000000p-13,
                              0x1.c619b20000000p-19};
// (cos(x) - 1 + x^2/2) / x^4 in z = x^2, |x| <= pi/4; error 2.98e-8.
constexpr double kCosF32[] = {0x1.5555560000000p-5, -0x1.6c19280000000p-10, 0x1.a2aae20000000p-16,
                              -0x1.d6a3600000000p-22};
// (atan(x) - x) / x^3 in z = x^2, |x| <= tan(pi/8); error 6.01e-8.
constexpr double kAtanF32[] = {-0x1.5555540000000p-2, 0x1.9996b00000000p-3, -0x1.240ef60000000p-3, 0x1.b6a1ac0000000p-4,
                               -0x1.039ea60000000p-4};
// (asin(x) - x) / x^3 in z = x^2, |x| <= 1/2; error 5.97e-8.
constexpr double kAsinF32[] = {0x1.5555540000000p-3, 0x1.3335bc0000000p-4, 0x1.6cf1040000000p-5,
                               0x1.03bcc80000000p-5, 0x1.d2b97e0000000p-7, 0x1.3b9cf40000000p-5};
// (tanh(r) - r) / r^3 in z = r^2, |r| <= ln(2)/4; error 6.82e-8.
constexpr double kTanhF32[] = {-0x1.554fc00000000p-2, 0x1.0c663a0000000p-3};
// erf(x) / x in z = x^2, |x| <= 1; error 5.39e-8.
constexpr double kErfNearF32[] = {0x1.20dd760000000p+0,  -0x1.8128ba0000000p-2, 0x1.ce89340000000p-4,
                                  -0x1.c06c1c0000000p-6, 0x1.b2d0ea0000000p-8,  -0x1.7adc0e0000000p-9,
                                  0x1.9de6d40000000p-10, -0x1.bca5760000000p-12};
// -log(erfc(x)) in x - 2.5, 1 <= x <= 4; error 1.25e-10.
constexpr double kErfFarF32[] = {0x1.f3a2dc0000000p+2,   0x1.56924e0000000p+2,  0x1.e345c60000000p-1,
                                 0x1.63d95c0000000p-7,   -0x1.1a30d20000000p-9, 0x1.d111a00000000p-12,
                                 -0x1.d8256a0000000p-15, 0x1.7ba9e60000000p-16};
// (exp(r) - 1 - r) / r^2 for |r| <= ln(2)/2; error 3.55e-18.
constexpr double kExpF64[] = {0x1.0000000000000p-1,  0x1.5555555555559p-3,  0x1.5555555555555p-5,
                              0x1.111111110f175p-7,  0x1.6c16c16c17bc4p-10, 0x1.a01a01b345225p-13,
                              0x1.a01a0192ff2d6p-16, 0x1.71ddedb9f0327p-19, 0x1.27e52a42db313p-22,
                              0x1.af7388ee17055p-26, 0x1.1eba44fc1adafp-29};
// (2 atanh(s) / s - 2) / s^2 in z = s^2, |s| <= 0.1716; error 4.62e-16.
constexpr double kAtanhF64[] = {0x1.5555555555558p-1, 0x1.99999999952e5p-2, 0x1.2492492df7672p-2, 0x1.c71c62da57207p-3,
                                0x1.7462b855d09e3p-3, 0x1.39fddd2aa50d9p-3, 0x1.2b5ee7749ccffp-3};
// (sin(x) - x) / x^3 in z = x^2, |x| <= pi/4; error 5.56e-17.
constexpr double kSinF64[] = {-0x1.5555555555555p-3, 0x1.1111111110ea7p-7,   -0x1.a01a019f64800p-13,
                              0x1.71de391d3545fp-19, -0x1.ae62706f4f801p-26, 0x1.5fc6e99f49e3dp-33,
                              -0x1.e18a087dcec30p-42};
// (cos(x) - 1 + x^2/2) / x^4 in z = x^2, |x| <= pi/4; error 5.66e-17.
constexpr double kCosF64[] = {0x1.5555555555555p-5,   -0x1.6c16c16c16742p-10, 0x1.a01a019eae9e7p-16,
                              -0x1.27e4f90662c57p-22, 0x1.1ee9c23f89ffep-29,  -0x1.8e23281acf46dp-37,
                              -0x1.422a1f538372dp-45};
// (atan(x) - x) / x^3 in z = x^2, |x| <= tan(pi/8); error 5.61e-17.
constexpr double kAtanF64[] = {
    -0x1.5555555555555p-2, 0x1.9999999999543p-3,  -0x1.24924924476eep-3, 0x1.c71c7187d15aep-4,  -0x1.745d096facf92p-4,
    0x1.3b11e804af450p-4,  -0x1.10eba090d9561p-4, 0x1.ddd7bcdbdbd3dp-5,  -0x1.89e632473c7bbp-5, 0x1.456d4fc1d449dp-6,
    0x1.077535643c3a1p-4,  -0x1.9f3c150511aabp-3, 0x1.b2c6aa7b9075dp-3};
// (asin(x) - x) / x^3 in z = x^2, |x| <= 1/2; error 1.11e-16.
constexpr double kAsinF64[] = {0x1.5555555555556p-3, 0x1.3333333332c68p-4, 0x1.6db6db6e6de75p-5, 0x1.f1c71bf8efb51p-6,
                               0x1.6e8bb793cfdc8p-6, 0x1.1c4cac40b56a1p-6, 0x1.c9df25f2df8adp-7, 0x1.77879ac5e85c0p-7,
                               0x1.5651f01e2a4cep-7, 0x1.42957c4e99996p-8, 0x1.350fa6b1fbac9p-6, -0x1.18e2947c47796p-6,
                               0x1.f0de5dddf3b29p-6};
// (tanh(r) - r) / r^3 in z = r^2, |r| <= ln(2)/4; error 6.72e-18.
constexpr double kTanhF64[] = {-0x1.55555555554dfp-2, 0x1.11111110e44bdp-3,  -0x1.ba1ba11858f8fp-5,
                               0x1.664ec7af14364p-6,  -0x1.223b59188c917p-7, 0x1.c33a83d20459bp-9};

}  // namespace tenon::codegen

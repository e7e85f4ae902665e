// Pieces of the kernel's text, for messages. They never fail, whatever is wrong with the kernel.
#pragma once

#include <tenon/loop/kernel.h>

#include <string>

namespace tenon::loop {

std::string to_string(const Kernel& kernel, const Op& op);  // one line, without its end
std::string header_of(const Loop& loop);                    // "parallel i0 < n0"
std::string to_string(const Number& number, Dtype dtype);   // parses back to the same bits (NaN: to a NaN)

}  // namespace tenon::loop

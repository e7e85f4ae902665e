// Prints the operators that the library has which runs functions from files.
#include <tenon/dispatch/opaque_kernel.h>
#include <tenon/dispatch/operator.h>

#include <cstdio>

int main() {
  for (const tenon::dispatch::Operator* op : tenon::dispatch::all_operators())
    if (tenon::dispatch::opaque_kernel_of(*op)) std::printf("%s\n", op->name().c_str());
}

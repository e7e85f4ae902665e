// Rows of a large result, several at a time.
#pragma once

#include <tenon/loop/kernel.h>

namespace tenon::loop {

// Where rows that stream through are combined with a row that is the same for all of them (a bias), the streams push
// that one out of the first cache again and again. Several rows in one pass read it less often. Takes four rows at a
// time, or two, if their number is a constant that can be divided, enough passes are left for threads to share, and the
// body is not too long. Gives how many, 1 if the kernel is not of this kind: one parallel loop around one vector loop,
// a result that streams, and a load that depends on the place in the row alone.
int jam_rows(Kernel& kernel);

}  // namespace tenon::loop

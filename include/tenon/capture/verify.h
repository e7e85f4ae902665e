// A cached call does not run the user's function, so that state which it reads other than through arguments, tensors
// and cells is as it was at capture. Verification finds such state: every cached call also traces the function again,
// and an operator that differs is an Error that names it. TENON_VERIFY_CAPTURE=1 turns it on at start.
#pragma once

namespace tenon::capture {

// Gives what it was before.
bool set_verify_captures(bool on);

}  // namespace tenon::capture

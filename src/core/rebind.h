// Who may tell that what runs on this thread is our own code, whose variables are not the user's.
#pragma once

namespace tenon::core {

// Whether the thread is inside an operator; the dispatcher says so.
void set_inside_operator(bool (*inside)());

}  // namespace tenon::core

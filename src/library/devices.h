// Device types of registrations as dispatch keys.
#pragma once

#include <tenon/dispatch/registration.h>

#include <string>
#include <vector>

namespace tenon::library {

// "cpu", "cuda"; none: every device, which is the explicit composite. For another, an error that lists the known ones.
std::vector<dispatch::KernelKey> keys_of_devices(const std::vector<std::string>& device_types,
                                                 ErrorKind otherwise = ErrorKind::Runtime);

}  // namespace tenon::library

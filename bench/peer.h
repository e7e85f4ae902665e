// Figures of PyTorch, measured by bench/peer.py in a process of its own: two thread pools in one process spoil both.
#pragma once

#include <optional>
#include <string>

namespace tenon::bench {

// Seconds, from the Python that TENON_PEER_PYTHON names (one with PyTorch). Nothing without it: said once on stderr.
std::optional<double> peer_figure(const std::string& name);

}  // namespace tenon::bench

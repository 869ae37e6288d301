#include "conv/network.hpp"

namespace kiln::bench {

std::unique_ptr<Contestant> make_xnnpack(const Problem&) { return nullptr; }
std::unique_ptr<Contestant> make_xnnpack_network(const Network&) { return nullptr; }
std::optional<std::string> xnnpack_version() { return std::nullopt; }

}  // namespace kiln::bench

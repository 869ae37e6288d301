#include "conv/network.hpp"

namespace kiln::bench {

std::unique_ptr<Contestant> make_opencv(const Problem&) { return nullptr; }
std::unique_ptr<Contestant> make_opencv_network(const Network&) { return nullptr; }
std::optional<std::string> opencv_version() { return std::nullopt; }

}  // namespace kiln::bench

// Prints every source of the sample plans: what another process generates.
#include <cstdio>
#include <string>

#include "dynamic_shaders/sample_specs.hpp"

int main() {
  const std::string all = kiln::dynamic_shaders::all_sources();
  return std::fwrite(all.data(), 1, all.size(), stdout) == all.size() ? 0 : 1;
}

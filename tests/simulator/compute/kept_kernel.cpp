// The kernels whose words are kept; apart from the compiled ones, because a benchmark uses it and has no test to fail.
#include <cstddef>

#include "tests/simulator/compute/kernel_code.hpp"

namespace kiln::simulator::test {
namespace {

struct Kept {
  const char* target;
  const char* name;
  std::uint32_t entry, rsrc1, rsrc2, rsrc3, properties, lds_bytes, private_bytes;
  const std::uint32_t* words;
  std::size_t count;
};

#include "tests/simulator/compute/kernels/goldens.inc"

}  // namespace

std::optional<KernelCode> kept_kernel(const std::string& target, const std::string& name) {
  for (const Kept& kept : kept_kernels) {
    if (target != kept.target || name != kept.name) continue;
    KernelCode code;
    code.generation = target == "gfx1100" ? Generation::gfx11 : Generation::gfx10_3;
    code.text.assign(kept.words, kept.words + kept.count);
    code.entry = kept.entry;
    code.rsrc1 = kept.rsrc1;
    code.rsrc2 = kept.rsrc2;
    code.rsrc3 = kept.rsrc3;
    code.properties = kept.properties;
    code.lds_bytes = kept.lds_bytes;
    code.private_bytes = kept.private_bytes;
    return code;
  }
  return std::nullopt;
}

}  // namespace kiln::simulator::test

// Which additions of a chain become part of a convolution: residual connections.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include <kiln/kernel.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace kiln::cpu {

// An `add` that a convolution computes: it adds its own result to the tensor `residual`, whose memory becomes that of
// the sum.
struct FusedAdd {
  std::uint32_t add_step = 0, residual = 0;
  bool operator==(const FusedAdd&) const = default;
};

// By step of the chain: what its convolution adds; nullopt: nothing. The convolution has no activation, and only the
// add reads its result. The residual is computed before the convolution runs, is not its input, and nobody else reads
// it from there on. Neither of the two is an input or a result of the chain.
std::vector<std::optional<FusedAdd>> fused_adds_of(const ChainSpec& spec);

}  // namespace kiln::cpu

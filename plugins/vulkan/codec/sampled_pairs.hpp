// sampled_pairs: which textures a program reads through which samplers, where it declares them apart.
//
// Thread-safety: a pure function. Ownership: values.
#pragma once

#include <cstdint>
#include <vector>

#include "codec/spirv_module.hpp"

namespace kiln::vulkan {

// Ids of variables; 0: one that cannot be told, which may be any.
struct SampledPair {
  std::uint32_t texture = 0, sampler = 0;
  bool apart = false;     // false: a sampler with its texture, and `sampler` says nothing
  bool compares = false;  // as sampler2DShadow does
};

// Of what the entry point reaches. A fetch, which uses no sampler, makes no pair.
std::vector<SampledPair> sampled_pairs(const SpirvModule& module);

}  // namespace kiln::vulkan

// ProgramBinary of this plugin: a code object behind the digest of its bytes.
//
//   format  "amdgpu:" target ":v" code object version       "amdgpu:gfx1100:v5"
//   bytes   digest[32] object[…]                            digest = SHA-256 of the object
//
// The digest finds damage before the loader looks at the object; whether the bytes are authentic is the cache's
// business.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include <kiln/digest.hpp>
#include <kiln/program.hpp>
#include <kiln/status.hpp>

#include <cstddef>
#include <span>
#include <string>

#include "amdgpu_pm4/code_object/kernel_code.hpp"

namespace kiln::amdgpu_pm4 {

std::string binary_format(Target target, std::uint32_t version);
ProgramBinary make_binary(Target target, std::uint32_t version, const Digest& digest,
                          std::span<const std::byte> object);

struct OpenedBinary {
  Digest digest;
  std::span<const std::byte> object;  // of the binary's bytes
};

// unsupported: the format is not this target's. corrupt: the bytes are not those of the digest.
Result<OpenedBinary> open_binary(const ProgramBinary& binary, Target target);

}  // namespace kiln::amdgpu_pm4

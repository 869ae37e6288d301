// specialized: a SPIR-V module whose specialization constants have the values of a job.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include <kiln/kernel.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace kiln::vulkan {

enum class UnknownConstants : std::uint8_t { refused, ignored };

// The module with these values as defaults, and with `workgroup` as those of its entry point's local size (zeros: as
// they are). A constant has the name of its OpName, and always "constantN" of its SpecId N. REQUIRES: validated words.
// `entry` as for SpirvModule::parse(). invalid_argument: no such constant, several of one name, or a text that is no
// value of its type.
Result<std::vector<std::uint32_t>> specialized(std::vector<std::uint32_t> words, std::string_view entry,
                                               std::span<const Define> values,
                                               const std::array<std::uint32_t, 3>& workgroup, UnknownConstants unknown);

}  // namespace kiln::vulkan

// Program payload: a program binary and the driver files that belong to it, encoded as bytes.
//
// The encoding uses the fields of key material: `binary`; then, if there are driver files, `driver_setting` and for
// each file `name` and `content`, sorted by name. The HMAC of the entry covers the payload (entry_format.hpp).
// Thread-safety: pure. Ownership: values.
#pragma once

#include <kiln/program.hpp>
#include <kiln/status.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

inline constexpr std::size_t most_driver_files = 256;                  // of one program
inline constexpr std::uint64_t most_driver_file_bytes = 128ull << 20;  // of all of them

// Accepts 1 to 512 bytes in at most 8 components separated by '/'. A component has 1 to 255 letters, digits and "._-"
// and does not start with '.', so a name cannot leave its base folder.
bool is_driver_file_name(std::string_view name) noexcept;

std::vector<std::byte> encode_payload(const ProgramBinary& program);
// corrupt: not a payload, or a file with an invalid name or size.
Result<ProgramBinary> decode_payload(std::string format, std::span<const std::byte> bytes);

}  // namespace kiln

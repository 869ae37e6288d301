// The payload of a stored program: its binary and the files of the driver's own cache that belong to it.
//
// Thread-safety: pure. Ownership: values. The bytes are fields encoded as key material is: `binary`; then, where there
// are files, `driver_setting` and for each file `name` and `content`, in the order of their names. They are inside
// what an entry's HMAC covers (entry_format.hpp).
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

// 1 to 512 bytes in at most 8 parts with '/' between; a part has 1 to 255 letters, digits and "._-" and does not begin
// with a point. So it cannot lead out of the folder that it is relative to.
bool is_driver_file_name(std::string_view name) noexcept;

std::vector<std::byte> encode_payload(const ProgramBinary& program);
// corrupt: the bytes are no payload, or a file has a name or size that is not allowed.
Result<ProgramBinary> decode_payload(std::string format, std::span<const std::byte> bytes);

}  // namespace kiln

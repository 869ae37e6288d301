// Entry format: encodes, authenticates and decodes the file of one stored program. Does no input or output.
//
// Thread-safety: functions are pure; see Inflaters. Ownership: EntryView refers to the bytes it was decoded from.
//
//   header    magic "KILNPROG" · u32 schema · u32 compression (1 none, 2 zstd) · 16 bytes id of the signing key
//             · u32 bytes of format · u32 bytes of material · u64 bytes of payload as stored · u64 bytes of payload
//             inflated · u64 build_ns                                                                        (64 bytes)
//   body      format · key material · payload as stored
//   trailer   XXH3-128 of everything before it · HMAC-SHA256 of everything before it                (48 bytes)
// Integers are little endian. docs/cache-format.md describes the versions and how far each field is trusted.
#pragma once

#include "base/digest.hpp"
#include "base/secret_key.hpp"

#include <kiln/program.hpp>
#include <kiln/status.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct ZSTD_DCtx_s;

namespace kiln {

// Why a stored entry was not used. Each value has a counter in RejectedCounts.
enum class Rejection : std::uint8_t {
  none = 0,
  corrupt,         // wrong checksum or length
  tampered,        // checksum right but authentication wrong, or in a place or of a type that Kiln does not write
  foreign,         // signed with another key, or owned by another user
  driver_changed,  // stored for this device under another driver identity
  refused,         // refused by the driver
  quarantined,
};

inline constexpr std::size_t rejection_kinds = 7;

constexpr std::string_view to_string(Rejection rejection) noexcept {
  switch (rejection) {
    case Rejection::none:
      return "none";
    case Rejection::corrupt:
      return "corrupt";
    case Rejection::tampered:
      return "tampered";
    case Rejection::foreign:
      return "foreign";
    case Rejection::driver_changed:
      return "driver_changed";
    case Rejection::refused:
      return "refused";
    case Rejection::quarantined:
      return "quarantined";
  }
  return "invalid";
}

inline constexpr std::uint32_t entry_schema = 2;
inline constexpr std::size_t entry_header_bytes = 64;
inline constexpr std::size_t entry_trailer_bytes = 48;

enum class Compression : std::uint8_t { invalid = 0, none = 1, zstd = 2 };

// Inflaters: a pool of zstd contexts, because creating a context costs more than decompressing a program.
//
// Thread-safety: every method from any thread; each context serves one caller at a time. Ownership: owns the contexts;
// their number is the largest number of concurrent callers.
class Inflaters {
 public:
  Inflaters() = default;
  Inflaters(const Inflaters&) = delete;
  Inflaters& operator=(const Inflaters&) = delete;
  ~Inflaters();

  // Returns the number of bytes written to `inflated`, or a zstd error (see ZSTD_isError).
  std::size_t inflate(std::span<std::byte> inflated, std::span<const std::byte> stored);

 private:
  ZSTD_DCtx_s* take();

  std::mutex mutex_;
  std::vector<ZSTD_DCtx_s*> idle_;
};

// The key that signs entries, and its id that entries carry.
struct EntryKey {
  std::array<std::byte, 16> id{};
  HmacSha256 hmac;

  explicit EntryKey(const SecretKey& secret) noexcept;
};

struct EntryLimits {
  std::uint64_t payload = 256ull << 20;  // bytes, compressed and decompressed each
  std::uint32_t material = 16u << 20;
  std::uint32_t format = 256;

  std::uint64_t file() const noexcept { return entry_header_bytes + format + material + payload + entry_trailer_bytes; }
};

struct EntryView {
  std::string_view format;    // ProgramBinary::format
  std::string_view material;  // ProgramKey::material
  std::span<const std::byte> stored;
  Compression compression = Compression::invalid;
  std::uint64_t inflated_bytes = 0;
  std::uint64_t build_ns = 0;  // duration of the build
};

// Compresses and signs: `entry.stored` is the uncompressed payload. invalid_argument: a part exceeds its limit.
Result<std::vector<std::byte>> encode_entry(const EntryView& entry, const EntryKey& key,
                                            const EntryLimits& limits = {});

struct DecodedEntry {
  Rejection rejection = Rejection::none;
  std::string why;  // expected and found value; empty if accepted
  EntryView entry;  // set if accepted
};

// Parses an entry without authentication, for diagnostics only. nullopt: the lengths do not fit.
std::optional<EntryView> view_entry(std::span<const std::byte> bytes, const EntryLimits& limits = {});
// Returns the id of the signing key in the entry. REQUIRES: view_entry() returned a value.
std::span<const std::byte> key_id_of_entry(std::span<const std::byte> bytes) noexcept;

// Checks in this order: lengths and checksum (corrupt), key id (foreign), authentication (tampered). Does not
// decompress.
DecodedEntry decode_entry(std::span<const std::byte> bytes, const EntryKey& key, const EntryLimits& limits = {});

// Decompresses the payload of an entry that decode_entry() accepted. corrupt: the size is not the declared one.
Result<std::vector<std::byte>> inflate_payload(const EntryView& entry, Inflaters& inflaters);
Result<std::vector<std::byte>> inflate_payload(const EntryView& entry);  // with a temporary context

// Program payload: a program binary and the driver files that belong to it, encoded as bytes.
//
// The encoding uses the fields of key material: `binary`; then, if there are driver files, `driver_setting` and for
// each file `name` and `content`, sorted by name. The HMAC of the entry covers the payload (entry_format.hpp).
// Thread-safety: pure. Ownership: values.

inline constexpr std::size_t most_driver_files = 256;                  // of one program
inline constexpr std::uint64_t most_driver_file_bytes = 128ull << 20;  // of all of them

// Accepts 1 to 512 bytes in at most 8 components separated by '/'. A component has 1 to 255 letters, digits and "._-"
// and does not start with '.', so a name cannot leave its base folder.
bool is_driver_file_name(std::string_view name) noexcept;

std::vector<std::byte> encode_payload(const ProgramBinary& program);
// corrupt: not a payload, or a file with an invalid name or size.
Result<ProgramBinary> decode_payload(std::string format, std::span<const std::byte> bytes);

}  // namespace kiln

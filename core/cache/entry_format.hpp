// The bytes of one stored program: encoding, and decoding what may have been altered by anyone. No input or output
// here.
//
// Thread-safety: pure. Ownership: EntryView views the bytes it was decoded from.
//
//   header    magic "KILNPROG" · u32 schema · u32 compression (1 none, 2 zstd) · 16 bytes id of the signing key
//             · u32 bytes of format · u32 bytes of material · u64 bytes of payload as stored · u64 bytes of payload
//             inflated · u64 build_ns                                                                        (64 bytes)
//   body      format · key material · payload as stored
//   trailer   XXH3-128 of everything before it · HMAC-SHA256 of everything before it                (48 bytes)
// Integers are little endian. docs/cache-format.md has the versions and what each field is trusted for.
#pragma once

#include "base/hmac.hpp"
#include "base/secret_key.hpp"

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

// Why a stored entry was not used: one value for each figure of RejectedCounts.
enum class Rejection : std::uint8_t {
  none = 0,
  corrupt,         // checksum or length
  tampered,        // checksum right, authentication wrong; or not where or what Kiln writes
  foreign,         // another key, or another owner
  driver_changed,  // held for this device under another driver identity
  refused,         // by the driver
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

// Inflaters: zstd's contexts, kept from one payload to the next, because making one costs more than inflating a
// program.
//
// Thread-safety: every method from any thread; a context is lent to one caller at a time. Ownership: owns the contexts,
// as many as were ever used at once.

class Inflaters {
 public:
  Inflaters() = default;
  Inflaters(const Inflaters&) = delete;
  Inflaters& operator=(const Inflaters&) = delete;
  ~Inflaters();

  // The number of bytes written to `inflated`, or an error of zstd's (ZSTD_isError).
  std::size_t inflate(std::span<std::byte> inflated, std::span<const std::byte> stored);

 private:
  ZSTD_DCtx_s* take();

  std::mutex mutex_;
  std::vector<ZSTD_DCtx_s*> idle_;
};

// Signs entries, and knows the id by which entries name their key.
struct EntryKey {
  std::array<std::byte, 16> id{};
  HmacSha256 hmac;

  explicit EntryKey(const SecretKey& secret) noexcept;
};

struct EntryLimits {
  std::uint64_t payload = 256ull << 20;  // inflated; as stored likewise
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
  std::uint64_t build_ns = 0;  // what the build cost that made it
};

// `entry.stored` is the payload not yet compressed. invalid_argument where a part is beyond its limit.
Result<std::vector<std::byte>> encode_entry(const EntryView& entry, const EntryKey& key,
                                            const EntryLimits& limits = {});

struct DecodedEntry {
  Rejection rejection = Rejection::none;
  std::string why;  // both sides of the mismatch; empty where nothing was rejected
  EntryView entry;  // set where nothing was rejected
};

// What the bytes say of themselves, believed by nobody: for people and tools. nullopt where the lengths do not fit.
std::optional<EntryView> view_entry(std::span<const std::byte> bytes, const EntryLimits& limits = {});
// The id of the key that the entry says it was signed with. REQUIRES: view_entry() answered.
std::span<const std::byte> key_id_of_entry(std::span<const std::byte> bytes) noexcept;

// Order: lengths, checksum (corrupt), id of the key (foreign), authentication (tampered). Nothing is inflated here.
DecodedEntry decode_entry(std::span<const std::byte> bytes, const EntryKey& key, const EntryLimits& limits = {});

// The payload of an entry that decode_entry let pass. corrupt where it does not inflate to exactly what was declared.
Result<std::vector<std::byte>> inflate_payload(const EntryView& entry, Inflaters& inflaters);
Result<std::vector<std::byte>> inflate_payload(const EntryView& entry);  // for one payload

}  // namespace kiln

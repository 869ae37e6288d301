// The bytes of a bundle: programs of one machine for another, in one signed file. No input or output here.
//
// Thread-safety: pure. Ownership: what is decoded views the bytes that it was decoded from.
//
//   header    magic "KILNBNDL" · u32 schema · u32 records · 32 bytes public key · u64 bytes of the body    (56 bytes)
//   body      records: u32 kind · u64 bytes · fields encoded as key material is
//   trailer   Ed25519 signature of a word of what this is and the SHA-256 of everything before it         (64 bytes)
// Integers are little endian. docs/cache-format.md has the records and what each is trusted for.
#pragma once

#include "cache/entry_format.hpp"
#include "cache_admin/bundle_key.hpp"

#include <kiln/digest.hpp>
#include <kiln/status.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

inline constexpr std::uint32_t bundle_schema = 2;
inline constexpr std::size_t bundle_header_bytes = 56;
inline constexpr std::size_t bundle_trailer_bytes = sizeof(BundleSignature);

struct BundleLimits {
  std::uint64_t file = 2ull << 30;
  std::uint32_t records = 1'000'000;
  std::size_t text = 64 << 10;  // of a manifest or a .meta
  EntryLimits entry;
};

struct BundledDevice {
  std::string_view folder, manifest;
};

struct BundledProgram {
  std::string_view folder;
  Digest key;
  EntryView entry;
  std::string_view meta;
};

struct Bundle {
  std::vector<BundledDevice> devices;
  std::vector<BundledProgram> programs;
};

class BundleWriter {
 public:
  void add(const BundledDevice& device);
  void add(const BundledProgram& program);
  // The whole file. invalid_argument: beyond the limits.
  Result<std::vector<std::byte>> finish(const SecretKey& secret, const BundleLimits& limits = {}) &&;

 private:
  void record(std::uint32_t kind, std::string_view fields);

  std::vector<std::byte> body_;
  std::uint32_t records_ = 0;
};

// Judges a file of `file_bytes` bytes by its beginning, of which the first bundle_header_bytes are looked at: its
// magic, its lengths, its schema, and that it names the trusted key. Answers the number of records.
Result<std::uint32_t> decode_bundle_header(std::span<const std::byte> beginning, std::uint64_t file_bytes,
                                           const BundlePublicKey& trusted, const BundleLimits& limits = {});

// Whether the trusted key signed a file whose bytes but the signature have this digest. corrupt: it did not.
Status check_bundle_signature(const Digest& signed_part, const BundleSignature& signature,
                              const BundlePublicKey& trusted);

// Lengths, then the key, then the signature, and only then what is signed. corrupt tells which it was, with both sides.
Result<Bundle> decode_bundle(std::span<const std::byte> bytes, const BundlePublicKey& trusted,
                             const BundleLimits& limits = {});

// The records alone, of a body that somebody vouches for: each checked, none believed further than that.
Result<Bundle> decode_bundle_records(std::span<const std::byte> body, std::uint32_t records,
                                     const BundleLimits& limits = {});

}  // namespace kiln

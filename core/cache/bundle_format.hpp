// Bundle format: encodes and decodes a signed file of programs for another machine. Does no input or output.
//
// Thread-safety: pure. Ownership: decoded values refer to the bytes that they were decoded from.
//
//   header    magic "KILNBNDL" · u32 schema · u32 records · 32 bytes public key · u64 bytes of the body    (56 bytes)
//   body      records: u32 kind · u64 bytes · fields encoded like key material
//   trailer   Ed25519 signature of a domain tag and the SHA-256 of everything before it                   (64 bytes)
// Integers are little endian. docs/cache-format.md describes the records and how far each is trusted.
#pragma once

#include "cache/bundle_key.hpp"
#include "cache/entry_format.hpp"

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
  std::size_t text = 64 << 10;  // size of a manifest or a .meta file
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
  // Returns the whole file. invalid_argument: a limit is exceeded.
  Result<std::vector<std::byte>> finish(const SecretKey& secret, const BundleLimits& limits = {}) &&;

 private:
  void record(std::uint32_t kind, std::string_view fields);

  std::vector<std::byte> body_;
  std::uint32_t records_ = 0;
};

// Checks the first bundle_header_bytes bytes of a file of `file_bytes` bytes: magic, lengths, schema and trusted key.
// Returns the number of records.
Result<std::uint32_t> decode_bundle_header(std::span<const std::byte> beginning, std::uint64_t file_bytes,
                                           const BundlePublicKey& trusted, const BundleLimits& limits = {});

// Verifies the signature. `signed_part` is the digest of all bytes except the signature. corrupt: not signed by the
// trusted key.
Status check_bundle_signature(const Digest& signed_part, const BundleSignature& signature,
                              const BundlePublicKey& trusted);

// Checks lengths, then the key, then the signature, and decodes only then. corrupt: the error names the failed check
// with the expected and the found value.
Result<Bundle> decode_bundle(std::span<const std::byte> bytes, const BundlePublicKey& trusted,
                             const BundleLimits& limits = {});

// Decodes the records of an authenticated body. Each record is still validated.
Result<Bundle> decode_bundle_records(std::span<const std::byte> body, std::uint32_t records,
                                     const BundleLimits& limits = {});

}  // namespace kiln

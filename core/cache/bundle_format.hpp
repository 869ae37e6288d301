// Bundle format: encodes and decodes a signed file of programs for another machine. Does no input or output.
//
// Thread-safety: pure. Ownership: decoded values refer to the bytes that they were decoded from.
//
//   header    magic "KILNBNDL" · u32 schema · u32 records · 32 bytes public key · u64 bytes of the body    (56 bytes)
//   body      records: u32 kind · u64 bytes · fields encoded like key material
//   trailer   Ed25519 signature of a domain tag and the SHA-256 of everything before it                   (64 bytes)
// Integers are little endian. docs/cache-format.md describes the records and how far each is trusted.
#pragma once

#include "cache/entry_format.hpp"
#include "cache/signing_keys.hpp"

#include <kiln/digest.hpp>
#include <kiln/program.hpp>
#include <kiln/program_cache.hpp>
#include <kiln/status.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
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

// Shared object: one program as machines exchange it, in a remote or a layer.
//
// It is a bundle (bundle_format.hpp) of exactly one program and no device, so that one format and one signature cover
// both. The program's key, its payload with the driver files and its build time are signed together.
// Thread-safety: functions from any thread. Ownership: values.

// Why an object was not used, in the order of the checks.
enum class ObjectFault : std::uint8_t {
  none = 0,
  length,         // not an object, or of another length than it declares
  unknown_key,    // signed by a key that is not accepted here
  revoked,        // by a key that was revoked
  expired,        // by a key after its last day
  signature,      // altered
  other_program,  // not exactly one program, or not the requested one
  payload,        // does not inflate to its declared size, or is not a program
  driver_file,    // a driver file whose name the driver would not choose
};

std::string_view to_string(ObjectFault fault) noexcept;
std::uint64_t& count_of(SharedCounts& counts, ObjectFault fault) noexcept;  // REQUIRES: not none

struct SharedProgram {
  ProgramBinary binary;
  std::uint64_t build_ns = 0;
  Digest key;
  std::string material;
  std::string folder;  // device folder
  std::string meta;    // text of a .meta file, for display
  BundlePublicKey signer{};
};

struct OpenedObject {
  ObjectFault fault = ObjectFault::none;
  std::string why;        // expected and found value; empty if accepted
  SharedProgram program;  // set if accepted
};

// Returns whether Mesa could have chosen the name: [mesa_shader_cache/]HH/HHH…, with 2 and 38 hexadecimal digits.
bool is_mesa_file_name(std::string_view name) noexcept;

// material: of the requested key; nullopt: any program, whose key material the caller must check.
OpenedObject open_object(std::span<const std::byte> bytes, std::span<const TrustedKey> accepted, std::int64_t now_s,
                         const std::optional<std::string_view>& material, Inflaters& inflaters);
OpenedObject open_object(std::span<const std::byte> bytes, std::span<const TrustedKey> accepted, std::int64_t now_s,
                         const std::optional<std::string_view>& material);  // with a temporary context

// The name of a program in a remote or a layer: "FOLDER/DIGEST".
std::string object_name(std::string_view folder, const Digest& key);

// Makes an object from the bytes of a stored entry. corrupt: it is not authentic under this user's key; the driver
// files have names that no reader accepts. invalid_argument: too large.
Result<std::vector<std::byte>> make_object(std::span<const std::byte> entry, const EntryKey& own,
                                           const std::string& folder, const std::string& meta, const SecretKey& signer);
// The same for a program of an authenticated bundle, with the same errors.
Result<std::vector<std::byte>> make_object(const BundledProgram& program, const SecretKey& signer);

}  // namespace kiln

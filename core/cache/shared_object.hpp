// Shared object: one program as machines exchange it, in a remote or a layer.
//
// It is a bundle (bundle_format.hpp) of exactly one program and no device, so that one format and one signature cover
// both. The program's key, its payload with the driver files and its build time are signed together.
// Thread-safety: functions from any thread. Ownership: values.
#pragma once

#include "cache/bundle_format.hpp"
#include "cache/entry_format.hpp"
#include "cache/trusted_keys.hpp"

#include <kiln/program.hpp>
#include <kiln/program_cache.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

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

}  // namespace kiln

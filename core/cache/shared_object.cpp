#include "cache/shared_object.hpp"

#include "base/os/private_folder.hpp"
#include "cache/program_payload.hpp"

#include <algorithm>

namespace kiln {
namespace {

constexpr std::size_t signer_at = 16;  // of a bundle's header

BundleLimits object_limits() {
  BundleLimits limits;
  limits.file = most_object_bytes;
  limits.records = 1;
  return limits;
}

bool is_hex_text(std::string_view text) noexcept {
  return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

OpenedObject refused(ObjectFault fault, std::string why) { return {fault, std::move(why), {}}; }

// Of the names with this key, one that is valid now, if there is any.
const TrustedKey* accepted_key(std::span<const TrustedKey> accepted, const BundlePublicKey& signer,
                               std::int64_t now_s) {
  const TrustedKey* found = nullptr;
  for (const TrustedKey& key : accepted) {
    if (key.key != signer) continue;
    const bool valid = !key.revoked && (!key.until_s || now_s < *key.until_s);
    if (found == nullptr || valid) found = &key;
  }
  return found;
}

}  // namespace

std::string_view to_string(ObjectFault fault) noexcept {
  switch (fault) {
    case ObjectFault::none:
      return "none";
    case ObjectFault::length:
      return "bad_length";
    case ObjectFault::unknown_key:
      return "unknown_key";
    case ObjectFault::revoked:
      return "revoked";
    case ObjectFault::expired:
      return "expired";
    case ObjectFault::signature:
      return "bad_signature";
    case ObjectFault::other_program:
      return "other_program";
    case ObjectFault::payload:
      return "bad_payload";
    case ObjectFault::driver_file:
      return "bad_driver_file";
  }
  return "invalid";
}

std::uint64_t& count_of(SharedCounts& counts, ObjectFault fault) noexcept {
  switch (fault) {
    case ObjectFault::unknown_key:
      return counts.unknown_key;
    case ObjectFault::revoked:
      return counts.revoked;
    case ObjectFault::expired:
      return counts.expired;
    case ObjectFault::signature:
      return counts.bad_signature;
    case ObjectFault::other_program:
      return counts.other_program;
    case ObjectFault::payload:
      return counts.bad_payload;
    case ObjectFault::driver_file:
      return counts.bad_driver_file;
    case ObjectFault::none:
    case ObjectFault::length:
      break;
  }
  return counts.bad_length;
}

bool is_mesa_file_name(std::string_view name) noexcept {
  constexpr std::string_view folder = "mesa_shader_cache/";
  if (name.starts_with(folder)) name.remove_prefix(folder.size());
  return name.size() == 41 && name[2] == '/' && is_hex_text(name.substr(0, 2)) && is_hex_text(name.substr(3));
}

OpenedObject open_object(std::span<const std::byte> bytes, std::span<const TrustedKey> accepted, std::int64_t now_s,
                         const std::optional<std::string_view>& material) {
  Inflaters inflaters;
  return open_object(bytes, accepted, now_s, material, inflaters);
}

OpenedObject open_object(std::span<const std::byte> bytes, std::span<const TrustedKey> accepted, std::int64_t now_s,
                         const std::optional<std::string_view>& material, Inflaters& inflaters) {
  if (bytes.size() < bundle_header_bytes + bundle_trailer_bytes) {
    return refused(ObjectFault::length, "has " + std::to_string(bytes.size()) + " bytes, expected at least " +
                                            std::to_string(bundle_header_bytes + bundle_trailer_bytes));
  }
  const BundleLimits limits = object_limits();
  BundlePublicKey signer;
  std::ranges::copy(bytes.subspan(signer_at, signer.size()), signer.begin());
  // Lengths first, whoever signed it.
  const auto records = decode_bundle_header(bytes, bytes.size(), signer, limits);
  if (!records) return refused(ObjectFault::length, records.error().message);

  const TrustedKey* key = accepted_key(accepted, signer, now_s);
  if (key == nullptr) return refused(ObjectFault::unknown_key, "is signed by key " + hex_of(signer));
  if (key->revoked) return refused(ObjectFault::revoked, "is signed by key '" + key->name + "', which is revoked");
  if (key->until_s && now_s >= *key->until_s) {
    return refused(ObjectFault::expired,
                   "is signed by key '" + key->name + "', which ended on " + date_text(*key->until_s - 1));
  }
  const auto signed_part = bytes.first(bytes.size() - bundle_trailer_bytes);
  BundleSignature signature;
  std::ranges::copy(bytes.last(bundle_trailer_bytes), signature.begin());
  const Status authentic = check_bundle_signature(sha256(signed_part), signature, signer);
  if (!authentic.ok()) return refused(ObjectFault::signature, authentic.message);

  const Result<Bundle> decoded = decode_bundle_records(signed_part.subspan(bundle_header_bytes), *records, limits);
  if (!decoded) return refused(ObjectFault::other_program, decoded.error().message);
  if (decoded->programs.size() != 1) {
    return refused(ObjectFault::other_program,
                   "holds " + std::to_string(decoded->programs.size()) + " programs, expected 1");
  }
  const BundledProgram& program = decoded->programs.front();
  if (material && program.entry.material != *material) {
    return refused(ObjectFault::other_program, "holds the program of another key: " + program.key.hex());
  }
  const Result<std::vector<std::byte>> payload = inflate_payload(program.entry, inflaters);
  if (!payload) return refused(ObjectFault::payload, payload.error().message);
  Result<ProgramBinary> binary = decode_payload(std::string(program.entry.format), *payload);
  if (!binary) return refused(ObjectFault::payload, binary.error().message);
  for (const DriverFile& file : binary->driver_files) {
    if (!is_mesa_file_name(file.name)) {
      return refused(ObjectFault::driver_file, "has the driver file '" + file.name + "', which no driver names so");
    }
  }
  return {ObjectFault::none,
          {},
          {std::move(*binary), program.entry.build_ns, program.key, std::string(program.entry.material),
           std::string(program.folder), std::string(program.meta)}};
}

std::string object_name(std::string_view folder, const Digest& key) { return std::string(folder) + "/" + key.hex(); }

Result<std::vector<std::byte>> make_object(std::span<const std::byte> entry, const EntryKey& own,
                                           const std::string& folder, const std::string& meta,
                                           const SecretKey& signer) {
  const DecodedEntry decoded = decode_entry(entry, own);
  if (decoded.rejection != Rejection::none) return corrupt(decoded.why);
  const Result<std::vector<std::byte>> payload = inflate_payload(decoded.entry);
  if (!payload) return payload.error();
  const Result<ProgramBinary> binary = decode_payload(std::string(decoded.entry.format), *payload);
  if (!binary) return binary.error();
  for (const DriverFile& file : binary->driver_files) {
    if (!is_mesa_file_name(file.name)) {
      return corrupt("driver file '" + file.name + "': expected a name of Mesa's cache (mesa_shader_cache/, 2 digits, '/', 38 digits)");
    }
  }
  BundleWriter writer;
  writer.add(BundledProgram{folder, sha256(decoded.entry.material), decoded.entry, meta});
  return std::move(writer).finish(signer, object_limits());
}

}  // namespace kiln

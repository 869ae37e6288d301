#include "cache/bundle_format.hpp"

#include "base/os/private_folder.hpp"
#include "cache/entry_format.hpp"
#include "cache/key_material.hpp"
#include "cache/manifest.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

namespace kiln {
namespace {

constexpr std::string_view bundle_magic = "KILNBNDL";
constexpr std::string_view signed_word = "kiln: bundle, schema 2\n";
constexpr std::size_t record_header_bytes = 12;

enum RecordKind : std::uint32_t { device_record = 1, program_record };

std::span<const std::byte> text_bytes(std::string_view text) { return std::as_bytes(std::span(text)); }
void append_bytes(std::vector<std::byte>& to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

// "has 2 records, expected 3"; between: " records, expected ".
std::string found_and_expected(std::string_view before, std::uint64_t found, std::string_view between,
                               std::uint64_t expected) {
  return std::string(before) + std::to_string(found) + std::string(between) + std::to_string(expected);
}

// What is signed: a digest instead of the file, so that it is read once, and a word, so that nothing else that this key
// may ever sign can be taken for it.
std::string message_of(const Digest& digest) {
  return std::string(signed_word) + std::string(text_of(std::as_bytes(std::span(digest.bytes))));
}

// The fields of one record, taken in their order by their names.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : fields_(decode_key_material(bytes)) {}

  std::string_view text(std::string_view name) {
    if (!fields_ || at_ >= fields_->size() || (*fields_)[at_].name != name) return fail();
    return (*fields_)[at_++].value;
  }
  std::uint64_t integer(std::string_view name) {
    const std::string_view value = text(name);
    if (value.size() == sizeof(std::uint64_t)) return read_little_endian<std::uint64_t>(text_bytes(value), 0);
    fail();
    return 0;
  }
  // All fields were there, and no others.
  bool whole() const noexcept { return !failed_ && fields_ && at_ == fields_->size(); }

 private:
  std::string_view fail() {
    failed_ = true;
    return {};
  }

  std::optional<std::vector<KeyField>> fields_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

bool take_device(Fields fields, const BundleLimits& limits, Bundle& into) {
  const BundledDevice device{fields.text("folder"), fields.text("manifest")};
  if (!fields.whole() || !is_device_folder_name(device.folder) || device.manifest.size() > limits.text) return false;
  into.devices.push_back(device);
  return true;
}

bool take_program(Fields fields, const BundleLimits& limits, Bundle& into) {
  BundledProgram program;
  program.folder = fields.text("folder");
  const std::string_view key = fields.text("key");
  program.entry.format = fields.text("format");
  program.entry.material = fields.text("material");
  program.entry.build_ns = fields.integer("build_ns");
  const std::uint64_t compression = fields.integer("compression");
  program.entry.inflated_bytes = fields.integer("inflated");
  program.entry.stored = text_bytes(fields.text("payload"));
  program.meta = fields.text("meta");
  if (!fields.whole() || !is_device_folder_name(program.folder) || key.size() != sizeof(Digest) ||
      (compression != 1 && compression != 2) || program.entry.format.size() > limits.entry.format ||
      program.entry.material.size() > limits.entry.material || program.entry.stored.size() > limits.entry.payload ||
      program.entry.inflated_bytes > limits.entry.payload || program.meta.size() > limits.text) {
    return false;
  }
  std::memcpy(program.key.bytes.data(), key.data(), key.size());
  program.entry.compression = static_cast<Compression>(compression);
  // The name of a program is the digest of its key, in a bundle as everywhere.
  if (sha256(program.entry.material) != program.key) return false;
  into.programs.push_back(program);
  return true;
}

bool take_record(std::uint32_t kind, std::string_view bytes, const BundleLimits& limits, Bundle& into) {
  switch (kind) {
    case device_record:
      return take_device(Fields(bytes), limits, into);
    case program_record:
      return take_program(Fields(bytes), limits, into);
    default:
      return false;
  }
}

}  // namespace

void BundleWriter::record(std::uint32_t kind, std::string_view fields) {
  append_little_endian(body_, kind);
  append_little_endian(body_, static_cast<std::uint64_t>(fields.size()));
  append_bytes(body_, text_bytes(fields));
  ++records_;
}

void BundleWriter::add(const BundledDevice& device) {
  KeyEncoder fields;
  fields.field("folder", device.folder);
  fields.field("manifest", device.manifest);
  record(device_record, fields.material());
}

void BundleWriter::add(const BundledProgram& program) {
  KeyEncoder fields;
  fields.field("folder", program.folder);
  fields.field("key", text_of(std::as_bytes(std::span(program.key.bytes))));
  fields.field("format", program.entry.format);
  fields.field("material", program.entry.material);
  fields.field("build_ns", program.entry.build_ns);
  fields.field("compression", static_cast<std::uint64_t>(program.entry.compression));
  fields.field("inflated", program.entry.inflated_bytes);
  fields.field("payload", text_of(program.entry.stored));
  fields.field("meta", program.meta);
  record(program_record, fields.material());
}

Result<std::vector<std::byte>> BundleWriter::finish(const SecretKey& secret, const BundleLimits& limits) && {
  const std::uint64_t whole = bundle_header_bytes + body_.size() + bundle_trailer_bytes;
  if (whole > limits.file || records_ > limits.records) {
    return invalid_argument("bundle has " + std::to_string(whole) + " bytes and " + std::to_string(records_) +
                            " records, expected at most " + std::to_string(limits.file) + " bytes and " +
                            std::to_string(limits.records) + " records. Name fewer programs");
  }
  const Result<BundlePublicKey> key = public_key_of(secret);
  if (!key) return key.error();
  std::vector<std::byte> bytes;
  bytes.reserve(static_cast<std::size_t>(whole));
  append_bytes(bytes, text_bytes(bundle_magic));
  append_little_endian(bytes, bundle_schema);
  append_little_endian(bytes, records_);
  append_bytes(bytes, *key);
  append_little_endian(bytes, static_cast<std::uint64_t>(body_.size()));
  append_bytes(bytes, body_);
  const std::string message = message_of(sha256(std::span<const std::byte>(bytes)));
  const Result<BundleSignature> signature = sign_bundle(secret, text_bytes(message));
  if (!signature) return signature.error();
  append_bytes(bytes, *signature);
  return bytes;
}

Result<std::uint32_t> decode_bundle_header(std::span<const std::byte> beginning, std::uint64_t file_bytes,
                                           const BundlePublicKey& trusted, const BundleLimits& limits) {
  constexpr std::uint64_t least = bundle_header_bytes + bundle_trailer_bytes;
  if (beginning.size() < bundle_magic.size() || text_of(beginning.first(bundle_magic.size())) != bundle_magic) {
    return corrupt("is not a bundle: does not begin with " + std::string(bundle_magic));
  }
  if (file_bytes < least || beginning.size() < bundle_header_bytes) {
    return corrupt(found_and_expected("is truncated: has ", file_bytes, " bytes, expected at least ", least));
  }
  if (file_bytes > limits.file) {
    return corrupt(found_and_expected("has ", file_bytes, " bytes, expected at most ", limits.file));
  }
  const auto schema = read_little_endian<std::uint32_t>(beginning, 8);
  if (schema != bundle_schema) {
    return corrupt(found_and_expected("has schema ", schema, ", expected ", bundle_schema) +
                   ". Export the bundle again with the version of Kiln that imports it");
  }
  const auto body_bytes = read_little_endian<std::uint64_t>(beginning, 48);
  if (body_bytes > limits.file || least + body_bytes != file_bytes) {
    return corrupt(found_and_expected("is truncated or altered: has ", file_bytes, " bytes, expected ",
                                      body_bytes > limits.file ? least : least + body_bytes));
  }
  BundlePublicKey signer;
  std::ranges::copy(beginning.subspan(16, signer.size()), signer.begin());
  if (signer != trusted) {
    return corrupt("is signed by key " + hex_of(signer) + ", expected the trusted key " + hex_of(trusted));
  }
  return read_little_endian<std::uint32_t>(beginning, 12);
}

Status check_bundle_signature(const Digest& signed_part, const BundleSignature& signature,
                              const BundlePublicKey& trusted) {
  const Result<bool> authentic = is_signed_by(trusted, text_bytes(message_of(signed_part)), signature);
  if (!authentic) return authentic.error();
  if (*authentic) return {};
  return corrupt("was altered, or was not signed by key " + hex_of(trusted));
}

Result<Bundle> decode_bundle(std::span<const std::byte> bytes, const BundlePublicKey& trusted,
                             const BundleLimits& limits) {
  const auto records = decode_bundle_header(bytes, bytes.size(), trusted, limits);
  if (!records) return records.error();
  const auto signed_part = bytes.first(bytes.size() - bundle_trailer_bytes);
  BundleSignature signature;
  std::ranges::copy(bytes.last(bundle_trailer_bytes), signature.begin());
  if (Status status = check_bundle_signature(sha256(signed_part), signature, trusted); !status.ok()) return status;
  return decode_bundle_records(signed_part.subspan(bundle_header_bytes), *records, limits);
}

Result<Bundle> decode_bundle_records(std::span<const std::byte> body, std::uint32_t records,
                                     const BundleLimits& limits) {
  if (records > limits.records) {
    return corrupt(found_and_expected("has ", records, " records, expected at most ", limits.records));
  }
  Bundle bundle;
  std::uint32_t taken = 0;
  for (; !body.empty(); ++taken) {
    const std::string which = "record " + std::to_string(taken + 1) + " of " + std::to_string(records);
    if (taken == records) {
      return corrupt("has " + std::to_string(body.size()) + " bytes after the last record, expected 0");
    }
    if (body.size() < record_header_bytes) {
      return corrupt(
          found_and_expected(which + ": header has ", body.size(), " bytes, expected ", record_header_bytes));
    }
    const auto kind = read_little_endian<std::uint32_t>(body, 0);
    const auto size = read_little_endian<std::uint64_t>(body, 4);
    body = body.subspan(record_header_bytes);
    if (size > body.size()) {
      return corrupt(found_and_expected(which + ": has ", body.size(), " bytes, expected ", size));
    }
    if (!take_record(kind, text_of(body.first(static_cast<std::size_t>(size))), limits, bundle)) {
      return corrupt(which + ": is not valid in schema " + std::to_string(bundle_schema) + " (kind " +
                     std::to_string(kind) + ")");
    }
    body = body.subspan(static_cast<std::size_t>(size));
  }
  if (taken != records) return corrupt(found_and_expected("has ", taken, " records, expected ", records));
  return bundle;
}

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
                   "is signed by key '" + key->name + "', which expired on " + date_text(*key->until_s - 1));
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
  if (!payload) return refused(ObjectFault::payload, "is damaged: " + payload.error().message);
  Result<ProgramBinary> binary = decode_payload(std::string(program.entry.format), *payload);
  if (!binary) return refused(ObjectFault::payload, "is damaged: " + binary.error().message);
  for (const DriverFile& file : binary->driver_files) {
    if (!is_mesa_file_name(file.name)) {
      return refused(ObjectFault::driver_file, "has a driver file with an invalid name, '" + file.name + "'");
    }
  }
  return {ObjectFault::none,
          {},
          {std::move(*binary), program.entry.build_ns, program.key, std::string(program.entry.material),
           std::string(program.folder), std::string(program.meta), signer}};
}

std::string object_name(std::string_view folder, const Digest& key) { return std::string(folder) + "/" + key.hex(); }

Result<std::vector<std::byte>> make_object(std::span<const std::byte> entry, const EntryKey& own,
                                           const std::string& folder, const std::string& meta,
                                           const SecretKey& signer) {
  const DecodedEntry decoded = decode_entry(entry, own);
  if (decoded.rejection != Rejection::none) return corrupt(decoded.why);
  return make_object({folder, sha256(decoded.entry.material), decoded.entry, meta}, signer);
}

Result<std::vector<std::byte>> make_object(const BundledProgram& program, const SecretKey& signer) {
  const Result<std::vector<std::byte>> payload = inflate_payload(program.entry);
  if (!payload) return payload.error();
  const Result<ProgramBinary> binary = decode_payload(std::string(program.entry.format), *payload);
  if (!binary) return binary.error();
  for (const DriverFile& file : binary->driver_files) {
    if (!is_mesa_file_name(file.name)) {
      return corrupt("driver file '" + file.name +
                     "': expected a name of Mesa's cache (2 hexadecimal digits, '/', 38 hexadecimal digits)");
    }
  }
  BundleWriter writer;
  writer.add(program);
  Result<std::vector<std::byte>> object = std::move(writer).finish(signer, object_limits());
  if (object || object.error().code != StatusCode::invalid_argument) return object;
  return invalid_argument("payload has " + std::to_string(program.entry.stored.size()) + " bytes, expected at most " +
                          std::to_string(most_object_bytes) + " in the whole object");
}

}  // namespace kiln

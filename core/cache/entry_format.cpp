#include "cache/entry_format.hpp"

#include "base/digest.hpp"
#include "base/os/private_folder.hpp"
#include "cache/key_material.hpp"

#include <zstd.h>

#include <algorithm>
#include <cstring>

#include <kiln/digest.hpp>

namespace kiln {

namespace {

constexpr std::string_view magic = "KILNPROG";
// A small payload fills the same blocks of a disk either way, and half of the time to inflate it is Huffman's tables:
// the negative level does without them. Measured in docs/measurements/program-cache.md.
constexpr std::size_t small_payload = 16 << 10;
int zstd_level(std::size_t bytes) { return bytes <= small_payload ? -1 : 1; }
constexpr std::size_t key_id_at = 16;

void append(std::vector<std::byte>& to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string versus(std::string_view what, std::uint64_t found, std::uint64_t expected) {
  return std::string(what) + " " + std::to_string(found) + ", expected " + std::to_string(expected);
}

// Compressed, or empty where that gains nothing.
std::vector<std::byte> deflate(std::span<const std::byte> payload) {
  std::vector<std::byte> packed(ZSTD_compressBound(payload.size()));
  const std::size_t size =
      ZSTD_compress(packed.data(), packed.size(), payload.data(), payload.size(), zstd_level(payload.size()));
  if (ZSTD_isError(size) != 0 || size >= payload.size()) return {};
  packed.resize(size);
  return packed;
}

// What the header says, its lengths still to be believed only where they fit the file.
struct Header {
  std::uint32_t schema, compression, format_bytes, material_bytes;
  std::uint64_t stored_bytes, inflated_bytes, build_ns;
};

Header read_header(std::span<const std::byte> bytes) {
  return {read_little_endian<std::uint32_t>(bytes, 8),  read_little_endian<std::uint32_t>(bytes, 12),
          read_little_endian<std::uint32_t>(bytes, 32), read_little_endian<std::uint32_t>(bytes, 36),
          read_little_endian<std::uint64_t>(bytes, 40), read_little_endian<std::uint64_t>(bytes, 48),
          read_little_endian<std::uint64_t>(bytes, 56)};
}

// Empty where the header is one of ours and fits the file.
std::string fault_of(const Header& header, std::span<const std::byte> bytes, const EntryLimits& limits) {
  if (text_of(bytes.first(magic.size())) != magic) return "the magic number is not that of a program";
  if (header.schema != entry_schema) return versus("schema", header.schema, entry_schema);
  if (header.compression != 1 && header.compression != 2) return versus("compression", header.compression, 2);
  if (header.format_bytes > limits.format || header.material_bytes > limits.material ||
      header.stored_bytes > limits.payload || header.inflated_bytes > limits.payload) {
    return "a length in the header exceeds the limit";
  }
  const std::uint64_t declared =
      entry_header_bytes + header.format_bytes + header.material_bytes + header.stored_bytes + entry_trailer_bytes;
  if (declared != bytes.size()) return versus("bytes", bytes.size(), declared);
  return {};
}

// REQUIRES: fault_of() found none.
EntryView view_of(const Header& header, std::span<const std::byte> bytes) {
  const auto body = bytes.subspan(entry_header_bytes, bytes.size() - entry_header_bytes - entry_trailer_bytes);
  EntryView entry;
  entry.format = text_of(body.first(header.format_bytes));
  entry.material = text_of(body.subspan(header.format_bytes, header.material_bytes));
  entry.stored = body.subspan(std::size_t{header.format_bytes} + header.material_bytes);
  entry.compression = static_cast<Compression>(header.compression);
  entry.inflated_bytes = header.inflated_bytes;
  entry.build_ns = header.build_ns;
  return entry;
}

}  // namespace

EntryKey::EntryKey(const SecretKey& secret) noexcept : hmac(secret.bytes) {
  const Digest digest = hmac.of(bytes_of("kiln: id of the signing key"));
  std::memcpy(id.data(), digest.bytes.data(), id.size());
}

Result<std::vector<std::byte>> encode_entry(const EntryView& entry, const EntryKey& key, const EntryLimits& limits) {
  if (entry.format.size() > limits.format || entry.material.size() > limits.material ||
      entry.stored.size() > limits.payload) {
    return invalid_argument("program has " + std::to_string(entry.stored.size()) + " bytes, " +
                            std::to_string(entry.material.size()) + " bytes of key material and a format name of " +
                            std::to_string(entry.format.size()) + " bytes, expected at most " +
                            std::to_string(limits.payload) + ", " + std::to_string(limits.material) + " and " +
                            std::to_string(limits.format));
  }
  const std::vector<std::byte> packed =
      entry.compression == Compression::zstd ? deflate(entry.stored) : std::vector<std::byte>();
  const std::span<const std::byte> stored = packed.empty() ? entry.stored : std::span<const std::byte>(packed);

  std::vector<std::byte> bytes;
  bytes.reserve(entry_header_bytes + entry.format.size() + entry.material.size() + stored.size() + entry_trailer_bytes);
  append(bytes, bytes_of(magic));
  append_little_endian(bytes, entry_schema);
  append_little_endian(bytes, static_cast<std::uint32_t>(packed.empty() ? Compression::none : Compression::zstd));
  append(bytes, key.id);
  append_little_endian(bytes, static_cast<std::uint32_t>(entry.format.size()));
  append_little_endian(bytes, static_cast<std::uint32_t>(entry.material.size()));
  append_little_endian(bytes, static_cast<std::uint64_t>(stored.size()));
  append_little_endian(bytes, static_cast<std::uint64_t>(entry.stored.size()));
  append_little_endian(bytes, entry.build_ns);
  append(bytes, bytes_of(entry.format));
  append(bytes, bytes_of(entry.material));
  append(bytes, stored);
  append(bytes, xxh3_128(bytes));
  const Digest signature = key.hmac.of(bytes);
  append(bytes, std::as_bytes(std::span(signature.bytes)));
  return bytes;
}

std::optional<EntryView> view_entry(std::span<const std::byte> bytes, const EntryLimits& limits) {
  if (bytes.size() < entry_header_bytes + entry_trailer_bytes) return std::nullopt;
  const Header header = read_header(bytes);
  if (!fault_of(header, bytes, limits).empty()) return std::nullopt;
  return view_of(header, bytes);
}

std::span<const std::byte> key_id_of_entry(std::span<const std::byte> bytes) noexcept {
  return bytes.subspan(key_id_at, sizeof EntryKey::id);
}

DecodedEntry decode_entry(std::span<const std::byte> bytes, const EntryKey& key, const EntryLimits& limits) {
  const auto rejected = [](Rejection why, std::string text) { return DecodedEntry{why, std::move(text), {}}; };
  if (bytes.size() < entry_header_bytes + entry_trailer_bytes) {
    return rejected(Rejection::corrupt,
                    versus("bytes", bytes.size(), entry_header_bytes + entry_trailer_bytes) + " or more");
  }
  const Header header = read_header(bytes);
  if (std::string fault = fault_of(header, bytes, limits); !fault.empty()) {
    return rejected(Rejection::corrupt, std::move(fault));
  }
  const auto signed_part = bytes.first(bytes.size() - sizeof(Digest));
  const auto summed_part = signed_part.first(signed_part.size() - sizeof(Checksum));
  if (!std::ranges::equal(xxh3_128(summed_part), signed_part.last(sizeof(Checksum)))) {
    return rejected(Rejection::corrupt, "the checksum does not match the content");
  }
  if (!std::ranges::equal(key_id_of_entry(bytes), key.id)) {
    return rejected(Rejection::foreign, "the program is signed with a key other than the key of this user");
  }
  const Digest signature = key.hmac.of(signed_part);
  if (!equal_in_constant_time(std::as_bytes(std::span(signature.bytes)), bytes.last(sizeof(Digest)))) {
    return rejected(Rejection::tampered, "the checksum is correct, but the authentication code is wrong");
  }
  return {Rejection::none, {}, view_of(header, bytes)};
}

Result<std::vector<std::byte>> inflate_payload(const EntryView& entry, Inflaters& inflaters) {
  if (entry.compression == Compression::none) {
    if (entry.stored.size() != entry.inflated_bytes) {
      return corrupt(versus("payload bytes", entry.stored.size(), entry.inflated_bytes));
    }
    return std::vector<std::byte>(entry.stored.begin(), entry.stored.end());
  }
  // The frame's own size is asked first, so that nothing is allocated for a declaration that cannot come true.
  const unsigned long long framed = ZSTD_getFrameContentSize(entry.stored.data(), entry.stored.size());
  if (framed != entry.inflated_bytes) return corrupt(versus("payload bytes", framed, entry.inflated_bytes));
  std::vector<std::byte> payload(static_cast<std::size_t>(entry.inflated_bytes));
  const std::size_t size = inflaters.inflate(payload, entry.stored);
  if (ZSTD_isError(size) != 0) {
    return corrupt(std::string("payload cannot be decompressed: ") + ZSTD_getErrorName(size));
  }
  if (size != payload.size()) return corrupt(versus("payload bytes", size, payload.size()));
  return payload;
}

Result<std::vector<std::byte>> inflate_payload(const EntryView& entry) {
  Inflaters inflaters;
  return inflate_payload(entry, inflaters);
}

Inflaters::~Inflaters() {
  for (ZSTD_DCtx* context : idle_) ZSTD_freeDCtx(context);
}

ZSTD_DCtx* Inflaters::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      ZSTD_DCtx* context = idle_.back();
      idle_.pop_back();
      return context;
    }
    idle_.reserve(idle_.capacity() + 1);  // what is lent has its place to come back to
  }
  return ZSTD_createDCtx();
}

std::size_t Inflaters::inflate(std::span<std::byte> inflated, std::span<const std::byte> stored) {
  ZSTD_DCtx* context = take();
  if (context == nullptr) return ZSTD_decompress(inflated.data(), inflated.size(), stored.data(), stored.size());
  const std::size_t size = ZSTD_decompressDCtx(context, inflated.data(), inflated.size(), stored.data(), stored.size());
  const std::lock_guard lock(mutex_);
  idle_.push_back(context);
  return size;
}

namespace {

constexpr std::size_t longest_name = 512, longest_part = 255, most_parts = 8;

std::string_view payload_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<std::byte> copied_bytes(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

bool is_plain(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

}  // namespace

bool is_driver_file_name(std::string_view name) noexcept {
  if (name.empty() || name.size() > longest_name) return false;
  for (std::size_t parts = 1;; ++parts) {
    const std::string_view part = name.substr(0, name.find('/'));
    if (part.empty() || part.size() > longest_part || part.front() == '.' || parts > most_parts ||
        !std::ranges::all_of(part, is_plain)) {
      return false;
    }
    if (part.size() == name.size()) return true;
    name.remove_prefix(part.size() + 1);
  }
}

std::vector<std::byte> encode_payload(const ProgramBinary& program) {
  KeyEncoder fields;
  fields.field("binary", payload_text(program.bytes));
  if (!program.driver_files.empty()) fields.field("driver_setting", program.driver_setting);
  for (const DriverFile& file : program.driver_files) {
    fields.field("name", file.name);
    fields.field("content", payload_text(file.bytes));
  }
  return copied_bytes(fields.material());
}

Result<ProgramBinary> decode_payload(std::string format, std::span<const std::byte> bytes) {
  const auto fields = decode_key_material(payload_text(bytes));
  if (!fields || fields->empty() || fields->front().name != "binary") {
    return corrupt("payload of " + std::to_string(bytes.size()) + " bytes: expected field 'binary' first");
  }
  ProgramBinary program{std::move(format), copied_bytes(fields->front().value)};
  if (fields->size() == 1) return program;
  const std::size_t files = (fields->size() - 2) / 2;
  if ((*fields)[1].name != "driver_setting" || fields->size() % 2 != 0 || files > most_driver_files) {
    return corrupt("payload has " + std::to_string(fields->size()) +
                   " fields, expected binary, driver_setting, and at most " + std::to_string(most_driver_files) +
                   " driver files of two fields each");
  }
  program.driver_setting = (*fields)[1].value;
  std::uint64_t total = 0;
  for (std::size_t i = 2; i < fields->size(); i += 2) {
    const KeyField &name = (*fields)[i], &content = (*fields)[i + 1];
    total += content.value.size();
    const bool in_order = program.driver_files.empty() || program.driver_files.back().name < name.value;
    if (name.name != "name" || content.name != "content" || !in_order || !is_driver_file_name(name.value) ||
        total > most_driver_file_bytes) {
      return corrupt("driver file " + std::to_string(i / 2) + " of " + std::to_string(files) +
                     ": invalid name, order or size");
    }
    program.driver_files.push_back({std::string(name.value), copied_bytes(content.value)});
  }
  return program;
}

}  // namespace kiln

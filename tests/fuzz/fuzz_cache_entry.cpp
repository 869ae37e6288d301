// Every reader of what lies in a cache folder: entries, key material, manifests, .meta files.
//
// An entry is tried twice: as it is, where almost nothing passes the checksum, and as if its writer had our key, so
// that the fuzzer reaches what stands behind the signature.
#include "base/digest.hpp"
#include "cache/entry_format.hpp"
#include "cache/key_material.hpp"
#include "cache/manifest.hpp"

#include <cstdlib>
#include <cstring>

namespace {

using namespace kiln;

void require(bool holds) {
  if (!holds) std::abort();
}

const EntryKey& our_key() {
  static const EntryKey key{[] {
    SecretKey secret;
    secret.bytes.fill(std::byte{7});
    return secret;
  }()};
  return key;
}

EntryLimits small_limits() {
  EntryLimits limits;
  limits.payload = 1 << 20;  // keeps a run fast; the code is the same as for the real limit
  return limits;
}

void read_entry(std::span<const std::byte> bytes) {
  const DecodedEntry decoded = decode_entry(bytes, our_key(), small_limits());
  require((decoded.rejection == Rejection::none) == decoded.why.empty());
  if (decoded.rejection != Rejection::none) return;
  const auto payload = inflate_payload(decoded.entry);
  if (payload) require(payload->size() == decoded.entry.inflated_bytes);
}

void read_signed_entry(std::span<const std::byte> given) {
  if (given.size() < entry_header_bytes + entry_trailer_bytes) return;
  std::vector<std::byte> bytes(given.begin(), given.end());
  std::memcpy(bytes.data() + 16, our_key().id.data(), our_key().id.size());
  const std::size_t summed = bytes.size() - entry_trailer_bytes;
  const Checksum sum = xxh3_128(std::span(bytes).first(summed));
  std::memcpy(bytes.data() + summed, sum.data(), sum.size());
  const Digest signature = our_key().hmac.of(std::span(bytes).first(summed + sizeof sum));
  std::memcpy(bytes.data() + summed + sizeof sum, signature.bytes.data(), sizeof signature);
  read_entry(bytes);
}

void read_material(std::string_view text) {
  const auto fields = decode_key_material(text);
  if (!fields) return;
  KeyEncoder encoder;
  for (const KeyField& field : *fields) encoder.field(field.name, field.value);
  require(encoder.material() == text);
  require(with_driver(text, "").has_value());
}

void read_json(std::string_view text) {
  static_cast<void>(driver_fields_of_manifest(text));
  if (const auto meta = decode_meta(text)) require(decode_meta(encode_meta(*meta)).has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  read_entry(bytes);
  read_signed_entry(bytes);
  read_material(text);
  read_json(text);
  return 0;
}

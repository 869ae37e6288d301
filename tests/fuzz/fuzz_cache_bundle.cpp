// The reader of bundles, which come from other machines.
//
// Each input is tried twice: as it is, where almost nothing passes the signature, and as if its writer were trusted, so
// that the fuzzer reaches the records behind it.
#include "cache/bundle_format.hpp"
#include "cache/key_material.hpp"
#include "cache/signing_keys.hpp"

#include <cstdint>
#include <cstdlib>

namespace {

using namespace kiln;

void require(bool holds) {
  if (!holds) std::abort();
}

BundleLimits small_limits() {
  BundleLimits limits;
  limits.entry.payload = 1 << 20;  // keeps a run fast; the code is the same as for the real limits
  return limits;
}

const BundlePublicKey& our_key() {
  static const BundlePublicKey key = [] {
    SecretKey secret;
    secret.bytes.fill(std::byte{7});
    return *public_key_of(secret);
  }();
  return key;
}

// What is let through keeps its promises.
void use(const Bundle& bundle) {
  for (const BundledProgram& program : bundle.programs) {
    require(sha256(program.entry.material) == program.key);
    require(program.folder.find('/') == std::string_view::npos);
    if (const auto payload = inflate_payload(program.entry)) {
      require(payload->size() == program.entry.inflated_bytes);
    }
  }
}

void read_as_trusted(std::span<const std::byte> bytes) {
  if (bytes.size() < bundle_header_bytes) return;
  const auto records = read_little_endian<std::uint32_t>(bytes, 12);
  const auto body = bytes.subspan(bundle_header_bytes);
  for (const std::size_t trailer : {bundle_trailer_bytes, std::size_t{0}}) {
    if (body.size() < trailer) continue;
    if (const auto bundle = decode_bundle_records(body.first(body.size() - trailer), records, small_limits())) {
      use(*bundle);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  if (const auto bundle = decode_bundle(bytes, our_key(), small_limits())) use(*bundle);
  read_as_trusted(bytes);
  return 0;
}

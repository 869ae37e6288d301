// The readers of what a remote answers: shared objects, the index, the replies of Redis; and of the files that
// processes share about remotes. The first byte of an input chooses the reader.
#include "cache/bundle_format.hpp"
#include "cache/entry_format.hpp"
#include "cache/remote_state.hpp"
#include "resp.hpp"

#include <cstdint>
#include <cstdlib>

namespace {

using namespace kiln;

void require(bool holds) {
  if (!holds) std::abort();
}

const SecretKey& our_secret() {
  static const SecretKey secret = [] {
    SecretKey made;
    made.bytes.fill(std::byte{7});
    return made;
  }();
  return secret;
}

void read_object(std::span<const std::byte> bytes) {
  static const std::vector<TrustedKey> accepted{{"ours", *public_key_of(our_secret()), std::nullopt, false, {}}};
  const OpenedObject opened = open_object(bytes, accepted, 1'790'000'000, std::nullopt);
  if (opened.fault != ObjectFault::none) return require(!opened.why.empty());
  require(sha256(opened.program.material) == opened.program.key);
  for (const DriverFile& file : opened.program.binary.driver_files) require(is_mesa_file_name(file.name));
}

void read_index(std::span<const std::byte> bytes) {
  const auto index = decode_remote_index(bytes);
  if (index) require(encode_remote_index(*index) == std::vector<std::byte>(bytes.begin(), bytes.end()));
}

void read_replies(std::string_view text) {
  remote_redis::ReplyParser whole({1 << 20, 10'000}), parts({1 << 20, 10'000});
  const auto count = [](remote_redis::ReplyParser& parser) {
    std::size_t replies = 0;
    while (true) {
      const auto reply = parser.next();
      if (!reply || !*reply) return replies;
      ++replies;
    }
  };
  whole.add(text);
  const std::size_t expected = count(whole);
  std::size_t found = 0;
  for (const char& each : text) {
    parts.add(std::string_view(&each, 1));
    found += count(parts);
  }
  // A fault ends the connection: what follows it may be read in another way.
  require(found >= expected);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data + 1, size - 1));
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 6) {
    case 0:
      read_object(bytes);
      break;
    case 1:
      read_index(bytes);
      break;
    case 2:
      read_replies(text);
      break;
    case 3: {
      const RemoteState state = decode_remote_state(text);
      if (state.closed_until_ms != 0) require(encode_remote_state(state) == text);
      break;
    }
    case 5: {
      const RemoteTotals totals = decode_remote_totals(text);
      require(decode_remote_totals(encode_remote_totals(totals)) == totals);
      break;
    }
    default:
      if (const auto key = decode_trusted_key(text)) {
        require(decode_trusted_key(encode_trusted_key(*key, 0)).has_value());
      }
  }
  return 0;
}

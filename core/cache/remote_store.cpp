// What a RemoteStore does by default, and the format of its index.
#include <kiln/remote_store.hpp>

#include "cache/little_endian.hpp"

#include <algorithm>
#include <cstring>

namespace kiln {
namespace {

constexpr std::string_view index_magic = "KILNINDX";
constexpr std::uint32_t index_schema = 1;
constexpr std::size_t index_header_bytes = 16, index_entry_bytes = 40;
constexpr std::uint64_t most_index_bytes = 16ull << 20;  // 400,000 programs

}  // namespace

RemoteStore::~RemoteStore() = default;
RemoteLeases::~RemoteLeases() = default;

std::vector<std::byte> encode_remote_index(const RemoteIndex& index) {
  std::vector<std::byte> bytes;
  bytes.reserve(index_header_bytes + index.size() * index_entry_bytes);
  const auto magic = std::as_bytes(std::span(index_magic));
  bytes.insert(bytes.end(), magic.begin(), magic.end());
  append_little_endian(bytes, index_schema);
  append_little_endian(bytes, static_cast<std::uint32_t>(index.size()));
  for (const RemoteIndexEntry& entry : index) {
    const auto key = std::as_bytes(std::span(entry.key.bytes));
    bytes.insert(bytes.end(), key.begin(), key.end());
    append_little_endian(bytes, entry.build_ns);
  }
  return bytes;
}

Result<RemoteIndex> decode_remote_index(std::span<const std::byte> bytes) {
  if (bytes.size() < index_header_bytes ||
      !std::ranges::equal(bytes.first(index_magic.size()), std::as_bytes(std::span(index_magic)))) {
    return corrupt("index: its magic is not " + std::string(index_magic));
  }
  const auto schema = read_little_endian<std::uint32_t>(bytes, 8);
  if (schema != index_schema) {
    return corrupt("index: schema " + std::to_string(schema) + ", expected " + std::to_string(index_schema));
  }
  const std::uint64_t entries = read_little_endian<std::uint32_t>(bytes, 12);
  if (index_header_bytes + entries * index_entry_bytes != bytes.size()) {
    return corrupt("index: bytes " + std::to_string(bytes.size()) + ", expected " +
                   std::to_string(index_header_bytes + entries * index_entry_bytes));
  }
  RemoteIndex index(static_cast<std::size_t>(entries));
  for (std::size_t i = 0; i < index.size(); ++i) {
    const auto entry = bytes.subspan(index_header_bytes + i * index_entry_bytes, index_entry_bytes);
    std::memcpy(index[i].key.bytes.data(), entry.data(), sizeof(Digest));
    index[i].build_ns = read_little_endian<std::uint64_t>(entry, sizeof(Digest));
    if (i != 0 && !(index[i - 1].key < index[i].key)) return corrupt("index: its entries are not sorted");
  }
  return index;
}

RemoteIndex merged_index(const RemoteIndex& index, const RemoteIndex& more) {
  RemoteIndex all = more;  // stable: of equal keys the one of `more` stays first
  all.insert(all.end(), index.begin(), index.end());
  std::ranges::stable_sort(all, {}, &RemoteIndexEntry::key);
  const auto same_key = [](const RemoteIndexEntry& a, const RemoteIndexEntry& b) { return a.key == b.key; };
  all.erase(std::unique(all.begin(), all.end(), same_key), all.end());
  return all;
}

std::string remote_index_name(std::string_view folder) { return std::string(folder) + "/index"; }

Status RemoteStore::get_many(std::span<const std::string> names, const RemoteLimits& limits,
                             const OnObject& on_object) noexcept try {
  for (std::size_t place = 0; place < names.size(); ++place) {
    auto object = get(names[place], limits);
    if (!object) return std::move(object).error();
    if (*object) on_object(place, std::move(**object));
  }
  return {};
} catch (...) {
  return caught();
}

Result<std::optional<RemoteIndex>> RemoteStore::index(const std::string& folder, const RemoteLimits& limits) noexcept
    try {
  RemoteLimits of_index = limits;
  of_index.most_bytes = most_index_bytes;
  const auto object = get(remote_index_name(folder), of_index);
  if (!object) return object.error();
  if (!*object) return std::optional<RemoteIndex>();
  auto index = decode_remote_index(**object);
  if (!index) return std::move(index).error();
  return std::optional(std::move(*index));
} catch (...) {
  return caught();
}

Status RemoteStore::add_to_index(const std::string& folder, const RemoteIndex& more,
                                 const RemoteLimits& limits) noexcept try {
  const auto found = index(folder, limits);
  // A damaged index is replaced: it is written by every writer, so it recovers.
  if (!found && found.error().code != StatusCode::corrupt) return found.error();
  const RemoteIndex known = found && *found ? **found : RemoteIndex();
  const RemoteIndex all = merged_index(known, more);
  if (all == known) return {};
  return put(remote_index_name(folder), encode_remote_index(all), limits);
} catch (...) {
  return caught();
}

std::chrono::seconds RemoteStore::retry_after() const noexcept { return {}; }

}  // namespace kiln

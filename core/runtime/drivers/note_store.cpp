#include "runtime/drivers/note_store.hpp"

#include "base/os/private_folder.hpp"
#include "base/os/privilege.hpp"

#include <kiln/digest.hpp>

#include <new>

namespace kiln {
namespace {

constexpr std::uint64_t note_schema = 1;
constexpr EntryLimits limits{.payload = 64u << 10, .material = 64u << 10, .format = 16};
constexpr std::string_view format = "note";

std::string file_name_of(std::string_view material) { return sha256(material).hex() + ".note"; }

}  // namespace

NoteStore::NoteStore(const CacheConfig& config, std::string driver) : config_(config), driver_(std::move(driver)) {}

NoteStore::Place* NoteStore::open() {
  const std::lock_guard lock(mutex_);
  if (tried_) return place_ ? &*place_ : nullptr;
  tried_ = true;
  if (config_.directory.empty() || config_.key_file.empty() || has_borrowed_rights()) return nullptr;
  const Create create = config_.read_only ? Create::no : Create::yes;
  const Result<UniqueFd> root = open_folder(config_.directory, create);
  if (!root || !*root) return nullptr;
  Result<UniqueFd> folder = open_subfolder(root->get(), "notes", "folder notes", create);
  if (!folder || !*folder) return nullptr;
  const Result<SecretKey> secret =
      read_secret_key(config_.key_file, config_.read_only ? IfMissing::fail : IfMissing::create);
  if (!secret) return nullptr;
  place_.emplace(Place{std::move(*folder), EntryKey(*secret)});
  return &*place_;
}

std::string NoteStore::material_of(std::string_view name) const {
  KeyEncoder encoder;
  encoder.field("note_schema", note_schema);
  encoder.field("driver", driver_);
  encoder.field("name", name);
  return encoder.material();
}

std::optional<std::vector<std::byte>> NoteStore::find(std::string_view name) noexcept {
  try {
    const Place* place = open();
    if (place == nullptr) return std::nullopt;
    const std::string material = material_of(name);
    const FileContents file = read_file(place->folder.get(), file_name_of(material), limits.file());
    if (file.state != FileState::read) return std::nullopt;
    const DecodedEntry decoded = decode_entry(file.bytes, place->key, limits);
    if (decoded.rejection != Rejection::none || decoded.entry.material != material) return std::nullopt;
    auto payload = inflate_payload(decoded.entry);
    if (!payload) return std::nullopt;
    return std::move(*payload);
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
}

void NoteStore::keep(std::string_view name, std::span<const std::byte> bytes) noexcept {
  try {
    const Place* place = config_.read_only ? nullptr : open();
    if (place == nullptr) return;
    const std::string material = material_of(name);
    EntryView entry;
    entry.format = format;
    entry.material = material;
    entry.stored = bytes;
    entry.compression = Compression::none;
    const auto encoded = encode_entry(entry, place->key, limits);
    // A note that cannot be kept is found out again: nobody needs to hear of it.
    if (encoded) (void)write_file(place->folder.get(), file_name_of(material), *encoded);
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace kiln

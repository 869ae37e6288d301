#include "cache_admin/importer.hpp"

#include "cache/cache_root.hpp"
#include "cache/entry_meta.hpp"
#include "cache/key_material.hpp"
#include "cache/manifest.hpp"

#include <utility>
#include <vector>

namespace kiln {
namespace {

// Label and times stay; what was measured there as a rate is no fact here.
std::string meta_here(std::string_view text, const Digest& key) {
  EntryMeta meta = decode_meta(text).value_or(EntryMeta{});
  meta.key = key.hex();
  meta.gflops = 0;
  return encode_meta(meta);
}

}  // namespace

std::string identity_in(std::string_view material) {
  const auto fields = decode_key_material(material);
  KeyEncoder device, driver;
  for (const KeyField& field : fields ? *fields : std::vector<KeyField>()) {
    if (field.name.starts_with("device.")) device.field(field.name, field.value);
    if (field.name.starts_with("driver.")) driver.field(field.name, field.value);
  }
  return device.material() + "|" + driver.material();
}

std::string identity_of(const DeviceInfo& device) { return device_fields(device) + "|" + driver_fields(device); }

Status Importer::open() {
  Result<UniqueFd> folder = open_folder(cache_.directory, Create::yes);
  if (!folder) return folder.error();
  root_ = std::move(*folder);
  const Result<SecretKey> secret = read_secret_key(cache_.key_file, IfMissing::create);
  if (!secret) return secret.error();
  key_ = std::make_unique<EntryKey>(*secret);
  bound_ = std::make_unique<DiskBound>(root_.get(), cache_.max_disk);
  return {};
}

DeviceFolder& Importer::folder_of(const DeviceInfo& device) {
  auto& folder = folders_[device_folder_name(device)];
  if (folder == nullptr) folder = std::make_unique<DeviceFolder>(root_.get(), device);
  return *folder;
}

bool Importer::has(const Digest& key, const DeviceInfo& device) {
  const FileContents there = folder_of(device).read(key, StoredFile::program, EntryLimits{}.file());
  return there.state == FileState::read && judge(there, key, *key_).reason == Rejection::none;
}

Status Importer::place(const Digest& key, EntryView entry, std::string_view meta, const DeviceInfo& device) {
  DeviceFolder& folder = folder_of(device);
  if (folder.quarantine_lasts(key)) {
    ++outcome_.programs_quarantined;
    return {};
  }
  if (has(key, device)) {
    ++outcome_.programs_already;
    return {};
  }
  entry.compression = cache_.compression == "none" ? Compression::none : Compression::zstd;
  const Result<std::vector<std::byte>> bytes = encode_entry(entry, *key_);
  if (!bytes) return bytes.error();
  if (Status status = folder.write(key, StoredFile::program, *bytes); !status.ok()) return status;
  const std::string text = meta_here(meta, key);
  // Losing a .meta loses no program.
  static_cast<void>(folder.write(key, StoredFile::meta, std::as_bytes(std::span(text))));
  ++outcome_.programs;
  outcome_.bytes += bytes->size() + text.size();
  outcome_.pruned += bound_->published(bytes->size() + text.size());
  return {};
}

}  // namespace kiln

#include "cache_admin/bundles.hpp"

#include "base/os/atomic_file.hpp"
#include "base/os/private_folder.hpp"
#include "base/os/process_limits.hpp"
#include "cache/bundle_format.hpp"
#include "cache/cache_root.hpp"
#include "cache/key_material.hpp"
#include "cache/manifest.hpp"
#include "cache_admin/explanation.hpp"
#include "cache_admin/selection.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include <kiln/regular_file.hpp>

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

namespace {

constexpr std::uint64_t most_text_bytes = 64 << 10;

void add_devices(const CacheRoot& root, const std::set<std::string>& folders, BundleWriter& bundle) {
  for (const std::string& folder : folders) {
    const UniqueFd opened = existing_subfolder(root.of(Area::stored), folder);
    const std::string manifest =
        opened ? std::string(text_of(read_file(opened.get(), manifest_name, most_text_bytes).bytes)) : "";
    bundle.add(BundledDevice{folder, manifest});
  }
}

}  // namespace

Result<std::string> bundle_public_key(const CacheConfig& cache) {
  const Result<SecretKey> secret = read_bundle_key(cache, cache.read_only ? IfMissing::fail : IfMissing::create);
  if (!secret) return secret.error();
  const Result<BundlePublicKey> key = public_key_of(*secret);
  if (!key) return key.error();
  return hex_of(*key);
}

Result<BundleExport> export_cache(const CacheConfig& cache, const std::filesystem::path& file,
                                  std::span<const std::string> which, const CacheProgress& progress) {
  const Result<CacheRoot> root = CacheRoot::open(cache);
  if (!root) return root.error();
  if (!root->exists()) return not_found("cache " + cache.directory.string() + ": does not exist yet");
  const auto chosen = select_stored(*root, which, cache);
  if (!chosen) return chosen.error();
  const Result<SecretKey> own = read_secret_key(cache.key_file, IfMissing::fail);
  if (!own) return own.error().within("programs cannot be authenticated");
  const Result<SecretKey> secret = read_bundle_key(cache, cache.read_only ? IfMissing::fail : IfMissing::create);
  if (!secret) return secret.error();
  const EntryKey key(*own);

  BundleExport outcome;
  BundleWriter bundle;
  std::set<std::string> folders;
  for (const SelectedProgram& program : *chosen) folders.insert(program.folder);
  add_devices(*root, folders, bundle);
  std::size_t done = 0;
  for (const SelectedProgram& program : *chosen) {
    if (progress) progress(++done, chosen->size());
    const FileContents contents = root->read_program(Area::stored, program.folder, program.entry.digest);
    if (contents.state == FileState::absent) continue;  // another process removed it since it was listed
    EntryVerdict verdict = judge(contents, program.entry.digest, key);
    if (verdict.reason != Rejection::none) {
      outcome.bad.push_back({program.entry.digest, program.folder, program.description.label,
                             std::string(to_string(verdict.reason)), std::move(verdict.why), false});
      continue;
    }
    const DecodedEntry decoded = decode_entry(contents.bytes, key);
    const std::string meta = root->read_meta(Area::stored, program.folder, program.entry.digest);
    bundle.add(BundledProgram{program.folder, program.entry.digest, decoded.entry, meta});
    ++outcome.programs;
  }
  const auto bytes = std::move(bundle).finish(*secret);
  if (!bytes) return bytes.error();
  Result<AtomicFile> written = AtomicFile::create(file);
  if (!written) return written.error();
  if (Status status = written->write(*bytes); !status.ok()) return status;
  if (Status status = written->commit(cache.key_file.parent_path()); !status.ok()) return status;
  outcome.bytes = bytes->size();
  const Result<BundlePublicKey> public_key = public_key_of(*secret);
  if (!public_key) return public_key.error();
  outcome.public_key = hex_of(*public_key);
  return outcome;
}

namespace {

// The bytes of a bundle, whoever owns the file: memory is taken for them once the trusted key is known to have signed
// them.
Result<std::vector<std::byte>> read_bundle(const std::filesystem::path& path, const BundlePublicKey& trusted) {
  const std::string who = "bundle " + path.string();
  const Result<RegularFile> file = RegularFile::open(path);
  if (!file) return file.error().within("bundle");
  std::vector<std::byte> header(static_cast<std::size_t>(std::min<std::uint64_t>(file->bytes(), bundle_header_bytes)));
  if (Status status = file->read(0, header); !status.ok()) return status.within("bundle");
  const auto records = decode_bundle_header(header, file->bytes(), trusted);
  if (!records) return records.error().within(who);
  const std::uint64_t signed_bytes = file->bytes() - bundle_trailer_bytes;
  BundleSignature signature;
  if (Status status = file->read(signed_bytes, signature); !status.ok()) return status.within("bundle");
  const Result<Digest> digest = file->digest_of_first(signed_bytes);
  if (!digest) return digest.error().within("bundle");
  if (Status status = check_bundle_signature(*digest, signature, trusted); !status.ok()) return status.within(who);
  return file->contents(BundleLimits{}.file);
}

std::string here(const std::vector<DeviceInfo>& devices) {
  std::string text;
  for (const DeviceInfo& device : devices) {
    if (!device.serializes) continue;
    text += (text.empty() ? "" : "; ") + device.name + ", " + device.driver + " (" + device_folder_name(device) + ")";
  }
  return text.empty() ? "no device that stores programs" : text;
}

std::string there(const Bundle& bundle) {
  std::string text;
  for (const BundledDevice& device : bundle.devices) {
    const ManifestWords words = words_of_manifest(device.manifest);
    text += (text.empty() ? "" : "; ") + (words.device.empty() ? "a device" : words.device + ", " + words.driver) +
            " (" + std::string(device.folder) + ")";
  }
  return text.empty() ? "no device" : text;
}

// Of a device that the bundle has under another driver: what differs. Empty where it has no device of this machine.
std::string differences(const Bundle& bundle, const std::vector<DeviceInfo>& devices) {
  for (const DeviceInfo& device : devices) {
    const std::string own = device_fields(device);
    for (const BundledProgram& program : bundle.programs) {
      const std::string theirs = identity_in(program.entry.material);
      if (!device.serializes || !theirs.starts_with(own + "|")) continue;
      const auto compared = compare_keys(driver_fields(device), theirs.substr(own.size() + 1));
      if (!compared) continue;
      std::string text;
      for (const KeyDifference& field : compared->differences) {
        const std::string name = field.name.substr(field.name.find('.') + 1);
        text += (text.empty() ? "" : ", ") + name + ": there " + (field.in_stored ? field.stored : "none") + ", here " +
                (field.in_asked ? field.asked : "none");
      }
      return ". The drivers of " + device.name + " differ in " + text;
    }
  }
  return "";
}

class Import {
 public:
  Import(const CacheConfig& cache, const ImportRequest& request, const Bundle& bundle)
      : cache_(cache), request_(request), bundle_(bundle) {}

  // What of the bundle is for this machine, and whether there is room for it. Touches nothing.
  Status choose() {
    std::map<std::string, const DeviceInfo*> devices;
    for (const DeviceInfo& device : request_.devices) devices.emplace(identity_of(device), &device);
    std::uint64_t bytes = 0;
    for (const BundledProgram& program : bundle_.programs) {
      const auto device = devices.find(identity_in(program.entry.material));
      if (device == devices.end()) {
        ++outcome_.programs_of_others;
        continue;
      }
      chosen_.emplace_back(&program, device->second);
      bytes += entry_header_bytes + program.entry.format.size() + program.entry.material.size() +
               std::max<std::uint64_t>(program.entry.stored.size(), program.entry.inflated_bytes) + entry_trailer_bytes;
    }
    if (chosen_.empty()) {
      return unsupported("contains programs for " + there(bundle_) + "; the loaded plugins have " +
                         here(request_.devices) + differences(bundle_, request_.devices) +
                         ". [plugins] load can name other plugins");
    }
    if (bytes > cache_.max_disk) {
      return unavailable("programs need " + std::to_string(bytes) + " bytes, expected at most " +
                         std::to_string(cache_.max_disk) + " (max_disk)");
    }
    return {};
  }

  Result<BundleImport> perform() {
    Importer importer(cache_);
    if (Status status = importer.open(); !status.ok()) return status;
    importer.outcome() = outcome_;
    std::size_t done = 0;
    for (const auto& [program, device] : chosen_) {
      if (request_.progress) request_.progress(++done, chosen_.size());
      if (Status status = place(importer, *program, *device); !status.ok()) {
        return status.within("program " + program->key.hex());
      }
    }
    return importer.outcome();
  }

 private:
  static Status place(Importer& importer, const BundledProgram& program, const DeviceInfo& device) {
    const Result<std::vector<std::byte>> payload = inflate_payload(program.entry);
    if (!payload) return payload.error();
    EntryView entry = program.entry;
    entry.stored = *payload;
    return importer.place(program.key, entry, program.meta, device);
  }

  const CacheConfig& cache_;
  const ImportRequest& request_;
  const Bundle& bundle_;
  BundleImport outcome_;
  std::vector<std::pair<const BundledProgram*, const DeviceInfo*>> chosen_;
};

}  // namespace

Result<BundleImport> import_cache(const CacheConfig& cache, const ImportRequest& request) {
  const std::string who = "bundle " + request.file.string();
  if (has_borrowed_rights()) {
    return unavailable("this process has more privileges than its user (setuid, setgid or capabilities)");
  }
  const Result<CacheRoot> root = CacheRoot::open_to_write(cache);
  if (!root) return root.error();
  if (Status status = check_key_file_place(cache); !status.ok()) return status;
  const Result<BundlePublicKey> trusted = read_trusted_key(request.trust);
  if (!trusted) return trusted.error();
  const Result<std::vector<std::byte>> bytes = read_bundle(request.file, *trusted);
  if (!bytes) return bytes.error();
  const Result<Bundle> bundle = decode_bundle(*bytes, *trusted);
  if (!bundle) return bundle.error().within(who);
  Import import(cache, request, *bundle);
  if (Status status = import.choose(); !status.ok()) return status.within(who);
  Result<BundleImport> outcome = import.perform();
  if (!outcome) return std::move(outcome).error().within(who);
  return outcome;
}

}  // namespace kiln

#include "cache/admin/cache_root.hpp"
#include "cache/admin/selection.hpp"
#include "cache/admin/verdict.hpp"
#include "cache/bundle/bundle_format.hpp"
#include "cache/folder/open_folder.hpp"
#include "cache/format/manifest.hpp"

#include "base/atomic_file.hpp"

#include <algorithm>
#include <set>

namespace kiln {
namespace {

constexpr std::uint64_t most_text_bytes = 64 << 10;

std::string text_of(const FileContents& file) {
  return file.state == FileState::read
             ? std::string(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size())
             : std::string();
}

Result<std::vector<SelectedProgram>> chosen_programs(const CacheRoot& root, std::span<const std::string> which,
                                                     const CacheConfig& cache) {
  std::vector<SelectedProgram> all, chosen;
  const Survey found = root.survey(Area::stored);
  for (const StoredEntry& entry : found.entries) {
    if (!entry.program) continue;
    const std::string& folder = found.folders[entry.folder];
    all.push_back({Area::stored, folder, entry, root.describe(Area::stored, folder, entry)});
  }
  for (const std::string& one : which) {
    if (std::ranges::any_of(all, [&](const SelectedProgram& program) { return is_named(one, program); })) continue;
    return not_found("program '" + one + "': no stored program has this label or a key that begins so, in " +
                     cache.directory.string());
  }
  for (SelectedProgram& program : all) {
    const auto names = [&](const std::string& one) { return is_named(one, program); };
    if (which.empty() || std::ranges::any_of(which, names)) chosen.push_back(std::move(program));
  }
  if (chosen.empty()) return not_found("cache " + cache.directory.string() + ": no program is stored");
  return chosen;
}

void add_devices(const CacheRoot& root, const std::set<std::string>& folders, BundleWriter& bundle) {
  for (const std::string& folder : folders) {
    const Result<UniqueFd> opened = open_subfolder(root.of(Area::stored), folder, folder, Create::no);
    const std::string manifest =
        opened && *opened ? text_of(read_file(opened->get(), manifest_name, most_text_bytes)) : "";
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
  if (!root->exists()) return not_found("cache " + cache.directory.string() + ": there is none yet");
  const auto chosen = chosen_programs(*root, which, cache);
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

}  // namespace kiln

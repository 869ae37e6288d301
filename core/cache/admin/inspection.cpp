#include "cache/admin/key_fields.hpp"
#include "cache/admin/selection.hpp"
#include "cache/admin/verdict.hpp"

#include "base/secret_key.hpp"
#include "cache/format/entry_format.hpp"

namespace kiln {
namespace {

constexpr double ns_per_ms = 1e6;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void read_header(std::span<const std::byte> bytes, ProgramInspection& into) {
  const auto entry = view_entry(bytes);
  if (!entry) return;
  into.schema = entry_schema;  // view_entry() answers for no other
  into.compression = entry->compression == Compression::zstd ? "zstd" : "none";
  into.format = is_text(entry->format) ? std::string(entry->format) : hex_of_bytes(entry->format);
  into.signed_by = hex_of_bytes(text_of(key_id_of_entry(bytes)));
  into.material_bytes = entry->material.size();
  into.stored_bytes = entry->stored.size();
  into.inflated_bytes = entry->inflated_bytes;
  into.build_ms = static_cast<double>(entry->build_ns) / ns_per_ms;
  const auto fields = decode_key_material(entry->material);
  if (!fields) return;
  for (const KeyField& field : *fields) into.fields.push_back({std::string(field.name), words_of_field(field)});
}

}  // namespace

Result<ProgramInspection> inspect_program(const CacheConfig& cache, std::string_view which) {
  const Result<CacheRoot> root = CacheRoot::open(cache);
  if (!root) return root.error();
  const auto selected = root->exists() ? select_programs(*root, which) : std::vector<SelectedProgram>();
  const std::string asked = "program '" + std::string(which) + "'";
  if (selected.empty()) {
    return not_found(asked + ": no stored program has this label or a key that begins so, in " +
                     cache.directory.string());
  }
  if (selected.size() > 1) {
    return invalid_argument(asked + " stands for " + list_of(selected) + ": name one by more digits of its key");
  }
  const SelectedProgram& one = selected.front();
  ProgramInspection inspection;
  inspection.program = one.description;
  inspection.device = root->device(one.area, one.folder);
  std::filesystem::path path = cache.directory;
  if (one.area == Area::pending) path /= pending_name;
  path /= one.folder;
  path /= subfolder_of(one.entry.digest);
  inspection.path = (path / file_name_of(one.entry.digest, ".bin")).string();

  const FileContents file = root->read_program(one.area, one.folder, one.entry.digest);
  if (file.state == FileState::read) read_header(file.bytes, inspection);
  const Result<SecretKey> secret = read_secret_key(cache.key_file, IfMissing::fail);
  if (!secret) {
    inspection.verdict = "not checked";
    inspection.why = secret.error().message;
    return inspection;
  }
  EntryVerdict verdict = judge(file, one.entry.digest, EntryKey(*secret));
  inspection.verdict = verdict.reason == Rejection::none ? "authentic" : std::string(to_string(verdict.reason));
  inspection.why = std::move(verdict.why);
  return inspection;
}

}  // namespace kiln

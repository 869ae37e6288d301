#include "amdgpu_pm4/toolchain/device_library.hpp"

#include <kiln/digest.hpp>
#include <kiln/regular_file.hpp>

#include <array>
#include <span>
#include <string_view>

#include "amdgpu_pm4/toolchain/child/find_compiler.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

constexpr std::uint64_t most_file_bytes = 256 << 20;
constexpr std::array usual_folders = {"/usr/lib/x86_64-linux-gnu/amdgcn/bitcode", "/usr/lib/amdgcn/bitcode",
                                      "/opt/rocm/amdgcn/bitcode"};

// The functions, then the constants that choose among their variants: denormals stay, divisions and roots are rounded
// correctly, NaN and infinity are numbers to reckon with.
constexpr std::array common_files = {"opencl.bc",
                                     "ocml.bc",
                                     "ockl.bc",
                                     "oclc_abi_version_500.bc",
                                     "oclc_correctly_rounded_sqrt_on.bc",
                                     "oclc_daz_opt_off.bc",
                                     "oclc_finite_only_off.bc",
                                     "oclc_unsafe_math_off.bc",
                                     "oclc_wavefrontsize64_off.bc"};
constexpr const char* isa_gfx1030 = "oclc_isa_version_1030.bc";
// Of the functions that are offered, the variants for gfx11 and later are those for gfx1036.
constexpr const char* isa_later = "oclc_isa_version_1036.bc";

std::vector<std::string> all_names() {
  std::vector<std::string> names(common_files.begin(), common_files.end());
  names.insert(names.end(), {isa_gfx1030, isa_later});
  return names;
}

// Empty: a file is missing or cannot be read.
std::string digest_of(const std::filesystem::path& folder) {
  KeyEncoder contents;
  for (const std::string& name : all_names()) {
    const Result<std::string> bytes = read_whole_file(folder / name, most_file_bytes);
    if (!bytes || bytes->empty()) return {};
    contents.field(name, sha256(*bytes).hex());
  }
  return contents.digest().hex();
}

// Names the files with their sizes and times: while it is the same, so are their contents. Empty: a file is missing.
std::string stamps_of(const std::filesystem::path& folder) {
  std::string stamps = "opencl library:";
  for (const std::string& name : all_names()) {
    const FileStamp stamp = stamp_of((folder / name).string());
    if (stamp.path.empty()) return {};
    stamps += " " + stamp.text;
  }
  return stamps;
}

std::string identity_of_folder(const std::filesystem::path& folder, DriverNotes* notes) {
  const std::string stamps = stamps_of(folder);
  if (stamps.empty() || notes == nullptr) return stamps.empty() ? std::string() : digest_of(folder);
  const std::string note = "opencl library: " + sha256(stamps).hex();
  if (const auto kept = notes->find(note); kept && !kept->empty()) {
    return {reinterpret_cast<const char*>(kept->data()), kept->size()};
  }
  std::string digest = digest_of(folder);
  if (!digest.empty()) notes->keep(note, std::as_bytes(std::span(digest)));
  return digest;
}

}  // namespace

std::vector<std::string> DeviceLibrary::files(Target target) const {
  std::vector<std::string> paths;
  for (const char* const name : common_files) paths.push_back((folder / name).string());
  paths.push_back((folder / (target == Target::gfx1030 ? isa_gfx1030 : isa_later)).string());
  return paths;
}

DeviceLibrary find_device_library(const std::string& wanted, DriverNotes* notes) {
  std::vector<std::filesystem::path> folders;
  if (wanted == "auto") {
    folders.assign(usual_folders.begin(), usual_folders.end());
  } else {
    folders.emplace_back(wanted);
  }
  std::string looked;
  for (const std::filesystem::path& folder : folders) {
    std::string identity = identity_of_folder(folder, notes);
    if (!identity.empty()) return {folder, std::move(identity), {}};
    looked += (looked.empty() ? "" : ", ") + folder.string();
  }
  return {{}, {}, "it was looked for in " + looked};
}

}  // namespace kiln::amdgpu_pm4

// What a process and the children that build its programs say to each other, in frames: u32 bytes, then fields encoded
// as key material is.
//
// First frame to the child: BuildSetup. Then one BuildRequest for each program; the child answers the setup and each
// request with one frame: a Status, or what was built. The parent bounds and checks all that a child says.
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include <kiln/config.hpp>
#include <kiln/program.hpp>
#include <kiln/status.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

inline constexpr std::size_t most_frame_bytes = std::size_t{512} << 20;

struct BuildSetup {
  std::filesystem::path plugin;  // the file that brings the driver
  std::string driver, device;    // "opengl", "opengl:0"
  PluginSettings settings;
  std::filesystem::path cache_directory;
  std::filesystem::path driver_folder;  // an empty one, where the child's driver keeps its cache; empty: it has none
  std::uint64_t memory = 0;             // bytes that the child may allocate; 0: no limit
};

struct BuildRequest {
  std::string material;            // the program's key: it holds the source
  std::vector<std::string> files;  // KernelSource::files
  // A stored program, which is loaded and dispatched instead of built. The answer is an empty program.
  std::optional<ProgramBinary> stored{};
};

// With the length in front.
std::string to_frame(const BuildSetup& setup);
std::string to_frame(const BuildRequest& request);
std::string to_frame(const Result<ProgramBinary>& built);

// Of a frame without its length. internal: it is none of ours.
Result<BuildSetup> build_setup_of(std::string_view frame);
Result<BuildRequest> build_request_of(std::string_view frame);
Result<ProgramBinary> built_program_of(std::string_view frame);

}  // namespace kiln

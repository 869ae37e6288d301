// What a process and its children say to each other: the frames of a build child, the lines of a bench child.
//
// Build protocol: the frames between a process and its build child. A frame is a u32 length, then fields encoded like
// key material.
//
// The first frame to the child is BuildSetup, then one BuildRequest per program. The child answers each with one frame:
// a Status, or BuildOpened for the setup and the built program for a request. not_found: the child has not the parent's
// device or driver. unavailable: it could not build this program, as where memory is short. The parent does not trust
// the child: it validates and limits every answer. Thread-safety: pure. Ownership: values.
#pragma once

#include <kiln/bench.hpp>
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
  std::filesystem::path plugin;  // the plugin file of the driver
  std::string driver, device;    // "opengl", "opengl:0"
  PluginSettings settings;
  std::filesystem::path cache_directory;
  std::filesystem::path driver_folder;  // empty folder for the driver's cache in the child; no path: none
  std::uint64_t memory = 0;             // limit of the child's allocations in bytes; 0: no limit
  // Rules of the child's sandbox: libraries that it loads, and files that it must never read.
  std::vector<std::string> libraries, hidden;
};

struct BuildOpened {
  std::vector<std::string> gaps;  // of enter_sandbox()
};

struct BuildRequest {
  std::string material;            // key material of the program; includes the source
  std::vector<std::string> files;  // KernelSource::files
  // Set: the child loads and dispatches this stored program instead of building. The answer is an empty program.
  std::optional<ProgramBinary> stored{};
};

// Include the length.
std::string to_frame(const BuildSetup& setup);
std::string to_frame(const Result<BuildOpened>& opened);
std::string to_frame(const BuildRequest& request);
std::string to_frame(const Result<ProgramBinary>& built);

// Take a frame without its length. internal: not a valid frame.
Result<BuildSetup> build_setup_of(std::string_view frame);
Result<BuildOpened> build_opened_of(std::string_view frame);
Result<BuildRequest> build_request_of(std::string_view frame);
Result<ProgramBinary> built_program_of(std::string_view frame);

// Bench protocol: the lines between `kiln tune` and its measuring child process.
//
// The first line to the child is a BenchSetup in JSON. Each further line is "VARIANT\tRUNS"; the child answers each
// with one line of JSON. Before an answer the child may send `preparing` and later `prepared`. Between these lines it
// computes the reference, which has its own time limit.
// Thread-safety: pure. Ownership: values.

inline constexpr std::string_view bench_preparing = "preparing", bench_prepared = "prepared";

std::string to_line(const BenchSetup& setup);
Result<BenchSetup> setup_of(std::string_view line);

std::string to_line(const Result<VariantSamples>& answer);
// internal: not a valid line.
Result<VariantSamples> answer_of(std::string_view line);

}  // namespace kiln

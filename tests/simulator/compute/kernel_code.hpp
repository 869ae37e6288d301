// KernelCode: one compiled kernel as the tests run it: from the words kept in kernels/, or compiled by clang-19 as the
// test runs.
//
// Thread-safety and ownership: values.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "simulator/fault.hpp"

namespace kiln::simulator::test {

struct KernelCode {
  Generation generation = Generation::invalid;
  std::vector<std::uint32_t> text;  // loaded at a multiple of 256 bytes
  std::uint32_t entry = 0;          // byte offset in text
  std::uint32_t rsrc1 = 0, rsrc2 = 0, rsrc3 = 0;
  std::uint32_t properties = 0;  // kernel_code_properties
  std::uint32_t lds_bytes = 0;
  std::uint32_t private_bytes = 0;  // a lane

  bool wave32() const noexcept { return (properties >> 10U & 1U) != 0; }
};

// Kept words: kernels/goldens.inc. Empty: there is none of that name.
std::optional<KernelCode> kept_kernel(const std::string& target, const std::string& name);

// Whether clang-19 can be run.
bool compiler_present();
// REQUIRES: compiler_present(). `file`: basic or numbers. Fails the test where it does not compile.
KernelCode compiled_kernel(const std::string& target, const std::string& file, const std::string& name,
                           const std::string& options = "");
// The same of any source file; none where it does not compile, or where the compiler itself ends by a signal.
std::optional<KernelCode> compiled_file(const std::string& target, const std::filesystem::path& source,
                                        const std::string& name, const std::string& options);

}  // namespace kiln::simulator::test

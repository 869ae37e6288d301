// The plugin and its first device, with the validation layer where it is installed: a message of the layer ends the
// process.
//
// Thread-safety: from a test's own thread. Ownership: everything lives until the process ends.
#pragma once

#include <kiln/device.hpp>

#include <initializer_list>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "support/plugin_under_test.hpp"

namespace kiln::support {

class Vulkan {
 public:
  static Vulkan& instance();

  PluginUnderTest& plugin() noexcept { return *plugin_; }
  std::shared_ptr<Device> device() noexcept { return device_; }  // null: there is none; absent() says why
  const std::string& absent() const noexcept { return absent_; }
  bool validates() const noexcept { return validates_; }
  // Whether there is a device; warns with the reason where not.
  bool usable() const;

 private:
  Vulkan();

  std::unique_ptr<PluginUnderTest> plugin_;
  std::shared_ptr<Device> device_;
  std::string absent_;
  bool validates_ = false;
};

// The plugin on the loader of faulty_loader.cpp, with the layer where Vulkan has it. The variables are set while it
// lives. REQUIRES: Vulkan::instance().usable(), whose driver stays loaded.
class FaultyVulkan {
 public:
  using Variables = std::initializer_list<std::pair<const std::string, std::string>>;

  explicit FaultyVulkan(Variables variables, PluginSettings settings = {});
  FaultyVulkan(const FaultyVulkan&) = delete;
  FaultyVulkan& operator=(const FaultyVulkan&) = delete;
  ~FaultyVulkan();

  PluginUnderTest& plugin() noexcept { return *plugin_; }

 private:
  const std::map<std::string, std::string> variables_;
  std::unique_ptr<PluginUnderTest> plugin_;
};

// Builds the kernel's text on the device and runs it once on the tensors, which hold its results afterwards. Checks that
// the program that is loaded from its entry declares and does the same. Tensors: as tensors_of() lists them.
Status run_kernel(const UserKernelSpec& kernel, std::vector<std::vector<std::byte>>& tensors,
                  Device& device = *Vulkan::instance().device());

// What the plugin's GLSL compiler makes of a text, before bindings are numbered.
std::string module_of(const KernelSource& source);

// Of a workgroup of the kernels here.
inline constexpr std::uint32_t lanes = 64;

// 0, 1, 2, … for each lane.
inline std::vector<float> ramp() {
  std::vector<float> values(lanes);
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

template <class T>
std::vector<std::byte> bytes_of_values(const std::vector<T>& values) {
  const auto* begin = reinterpret_cast<const std::byte*>(values.data());
  return {begin, begin + values.size() * sizeof(T)};
}

template <class T>
std::vector<T> values_of_bytes(const std::vector<std::byte>& bytes) {
  const auto* begin = reinterpret_cast<const T*>(bytes.data());
  return {begin, begin + bytes.size() / sizeof(T)};
}

}  // namespace kiln::support

// What the plugin says in the log, and where the driver's own cache lies.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "vulkan/pretended_card.hpp"

namespace kiln::vulkan {
namespace {

using support::Vulkan;

class LinesOfLog final : public LogSink {
 public:
  void write(LogLevel level, std::string_view component, std::string_view message) noexcept override {
    const std::lock_guard lock(mutex_);
    lines_.push_back(std::string(kiln::to_string(level)) + " " + std::string(component) + ": " + std::string(message));
  }
  std::vector<std::string> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(lines_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

// The variable has this value, none where it is empty, until this ends.
class CacheFolder {
 public:
  explicit CacheFolder(const std::string& value) {
    if (const char* const old = std::getenv(name)) old_ = old;
    value.empty() ? unsetenv(name) : setenv(name, value.c_str(), 1);
  }
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;
  ~CacheFolder() { old_ ? setenv(name, old_->c_str(), 1) : unsetenv(name); }

 private:
  static constexpr const char* name = "MESA_SHADER_CACHE_DIR";
  std::optional<std::string> old_;
};

}  // namespace

TEST_CASE("vulkan messages: a software driver's cache is adopted only in Kiln's folder", "[vulkan][log]") {
  if (!on_software()) return;
  const auto open_with = [](const std::string& folder, std::vector<std::string>& lines) {
    const CacheFolder variable(folder);
    LinesOfLog log;
    const Pretence pretence;
    pretence->properties = [](VkPhysicalDeviceProperties& properties) {
      std::strcpy(properties.deviceName, "llvmpipe (LLVM 1, 256 bits)");
    };
    // The driver itself keeps nothing, wherever that would be.
    support::FaultyVulkan vulkan({{"MESA_SHADER_CACHE_DISABLE", "true"}}, {{"validation", false}});
    vulkan.plugin().listen({&log, LogLevel::info});
    const std::string word = vulkan.plugin().open("vulkan:0")->info().driver_cache;
    lines = log.take();
    return word;
  };
  const std::string start = "info vulkan: vulkan:0: driver cache not adopted: MESA_SHADER_CACHE_DIR";
  std::vector<std::string> lines;
  CHECK(open_with("", lines) == "not adopted");
  CHECK(lines == std::vector<std::string>{start + " is not set"});
  CHECK(open_with("/nowhere/at/all", lines) == "not adopted");
  CHECK(lines == std::vector<std::string>{start + " /nowhere/at/all is not a folder from kiln::driver_environment()"});
}

TEST_CASE("vulkan messages: a card's driver has no cache to adopt", "[vulkan][log]") {
  if (!on_software()) return;
  const Pretence pretence;
  become_card(pretence);
  LinesOfLog log;
  support::FaultyVulkan vulkan({}, {{"validation", false}});
  vulkan.plugin().listen({&log, LogLevel::info});
  CHECK(vulkan.plugin().open("vulkan:0")->info().driver_cache == "none");
  CHECK(log.take().empty());
}

TEST_CASE("vulkan messages: what the validation layer finds is an error in the log, in one line", "[vulkan][log]") {
  if (!on_software() || !Vulkan::instance().validates()) return;
  const Pretence pretence;
  pretence->misused = true;
  LinesOfLog log;
  support::FaultyVulkan vulkan({});
  vulkan.plugin().listen({&log, LogLevel::warning});
  const auto device = vulkan.plugin().open("vulkan:0");
  CHECK(log.take().empty());
  const auto buffer = buffer_on(*device, 4, BufferUsage::storage);
  const std::vector<std::string> lines = log.take();
  REQUIRE_FALSE(lines.empty());
  CHECK_THAT(lines[0], Catch::StartsWith("error vulkan: validation: ") && Catch::Contains("VkBufferCreateInfo"));
  CHECK(lines[0].find('\n') == std::string::npos);
}

TEST_CASE("vulkan messages: without the validation layer the setting is refused", "[vulkan][log]") {
  if (!on_software()) return;
  const Pretence pretence;
  pretence->no_layers = true;
  support::FaultyVulkan vulkan({}, {{"validation", true}});
  CHECK(vulkan.plugin().driver().enumerate().at(0).why_not ==
        "[plugin.vulkan] validation = true: VK_LAYER_KHRONOS_validation is not installed. Install "
        "vulkan-validationlayers, or remove the key");
}

TEST_CASE("vulkan messages: a library that is no loader is named", "[vulkan][log]") {
  support::PluginUnderTest plugin("vulkan", {{"vulkan_library", std::string("libm.so.6")}});
  CHECK(plugin.driver().enumerate().at(0).why_not == "libm.so.6: has no vkGetInstanceProcAddr");
}

}  // namespace kiln::vulkan

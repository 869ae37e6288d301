// The section [plugin.opengl]: its keys, what they become, and what the environment overrules.
#include "settings.hpp"

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

namespace kiln::opengl {
namespace {

// The variable has this value while the object lives; nullptr: it is not set.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    set(value);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { set(before_ ? before_->c_str() : nullptr); }

 private:
  void set(const char* value) const {
    if (value == nullptr) {
      unsetenv(name_);
    } else {
      setenv(name_, value, 1);
    }
  }
  const char* name_;
  std::optional<std::string> before_;
};

class Warnings final : public LogSink {
 public:
  void write(LogLevel level, std::string_view component, std::string_view message) noexcept override {
    lines.push_back(std::string(to_string(level)) + " " + std::string(component) + ": " + std::string(message));
  }
  std::vector<std::string> lines;
};

std::vector<std::string> warnings_of(const PluginSettings& section) {
  Warnings warnings;
  const auto settings = read_settings(section, {&warnings, LogLevel::warning});
  REQUIRE(settings.has_value());
  return warnings.lines;
}

std::string refusal_of_settings(const PluginSettings& section) {
  const auto settings = read_settings(section, {});
  REQUIRE_FALSE(settings.has_value());
  CHECK(settings.error().code == StatusCode::invalid_argument);
  return settings.error().message;
}

}  // namespace

TEST_CASE("opengl: settings: each key has its type, default and limits", "[opengl][settings]") {
  struct Key {
    const char* name;
    ConfigType type;
    ConfigValue fallback;
    std::optional<double> least, most;
    std::vector<std::string> allowed;
  };
  const Key expected[] = {
      {"vector_width", ConfigType::integer, std::int64_t{0}, 0, 512, {}},
      {"threads", ConfigType::integer, std::int64_t{-1}, -1, 256, {}},
      {"persistent_mapping", ConfigType::text, std::string("auto"), {}, {}, {"auto", "always", "staging", "never"}},
      {"barrier_fix", ConfigType::text, std::string("auto"), {}, {}, {"auto", "on", "off"}},
      {"debug", ConfigType::boolean, false, {}, {}, {}},
      {"egl_library", ConfigType::text, std::string("libEGL.so.1"), {}, {}, {}}};
  const std::vector<ConfigKey> keys = setting_keys();
  REQUIRE(keys.size() == std::size(expected));
  PluginSettings defaults;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    INFO(expected[i].name);
    CHECK(keys[i].name == expected[i].name);
    CHECK(keys[i].type == expected[i].type);
    CHECK(keys[i].fallback == expected[i].fallback);
    CHECK(keys[i].least == expected[i].least);
    CHECK(keys[i].most == expected[i].most);
    CHECK(keys[i].allowed == expected[i].allowed);
    defaults[keys[i].name] = keys[i].fallback;
  }
  for (const PluginSettings& section : {defaults, PluginSettings()}) {
    const Settings settings = read_settings(section, {}).value();
    CHECK(settings.vector_width == 0);
    CHECK(settings.threads == -1);
    CHECK(settings.persistent_mapping == Mapping::automatic);
    CHECK(settings.barrier_fix == BarrierFix::automatic);
    CHECK(settings.debug == DebugOutput::off);
    CHECK(settings.egl_library == "libEGL.so.1");
  }
}

TEST_CASE("opengl: settings: each value is read, and others are refused with what is allowed", "[opengl][settings]") {
  const auto read = [](const char* key, ConfigValue value) { return read_settings({{key, value}}, {}).value(); };
  CHECK(read("persistent_mapping", std::string("auto")).persistent_mapping == Mapping::automatic);
  CHECK(read("persistent_mapping", std::string("always")).persistent_mapping == Mapping::always);
  CHECK(read("persistent_mapping", std::string("staging")).persistent_mapping == Mapping::staging);
  CHECK(read("persistent_mapping", std::string("never")).persistent_mapping == Mapping::never);
  CHECK(read("barrier_fix", std::string("auto")).barrier_fix == BarrierFix::automatic);
  CHECK(read("barrier_fix", std::string("on")).barrier_fix == BarrierFix::on);
  CHECK(read("barrier_fix", std::string("off")).barrier_fix == BarrierFix::off);
  CHECK(read("debug", true).debug == DebugOutput::on);
  CHECK(read("egl_library", std::string("libOther.so")).egl_library == "libOther.so");
  CHECK(read("threads", std::int64_t{3}).threads == 3);
  for (const std::int64_t width : {0, 128, 256, 512}) CHECK(read("vector_width", width).vector_width == width);

  CHECK(refusal_of_settings({{"persistent_mapping", std::string("often")}}) ==
        "[plugin.opengl] persistent_mapping = 'often', expected 'auto', 'always', 'staging' or 'never'");
  CHECK(refusal_of_settings({{"barrier_fix", std::string("maybe")}}) ==
        "[plugin.opengl] barrier_fix = 'maybe', expected 'auto', 'on' or 'off'");
  for (const std::int64_t width : {-1, 1, 127, 129, 384, 513}) {
    CHECK(refusal_of_settings({{"vector_width", width}}) ==
          "[plugin.opengl] vector_width = " + std::to_string(width) + ", expected 0, 128, 256 or 512");
  }
}

TEST_CASE("opengl: settings: what the environment does not say has no effect, and the log says so",
          "[opengl][settings]") {
  const PluginSettings width{{"vector_width", std::int64_t{256}}}, threads{{"threads", std::int64_t{0}}};
  {
    const Variable first("LP_NATIVE_VECTOR_WIDTH", "256"), second("LP_NUM_THREADS", "0");
    CHECK(warnings_of(width).empty());
    CHECK(warnings_of(threads).empty());
  }
  {
    const Variable first("LP_NATIVE_VECTOR_WIDTH", "128"), second("LP_NUM_THREADS", "00");
    CHECK(warnings_of(width) ==
          std::vector<std::string>{"warning opengl: [plugin.opengl] vector_width = 256 has no effect: "
                                   "LP_NATIVE_VECTOR_WIDTH is '128' in this process's environment"});
    CHECK(warnings_of(threads) == std::vector<std::string>{"warning opengl: [plugin.opengl] threads = 0 has no effect: "
                                                           "LP_NUM_THREADS is '00' in this process's environment"});
    // The driver's own number needs no variable.
    CHECK(warnings_of({{"vector_width", std::int64_t{0}}, {"threads", std::int64_t{-1}}}).empty());
  }
  const Variable first("LP_NATIVE_VECTOR_WIDTH", nullptr);
  CHECK(warnings_of(width) ==
        std::vector<std::string>{"warning opengl: [plugin.opengl] vector_width = 256 has no effect: "
                                 "LP_NATIVE_VECTOR_WIDTH is not set in this process's environment"});
}

}  // namespace kiln::opengl

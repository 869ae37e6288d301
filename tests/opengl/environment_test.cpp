// What the process's environment decides: each case in a process of its own, started here or by CTest.
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "opengl/support/kernels.hpp"
#include "runtime/driver_environment.hpp"
#include "support/own_process.hpp"

namespace kiln::support {
namespace {

namespace fs = std::filesystem;

class CacheFolder {
 public:
  CacheFolder() {
    std::string name = (fs::temp_directory_path() / "kiln-test-cache-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;
  ~CacheFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::size_t files_below(const fs::path& folder) {
  std::size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) files += entry.is_regular_file() ? 1 : 0;
  return files;
}

// The driver writes them on a thread of its own: the number counts once it has not changed for a while.
std::size_t settled_files_below(const fs::path& folder) {
  std::size_t files = files_below(folder);
  for (int unchanged = 0; unchanged < 30;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const std::size_t now = files_below(folder);
    unchanged = now == files ? unchanged + 1 : 0;
    files = now;
  }
  return files;
}

}  // namespace

TEST_CASE("opengl: the driver's cache is adopted where the environment puts it into Kiln's folder",
          "[opengl][environment]") {
  OpenGl gl;
  if (!gl.usable()) return;
  if (gl.device().info().driver_cache == "none") {
    WARN("skipped: this driver keeps no cache of its own");
    return;
  }
  const CacheFolder cache;
  Config config;
  config.cache.directory = cache.path();
  DriverSurroundings surroundings = surroundings_of_process();
  surroundings.variables.erase("MESA_SHADER_CACHE_DIR");
  surroundings.variables.erase("MESA_SHADER_CACHE_MAX_SIZE");
  surroundings.memory_folder.clear();
  std::map<std::string, std::string> variables{{"KILN_TEST_CACHE", cache.path().string()},
                                               {"KILN_TEST_EXPECTED", "adopted"}};
  for (const auto& [name, value] : driver_environment(config, surroundings).set) variables[name] = value;
  const fs::path folder = variables.at("MESA_SHADER_CACHE_DIR");
  fs::create_directories(folder);
  fs::permissions(folder, fs::perms::owner_all);

  const ChildResult adopted = run_child("[.driver_cache]", variables);
  INFO(adopted.output);
  CHECK(adopted.status == 0);
  CHECK(files_below(folder) > 0);  // the driver really keeps its code there

  variables["KILN_TEST_EXPECTED"] = "not adopted";
  fs::permissions(folder, fs::perms::owner_all | fs::perms::group_read);
  const ChildResult readable = run_child("[.driver_cache]", variables);
  INFO(readable.output);
  CHECK(readable.status == 0);

  variables["MESA_SHADER_CACHE_DIR"] = "";
  const ChildResult unset = run_child("[.driver_cache]", variables);
  INFO(unset.output);
  CHECK(unset.status == 0);
}

TEST_CASE("opengl: child: where the driver's cache lies", "[.driver_cache]") {
  PluginUnderTest plugin("opengl");
  WorkCounters counters;
  auto driver =
      plugin.registry().drivers().at("opengl").make({{}, &counters, std::getenv("KILN_TEST_CACHE"), nullptr, {}});
  REQUIRE(driver.has_value());
  auto device = (*driver)->open("opengl:0");
  REQUIRE(device.has_value());
  CHECK((*device)->info().driver_cache == std::getenv("KILN_TEST_EXPECTED"));
  const auto program = build(**device, saxpy());
  const auto x = buffer_of(**device, std::vector<float>(64, 1.0f));
  const auto y = buffer_of(**device, std::vector<float>(64, 1.0f));
  CHECK(run(**device, *program, {x.get(), y.get()}, {1, 1, 1}).has_value());
  if ((*device)->info().driver_cache != "adopted") return;
  const fs::path folder = std::getenv("MESA_SHADER_CACHE_DIR");
  // Something has been dispatched, so this one is built in a context apart, where its code is generated too: that and
  // what linking keeps are two files.
  const std::size_t before = settled_files_below(folder);
  const auto apart = build(**device, square_into_scratch());
  CHECK(settled_files_below(folder) == before + 2);
  // So the context that dispatches has nothing left to generate.
  const auto in = buffer_of(**device, std::vector<float>(64, 3.0f));
  const auto out = buffer_of(**device, std::vector<float>(64, 0.0f));
  CHECK(run(**device, *apart, {in.get(), out.get()}, {1, 1, 1}).has_value());
  CHECK(contents(*out) == std::vector<float>(64, 9.0f));
  CHECK(settled_files_below(folder) == before + 2);
}

TEST_CASE("opengl: no warning for a setting that equals the environment", "[opengl][environment]") {
  const ChildResult child =
      run_child("[.agreeing_environment]", {{"LP_NATIVE_VECTOR_WIDTH", "256"}, {"LP_NUM_THREADS", "3"}});
  INFO(child.output);
  CHECK(child.status == 0);
}

TEST_CASE("opengl: child: settings and the environment", "[.agreeing_environment]") {
  struct Warnings : LogSink {
    void write(LogLevel, std::string_view component, std::string_view message) noexcept override {
      text += std::string(component) + ": " + std::string(message) + "\n";
    }
    std::string text;
  };
  PluginUnderTest plugin("opengl");
  WorkCounters counters;
  const auto& make = plugin.registry().drivers().at("opengl").make;
  const auto warned = [&](PluginSettings settings) {
    Warnings warnings;
    const auto driver = make({{&warnings, LogLevel::warning}, &counters, {}, nullptr, std::move(settings)});
    REQUIRE(driver.has_value());
    return warnings.text;
  };
  CHECK(warned({{"vector_width", std::int64_t{256}}, {"threads", std::int64_t{3}}}) == "");
  CHECK(warned({{"vector_width", std::int64_t{0}}, {"threads", std::int64_t{-1}}}) == "");  // left to the driver
  CHECK(warned({{"vector_width", std::int64_t{512}}}) ==
        "opengl: [plugin.opengl] vector_width = 512 has no effect: LP_NATIVE_VECTOR_WIDTH is '256' in this process's "
        "environment\n");
  CHECK(warned({{"threads", std::int64_t{0}}}) ==
        "opengl: [plugin.opengl] threads = 0 has no effect: LP_NUM_THREADS is '3' in this process's environment\n");
}

TEST_CASE("opengl: a driver without binary formats keeps nothing and says so", "[.no_binaries]") {
  OpenGl gl;
  if (!gl.usable()) return;
  Device& device = gl.device();
  CHECK_FALSE(device.info().serializes);
  CHECK(device.info().driver_cache == "none");
  const auto program = build(device, saxpy());
  CHECK(gl.plugin().counters().builds == 0);
  CHECK(gl.plugin().counters().prepared == 1);
  CHECK(device.serialize(*program).error().code == StatusCode::unsupported);
  const auto loaded = device.load(saxpy(), {"gl2:875f", std::vector<std::byte>(64)});
  CHECK(loaded.error().code == StatusCode::unsupported);
  CHECK(gl.plugin().counters().loads == 0);
  const auto x = buffer_of(device, std::vector<float>(64, 1.0f));
  const auto y = buffer_of(device, std::vector<float>(64, 1.0f));
  REQUIRE(run(device, *program, {x.get(), y.get()}, {1, 1, 1}).has_value());
  CHECK(contents(*y) == std::vector<float>(64, 3.5f));
}

TEST_CASE("opengl: a driver below OpenGL 4.3 is unusable and says so", "[.old_driver]") {
  PluginUnderTest plugin("opengl");
  const auto device = plugin.driver().open("opengl:0");
  REQUIRE_FALSE(device.has_value());
  CHECK_THAT(device.error().message, Catch::Contains("4.3"));
  CHECK(device.error().code == StatusCode::unavailable);
}

TEST_CASE("opengl: a driver of another make has an identity of its own and gives no binaries", "[.foreign_driver]") {
  OpenGl gl;
  if (!gl.usable()) return;
  const DeviceInfo& info = gl.device().info();
  CHECK_THAT(info.name, Catch::Contains("softpipe"));
  CHECK(info.kind == DeviceKind::software);
  CHECK_FALSE(info.serializes);
  const auto program = build(gl.device(), saxpy());
  CHECK(gl.device().serialize(*program).error().code == StatusCode::unsupported);
  const auto x = buffer_of(gl.device(), std::vector<float>(64, 1.0f));
  const auto y = buffer_of(gl.device(), std::vector<float>(64, 1.0f));
  REQUIRE(run(gl.device(), *program, {x.get(), y.get()}, {1, 1, 1}).has_value());
  CHECK(contents(*y) == std::vector<float>(64, 3.5f));
}

TEST_CASE("opengl: the vector width is part of the driver's identity", "[.narrow]") {
  OpenGl gl;
  if (!gl.usable()) return;
  const auto& identity = gl.device().info().driver_identity;
  CHECK(std::find(identity.begin(), identity.end(),
                  std::pair<std::string, std::string>("LP_NATIVE_VECTOR_WIDTH", "128")) != identity.end());
  CHECK(gl.device().info().driver_cache == "not adopted");
}

}  // namespace kiln::support

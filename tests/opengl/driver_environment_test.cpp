#include "runtime/driver_environment.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <kiln/driver_cache.hpp>
#include <optional>

namespace kiln {
namespace {

namespace fs = std::filesystem;

// A place for drivers, and a configuration whose cache lies beside it; nothing of the machine's own.
struct Scene {
  Scene() {
    std::string name = (fs::temp_directory_path() / "kiln-test-drivers-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    root = name;
    fs::create_directories(root / "lib" / "dri");
    surroundings.library_folders = {root / "lib"};
    config.cache.directory = root / "cache";
    install("opengl.so");
  }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;
  ~Scene() {
    std::error_code ignored;
    fs::remove_all(root, ignored);
  }

  // Any shared library with a build-id of its own serves as a driver.
  void install(const std::string& plugin) const {
    const fs::path driver = root / "lib" / "dri" / "swrast_dri.so";
    fs::remove(driver);
    fs::create_symlink(plugin == "opengl.so" ? fs::path(KILN_PLUGIN_DIR) / plugin : fs::path(KILN_WRAPPING_EGL),
                       driver);
  }

  std::optional<std::string> value(const std::string& name) const {
    for (const auto& [key, value] : driver_environment(config, surroundings).set) {
      if (key == name) return value;
    }
    return std::nullopt;
  }
  // Without what differs from call to call.
  std::string folder() const {
    const fs::path folder = value("MESA_SHADER_CACHE_DIR").value_or("(none)");
    const std::string setting = driver_setting_of(folder);
    return setting.empty() ? folder.string() : (folder.parent_path() / setting).string();
  }

  fs::path root;
  Config config;
  DriverSurroundings surroundings;
};

}  // namespace

TEST_CASE("driver environment: the folder is named by driver and settings, and nothing is made", "[environment]") {
  Scene scene;
  const std::string plain = scene.folder();
  CHECK(plain.starts_with((scene.root / "cache" / "driver").string() + "/"));
  CHECK(fs::path(plain).filename().string().size() == 64);
  CHECK(scene.folder() == plain);
  CHECK_FALSE(fs::exists(scene.root / "cache"));

  scene.install("another");
  const std::string other_driver = scene.folder();
  CHECK(other_driver != plain);
  scene.install("opengl.so");
  CHECK(scene.folder() == plain);

  scene.surroundings.variables["LP_NATIVE_VECTOR_WIDTH"] = "128";
  const std::string narrow = scene.folder();
  CHECK(narrow != plain);
  scene.surroundings.variables.clear();
  scene.surroundings.variables["GALLIVM_DEBUG"] = "nopt";
  CHECK(scene.folder() != plain);
  scene.surroundings.variables.clear();
  scene.surroundings.variables["LP_NUM_THREADS"] = "1";  // changes no code
  scene.surroundings.variables["HOME"] = "/elsewhere";
  CHECK(scene.folder() == plain);

  scene.surroundings.variables.clear();
  scene.config.plugin["opengl"]["vector_width"].value = std::int64_t{128};
  CHECK(scene.folder() == narrow);  // by the configuration or by the user: the same code
}

TEST_CASE("driver environment: LIBGL_DRIVERS_PATH says where the driver is", "[environment]") {
  Scene scene;
  const std::string plain = scene.folder();
  fs::create_directories(scene.root / "own");
  fs::create_symlink(KILN_WRAPPING_EGL, scene.root / "own" / "swrast_dri.so");
  scene.surroundings.variables["LIBGL_DRIVERS_PATH"] = ":" + (scene.root / "own").string() + ":/nowhere";
  CHECK(scene.folder() != plain);
}

TEST_CASE("driver environment: with the plugin vulkan the folder is also named by Mesa's Vulkan drivers",
          "[environment]") {
  Scene scene;
  const std::string plain = scene.folder();
  fs::create_symlink(KILN_WRAPPING_EGL, scene.root / "lib" / "libvulkan_lvp.so");
  CHECK(scene.folder() == plain);
  scene.config.plugins.load.emplace_back("vulkan");
  CHECK(scene.folder() != plain);
  fs::remove(scene.root / "lib" / "libvulkan_lvp.so");
  CHECK(scene.folder() == plain);
}

TEST_CASE("driver environment: settings become variables, and the user's own win, but for the folder",
          "[environment]") {
  Scene scene;
  CHECK_FALSE(scene.value("LP_NATIVE_VECTOR_WIDTH").has_value());
  CHECK_FALSE(scene.value("LP_NUM_THREADS").has_value());
  auto& section = scene.config.plugin["opengl"];
  section["vector_width"].value = std::int64_t{512};
  section["threads"].value = std::int64_t{0};
  scene.config.cache.max_disk = std::uint64_t{3} << 20;
  CHECK(scene.value("LP_NATIVE_VECTOR_WIDTH") == "512");
  CHECK(scene.value("LP_NUM_THREADS") == "0");
  CHECK(scene.value("MESA_SHADER_CACHE_MAX_SIZE") == "1536K");  // half of the bound: the other half is the programs'

  scene.surroundings.variables = {{"LP_NUM_THREADS", "2"}, {"MESA_SHADER_CACHE_DIR", "/mine"}};
  const DriverEnvironment environment = driver_environment(scene.config, scene.surroundings);
  CHECK(environment.kept == std::vector<std::string>{"LP_NUM_THREADS"});
  CHECK_FALSE(scene.value("LP_NUM_THREADS").has_value());
  CHECK(scene.folder().starts_with(scene.config.cache.directory.string()));  // nothing authenticates "/mine"
  scene.surroundings.variables["MESA_SHADER_CACHE_DIR"] = scene.value("MESA_SHADER_CACHE_DIR").value();  // Kiln's own
  CHECK(scene.folder() == "(none)");
  CHECK(scene.value("LP_NATIVE_VECTOR_WIDTH") == "512");

  section["vector_width"].value = std::string("wide");  // a wrong type is the reader's to report
  section["threads"].value = std::int64_t{-1};
  scene.surroundings.variables.clear();
  CHECK_FALSE(scene.value("LP_NATIVE_VECTOR_WIDTH").has_value());
  CHECK_FALSE(scene.value("LP_NUM_THREADS").has_value());
}

TEST_CASE("driver environment: a driver keeps no cache in a folder that is only read", "[environment]") {
  Scene scene;
  fs::create_directories(scene.folder());
  scene.config.cache.read_only = true;
  CHECK(scene.folder() == no_driver_cache);
  CHECK_FALSE(scene.value("MESA_SHADER_CACHE_MAX_SIZE").has_value());
  scene.config.cache.directory.clear();
  CHECK(scene.folder() == no_driver_cache);
  scene.config.cache.read_only = false;
  CHECK(scene.folder() == no_driver_cache);  // what others may have left in its own folder is not authenticated
}

TEST_CASE("driver environment: the folder lies in memory where that is there, also for a cache that is only read",
          "[environment]") {
  Scene scene;
  scene.surroundings.memory_folder = scene.root / "memory";
  const std::string expected = (scene.root / "memory" / "driver").string() + "/";
  CHECK(scene.folder().starts_with(expected));
  CHECK(scene.value("MESA_SHADER_CACHE_DIR") != scene.value("MESA_SHADER_CACHE_DIR"));  // another one at each call
  scene.config.cache.read_only = true;
  CHECK(scene.folder().starts_with(expected));
  scene.config.cache.directory.clear();
  CHECK(scene.folder().starts_with(expected));
  CHECK_FALSE(fs::exists(scene.root / "memory"));
}

TEST_CASE("driver environment: build-id and needed libraries are read from an ELF file", "[environment]") {
  const auto facts = read_elf_facts(fs::path(KILN_PLUGIN_DIR) / "opengl.so");
  REQUIRE(facts.has_value());
  CHECK(facts->build_id.size() >= 8);
  CHECK(std::count(facts->needed.begin(), facts->needed.end(), "libkiln_core.so.0") == 1);
  CHECK(std::none_of(facts->needed.begin(), facts->needed.end(),
                     [](const std::string& name) { return name.find("EGL") != std::string::npos; }));
}

TEST_CASE("driver environment: a damaged ELF file is no driver, and no crash", "[environment]") {
  const Scene scene;
  const fs::path file = scene.root / "damaged";
  std::ifstream whole(fs::path(KILN_PLUGIN_DIR) / "opengl.so", std::ios::binary);
  std::string head(1 << 16, '\0');
  whole.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(whole.gcount()));
  const auto read = [&](const std::string& bytes) {
    std::ofstream(file, std::ios::binary | std::ios::trunc)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return read_elf_facts(file);
  };
  CHECK_FALSE(read("").has_value());
  CHECK_FALSE(read("not an ELF file at all, but longer than its header is, by some way").has_value());
  CHECK_FALSE(read(head.substr(0, 70)).has_value());  // the program headers are cut off
  CHECK_FALSE(read_elf_facts(scene.root / "absent").has_value());
  for (std::size_t at = 0; at < 1024; ++at) {  // whatever it answers: it answers
    std::string damaged = head;
    damaged[at] = static_cast<char>(~damaged[at]);
    const auto facts = read(damaged);
    if (facts) CHECK(facts->build_id.size() <= 4096);
  }
}

}  // namespace kiln

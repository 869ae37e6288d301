#include <sys/stat.h>
#include <unistd.h>

#include <kiln/host_processor.hpp>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>

#include "opengl/support/kernels.hpp"
#include "opengl/support/simulated_node.hpp"
#include "opengl/support/wrapping_egl.hpp"
#include "support/in_child.hpp"
#include "support/own_process.hpp"

namespace kiln::support {
namespace {

PluginSettings with_library(const std::string& library) { return {{"egl_library", library}}; }

std::string mapped_files() {
  std::ostringstream text;
  text << std::ifstream("/proc/self/maps").rdbuf();
  return text.str();
}

// A file that stands for a render node, gone at the end.
class NodeFile {
 public:
  explicit NodeFile(const std::string& name)
      : path_(std::filesystem::temp_directory_path() / (name + "-" + std::to_string(getpid()))) {
    std::ofstream(path_) << "";
  }
  NodeFile(const NodeFile&) = delete;
  NodeFile& operator=(const NodeFile&) = delete;
  ~NodeFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace

TEST_CASE("opengl: a process that was forked from one that used OpenGL is told, and does not wait",
          "[opengl][driver]") {
  OpenGl gl;
  if (!gl.usable()) return;
  const std::string id = gl.device().info().id;
  const test::ChildEnd end = test::in_child([&] {
    OpenGl of_child;
    const auto device = of_child.plugin().driver().open(id);
    return device ? std::string("it opened the device") : device.error().text();
  });
  INFO(end.said);
  CHECK(end.signal == 0);
  CHECK(end.said.find("unavailable: " + id) == 0);
  CHECK(end.said.find("used OpenGL before fork()") != std::string::npos);
}

TEST_CASE("opengl: an opened device has a name, limits and identity, and enumerating tells them from then on",
          "[opengl][driver]") {
  OpenGl gl;
  if (!gl.usable()) return;
  const std::vector<DeviceInfo> infos = gl.plugin().driver().enumerate();
  CHECK(infos.front().driver_identity == gl.device().info().driver_identity);
  for (std::size_t i = 0; i < infos.size(); ++i) CHECK(infos[i].id == "opengl:" + std::to_string(i));
  const DeviceInfo& info = infos.front();
  CHECK_FALSE(info.name.empty());
  CHECK_FALSE(info.driver.empty());
  CHECK((info.kind == DeviceKind::gpu || info.kind == DeviceKind::software || info.kind == DeviceKind::simulated));
  CHECK((info.shared_resource == "host-cores") == (info.kind != DeviceKind::gpu));
  CHECK(info.roof_gflops == (info.kind == DeviceKind::software ? host_roof_gflops() : 0));
  CHECK(info.max_bindings >= 8);
  CHECK(info.max_workgroup_lanes >= 128);
  CHECK(info.max_buffer_bytes >= (std::uint64_t{1} << 24));
}

TEST_CASE("opengl: each call of open() gives a device of its own", "[opengl][driver]") {
  OpenGl gl;
  if (!gl.usable()) return;
  Driver& driver = gl.plugin().driver();
  const auto first = driver.open("opengl:0");
  const auto second = driver.open("opengl:0");
  REQUIRE((first && second));
  CHECK(first->get() != second->get());
  CHECK((*first)->info().driver_identity == (*second)->info().driver_identity);
  const auto none = driver.open("opengl:77");
  REQUIRE_FALSE(none.has_value());
  CHECK(none.error().code == StatusCode::not_found);
  CHECK_THAT(none.error().message, Catch::Contains("opengl:77") && Catch::Contains("opengl:0"));
}

TEST_CASE("opengl: neither EGL nor LLVM is loaded before the first use", "[opengl][driver]") {
  const ChildResult child = run_child("[.fresh]");
  INFO(child.output);
  CHECK(child.status == 0);
}

TEST_CASE("opengl: child: a fresh process", "[.fresh]") {
  PluginUnderTest plugin("opengl");
  Driver& driver = plugin.driver();
  const std::string before = mapped_files();
  CHECK(before.find("libEGL") == std::string::npos);
  CHECK(before.find("libLLVM") == std::string::npos);
  const DeviceInfo info = driver.enumerate().front();
  CHECK((mapped_files().find("libEGL") != std::string::npos) == info.usable);
  CHECK(mapped_files().find("libLLVM") == std::string::npos);  // enumerating opens no device
}

TEST_CASE("opengl: without EGL there is one unusable entry with the linker's words", "[opengl][driver]") {
  PluginUnderTest plugin("opengl", with_library("libkiln-no-such-egl.so.1"));
  const std::vector<DeviceInfo> infos = plugin.driver().enumerate();
  REQUIRE(infos.size() == 1);
  CHECK(infos[0].id == "opengl:0");
  CHECK_FALSE(infos[0].usable);
  CHECK_THAT(infos[0].why_not, Catch::Contains("libkiln-no-such-egl.so.1"));
  const auto device = plugin.driver().open("opengl:0");
  REQUIRE_FALSE(device.has_value());
  CHECK(device.error().code == StatusCode::unavailable);
  CHECK_THAT(device.error().message, Catch::Contains("libkiln-no-such-egl.so.1"));
}

TEST_CASE("opengl: a library that is no EGL is unusable and says so", "[opengl][driver]") {
  PluginUnderTest plugin("opengl", with_library("libc.so.6"));
  const DeviceInfo info = plugin.driver().enumerate().front();
  CHECK_FALSE(info.usable);
  CHECK_THAT(info.why_not, Catch::Contains("eglGetProcAddress"));
}

TEST_CASE("opengl: an EGL that lists nothing is unusable and says so", "[opengl][driver]") {
  egl_switches().hide_platforms = true;
  PluginUnderTest plugin("opengl", with_library(KILN_WRAPPING_EGL));
  const std::vector<DeviceInfo> infos = plugin.driver().enumerate();
  egl_switches().hide_platforms = false;
  REQUIRE(infos.size() == 1);
  CHECK_FALSE(infos[0].usable);
  CHECK_THAT(infos[0].why_not, Catch::Contains("lists no device"));
}

TEST_CASE("opengl: hardware comes before simulated before software; what does not open says why", "[opengl][driver]") {
  REQUIRE(simulated_nodes_present());
  OpenGl real;
  if (!real.usable()) return;
  const DeviceInfo genuine = real.device().info();
  const NodeFile simulated(simulated_node_mark);
  const NodeFile hardware("kiln-plain-node");
  egl_switches().extra_nodes[0] = simulated.path();
  egl_switches().extra_nodes[1] = hardware.path();
  PluginUnderTest plugin("opengl", with_library(KILN_WRAPPING_EGL));
  const std::vector<DeviceInfo> infos = plugin.driver().enumerate();
  for (std::string& node : egl_switches().extra_nodes) node.clear();
  if (genuine.kind != DeviceKind::software) {
    WARN("skipped: this machine has devices of its own in the order");
    return;
  }
  REQUIRE(infos.size() == 3);
  CHECK(infos[0].kind == DeviceKind::gpu);
  CHECK_THAT(infos[0].name, Catch::Contains(hardware.path()));
  CHECK(infos[1].kind == DeviceKind::simulated);
  CHECK(infos[2].kind == DeviceKind::software);
  CHECK(plugin.open("opengl:2")->info().name == genuine.name);
  for (const char* id : {"opengl:0", "opengl:1"}) {
    const auto device = plugin.driver().open(id);
    REQUIRE_FALSE(device.has_value());
    CHECK_THAT(device.error().message, Catch::Contains("eglGetPlatformDisplay"));
  }
}

TEST_CASE("opengl: without device enumeration the surfaceless platform serves", "[opengl][driver]") {
  OpenGl real;
  if (!real.usable()) return;
  egl_switches().hide_devices = true;
  OpenGl gl(with_library(KILN_WRAPPING_EGL));
  const bool usable = gl.usable();
  egl_switches().hide_devices = false;
  REQUIRE(usable);
  CHECK(gl.device().info().name == real.device().info().name);
  CHECK(gl.device().info().kind == real.device().info().kind);
}

TEST_CASE("opengl: a device opens if EGL can create an OpenGL 4.3 context", "[opengl][driver]") {
  if (!egl_makes_a_context()) {
    WARN("skipped: EGL makes no context of OpenGL 4.3 here");
    return;
  }
  PluginUnderTest plugin("opengl");
  std::size_t opened = 0;
  std::string why_not;
  for (const DeviceInfo& info : plugin.driver().enumerate()) {
    const auto device = plugin.driver().open(info.id);
    if (device) {
      ++opened;
    } else {
      why_not += device.error().text() + "\n";
    }
  }
  INFO(why_not);
  CHECK(opened > 0);  // the cases that skip where no device opens rely on it
}

TEST_CASE("opengl: a software device with a render node shares no memory", "[opengl][driver]") {
  OpenGl real;
  if (!real.usable()) return;
  if (real.device().info().kind != DeviceKind::software) {
    WARN("skipped: the first device of this machine is no software device");
    return;
  }
  const NodeFile node("kiln-software-node");
  egl_switches().software_node = node.path();
  OpenGl gl(with_library(KILN_WRAPPING_EGL));
  const bool usable = gl.usable();
  egl_switches().software_node.clear();
  REQUIRE(usable);
  const DeviceInfo& info = gl.device().info();
  CHECK(info.kind == DeviceKind::software);
  CHECK(info.physical_id == "");
  CHECK_FALSE(info.shares_memory);
  const auto imported = gl.device().create_buffer({64, BufferUsage::upload, {}, 0});
  REQUIRE_FALSE(imported.has_value());
  CHECK(imported.error().code == StatusCode::unsupported);
  CHECK_THAT(imported.error().message, Catch::Contains("cannot be imported by file descriptor"));
}

TEST_CASE("opengl: a driver that refuses robustness still gives a context", "[opengl][driver]") {
  OpenGl real;
  if (!real.usable()) return;
  egl_switches().refuse_robustness = true;
  const int before = egl_switches().robust_contexts_refused;
  OpenGl gl(with_library(KILN_WRAPPING_EGL));
  CHECK(gl.usable());
  egl_switches().refuse_robustness = false;
  CHECK(egl_switches().robust_contexts_refused == before + 2);  // robust access and loss on reset, then loss on reset
}

TEST_CASE("opengl: the log says what the driver says, and what a setting cannot do", "[opengl][driver]") {
  struct Lines : LogSink {
    void write(LogLevel, std::string_view component, std::string_view message) noexcept override {
      const std::lock_guard lock(mutex);
      text += std::string(component) + ": " + std::string(message) + "\n";
    }
    std::mutex mutex;
    std::string text;
  } lines;
  OpenGl gl;
  if (!gl.usable()) return;
  WorkCounters counters;
  const auto& make = gl.plugin().registry().drivers().at("opengl").make;
  auto driver =
      make({{&lines, LogLevel::debug}, &counters, {}, nullptr, {{"debug", true}, {"vector_width", std::int64_t{256}}}});
  REQUIRE(driver.has_value());
  CHECK_THAT(lines.text,
             Catch::Contains("vector_width = 256 has no effect") && Catch::Contains("LP_NATIVE_VECTOR_WIDTH"));
  auto device = (*driver)->open("opengl:0");
  REQUIRE(device.has_value());
  if ((*device)->info().driver_cache == "not adopted")
    CHECK_THAT(lines.text, Catch::Contains("driver cache not adopted"));
  KernelSource broken = saxpy();
  broken.text = "void main() { undeclared_for_the_log = 1; }\n";
  CHECK_FALSE((*device)->build(broken).has_value());
  {  // Behind a dispatch another context builds.
    const auto program = build(**device, saxpy());
    const auto x = buffer_of(**device, std::vector<float>(64, 1.0f)), y = buffer_of(**device, std::vector<float>(64));
    REQUIRE(run(**device, *program, {x.get(), y.get()}, {1, 1, 1}).has_value());
    broken.text = "void main() { undeclared_behind_a_dispatch = 1; }\n";
    CHECK_FALSE((*device)->build(broken).has_value());
  }
  device->reset();  // the contexts' threads are done: nobody writes
  if (!gl.device().info().driver.starts_with("Mesa")) return;
  CHECK_THAT(lines.text, Catch::Contains("undeclared_for_the_log"));
  CHECK_THAT(lines.text, Catch::Contains("undeclared_behind_a_dispatch"));
}

TEST_CASE("opengl: a message of the driver has the level of its severity", "[opengl][driver]") {
  struct Levels : LogSink {
    void write(LogLevel level, std::string_view component, std::string_view message) noexcept override {
      if (message.starts_with("told"))
        last = std::string(to_string(level)) + " " + std::string(component) + " " + std::string(message);
    }
    std::string last;
  } levels;
  PluginSettings settings = with_wrapping_egl();
  settings["debug"] = true;
  OpenGl gl(settings);
  gl.plugin().listen({&levels, LogLevel::debug});
  egl_switches().debug_callback = nullptr;
  if (!gl.usable()) return;
  gl.device();
  REQUIRE(egl_switches().debug_callback != nullptr);
  const struct {
    unsigned severity;  // by OpenGL's numbers
    int length;
    const char* line;
  } messages[] = {{0x9146, -1, "error opengl told whole"},
                  {0x9147, 10, "warning opengl told whole"},
                  {0x9148, 6, "info opengl told w"},
                  {0x826B, 4, "debug opengl told"}};
  for (const auto& each : messages) {
    egl_switches().debug_callback(0, 0, 0, each.severity, each.length, "told whole", egl_switches().debug_user);
    CHECK(levels.last == each.line);
  }
}

TEST_CASE("opengl: settings that cannot be are refused by name", "[opengl][driver]") {
  PluginUnderTest plugin("opengl");
  WorkCounters counters;
  const auto& make = plugin.registry().drivers().at("opengl").make;
  const auto width = make({{}, &counters, {}, nullptr, {{"vector_width", std::int64_t{96}}}});
  REQUIRE_FALSE(width.has_value());
  CHECK(width.error().code == StatusCode::invalid_argument);
  CHECK_THAT(width.error().message, Catch::Contains("vector_width") && Catch::Contains("96"));
  const auto mapping = make({{}, &counters, {}, nullptr, {{"persistent_mapping", std::string("often")}}});
  REQUIRE_FALSE(mapping.has_value());
  CHECK_THAT(mapping.error().message, Catch::Contains("persistent_mapping") && Catch::Contains("often"));
}

}  // namespace kiln::support

// kiln::gl: an application's own context, adopted.
#include <kiln/adopted_gl.hpp>
#include <kiln/open_program_cache.hpp>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <thread>

#include "core/cache/workplace.hpp"
#include "opengl/adopt/own_context.hpp"
#include "support/plugin_under_test.hpp"

namespace kiln::test {
namespace {

constexpr const char* doubling =
    "#version 430 core\n"
    "layout(local_size_x = 8) in;\n"
    "layout(std430, binding = 0) buffer Data { uint data[]; };\n"
    "void main() { data[gl_GlobalInvocationID.x] *= 2u; }\n";

constexpr const char* material =
    "#version 430 core\n"
    "layout(local_size_x = 1) in;\n"
    "layout(std430, binding = 3) buffer Out { float v[]; };\n"
    "uniform float shade = 7.0;\n"
    "uniform float weights[2] = float[2](1.0, 2.0);\n"
    "uniform struct { float a; } inside;\n"
    "void main() { v[0] = shade + weights[0] + weights[1] + inside.a; }\n";

bool has_initial_state(const AdoptedProgram& program) {
  return uniform(program.name(), "shade") == 7 && uniform(program.name(), "weights[0]") == 1 &&
         uniform(program.name(), "weights[1]") == 2 && uniform(program.name(), "inside.a") == 0 &&
         block_binding(program.name(), "Out") == 3;
}

void change_state(const AdoptedProgram& program) {
  for (const char* name : {"shade", "weights[0]", "weights[1]", "inside.a"}) set_uniform(program.name(), name, 1.5f);
  set_block_binding(program.name(), "Out", 1);
}

bool is_usable(const OwnContext& context) {
  if (!context.usable()) WARN("skipped: no OpenGL context can be made here");
  return context.usable();
}

// One adopted context with a cache; the parts go in the order that their contracts ask for.
struct Application {
  Workplace workplace;
  OwnContext context;
  std::unique_ptr<AdoptedGl> gl;
  std::unique_ptr<ProgramCache> cache;

  Application() {
    if (!is_usable(context)) return;
    auto adopted = AdoptedGl::adopt(find_gl, {&workplace.log, LogLevel::warning}, workplace.config);
    INFO((adopted ? std::string() : adopted.error().text()));
    REQUIRE(adopted.has_value());
    gl = std::move(adopted).value();
    open_cache();
  }
  void open_cache() {
    cache.reset();
    auto opened = open_program_cache(workplace.config, {&workplace.log, LogLevel::warning});
    REQUIRE(opened.has_value());
    cache = std::move(opened).value();
  }
  AdoptedProgram program(std::string_view text = doubling) {
    auto made = gl->program(*cache, text);
    INFO((made ? std::string() : made.error().text()));
    REQUIRE(made.has_value());
    return std::move(made).value();
  }
};

Status failure(const Result<AdoptedProgram>& result) { return result ? Status() : result.error(); }

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("adopted: built once, then from memory, then from disk", "[adopted]") {
  Application application;
  if (!application.gl) return;
  const AdoptedProgram built = application.program();
  CHECK(built.tier() == Tier::built);
  CHECK(built.build_ns() > 0);
  CHECK(is_linked(built.name()));
  const AdoptedProgram held = application.program();
  CHECK(held.tier() == Tier::memory);
  CHECK(held.name() != built.name());
  CHECK(is_linked(held.name()));
  application.open_cache();
  const AdoptedProgram stored = application.program();
  CHECK(stored.tier() == Tier::disk);
  CHECK(stored.name() != built.name());  // which is still held
  CHECK(is_linked(stored.name()));
  CHECK_FALSE(has_error());
}

TEST_CASE("adopted: a program's interface is reported, also of one from disk", "[adopted]") {
  constexpr const char* text =
      "#version 430 core\n"
      "layout(local_size_x = 1) in;\n"
      "layout(std430, binding = 2) readonly buffer In { vec3 src[]; };\n"
      "layout(std430, binding = 5) writeonly buffer Out { float dst[]; };\n"
      "layout(rgba8, binding = 1) readonly uniform image2D photo;\n"
      "layout(binding = 0) uniform atomic_uint next;\n"
      "uniform Params { float scale; };\n"
      "uniform mat2 turn; uniform float gain = 2.0;\n"
      "void main() { atomicCounterIncrement(next);\n"
      "  dst[0] = gain * scale * (turn * src[0].xy).x + imageLoad(photo, ivec2(0)).x; }\n";
  Application application;
  if (!application.gl) return;
  for (const Tier tier : {Tier::built, Tier::disk}) {
    const AdoptedProgram program = application.program(text);
    CHECK(program.tier() == tier);
    const ProgramInterface declared = AdoptedGl::interface(program, text);
    const auto find = [&](const std::string& name) {
      const auto found = std::ranges::find(declared.resources, name, &ProgramResource::name);
      INFO(name);
      REQUIRE(found != declared.resources.end());
      return *found;
    };
    CHECK(declared.resources.size() == 8);
    CHECK(find("In").kind == ResourceKind::storage_block);
    CHECK(find("In").number == 2u);
    CHECK(find("In").access == Access::read);
    CHECK(find("In").array_stride == 16);
    CHECK(find("In").element_bytes == 12);
    CHECK(find("Out").access == Access::write);
    CHECK(find("Out").open_ended);
    CHECK(find("photo").kind == ResourceKind::image);
    CHECK(find("photo").type == "image2D");
    CHECK(find("photo").number == 1u);
    CHECK(find("next").kind == ResourceKind::atomic_counter);
    CHECK(find("Params").kind == ResourceKind::uniform_block);
    CHECK(find("Params.scale").block == "Params");
    CHECK(find("turn").matrix);
    CHECK_FALSE(find("turn").has_default);
    CHECK(find("gain").has_default);
    application.open_cache();
  }
  CHECK_FALSE(has_error());
}

TEST_CASE("adopted: callers of one text share no state, wherever the program comes from", "[adopted]") {
  Application application;
  if (!application.gl) return;
  SECTION("built") {}
  SECTION("from disk") {
    application.program(material);
    application.open_cache();
  }
  SECTION("memory only") {
    application.workplace.config.directory.clear();
    application.open_cache();
  }
  AdoptedProgram one = application.program(material);
  CHECK(has_initial_state(one));
  change_state(one);
  AdoptedProgram two = application.program(material);
  CHECK(two.name() != one.name());
  CHECK(two.tier() == Tier::memory);
  CHECK(has_initial_state(two));
  CHECK(uniform(one.name(), "shade") == 1.5f);
  CHECK(block_binding(one.name(), "Out") == 1);
  change_state(two);
  one = {};
  const AdoptedProgram three = application.program(material);  // the first one's object is free, and not as it was
  CHECK(has_initial_state(three));
  CHECK(uniform(two.name(), "shade") == 1.5f);
  const AdoptedProgram copy = two;  // of the answer, not of the program
  CHECK(copy.name() == two.name());
  CHECK_FALSE(has_error());
}

TEST_CASE("adopted: every call leaves the state of the context as it is", "[adopted]") {
  Application application;
  if (!application.gl) return;
  set_unusual_state();
  REQUIRE_FALSE(has_error());
  const auto before = gl_state();
  for (const auto& [name, values] : before) {
    INFO(name);
    CHECK(values != std::vector<int>(values.size(), 0));  // else a reset would not be noticed
  }
  const auto check = [&](const char* call) {
    for (const auto& [name, values] : gl_state()) {
      INFO(call << ": " << name);
      CHECK(values == before.at(name));
    }
    CHECK_FALSE(has_error());
  };
  {
    const AdoptedProgram built = application.program(material);
    CHECK(built.tier() == Tier::built);
    check("a build");
    const AdoptedProgram held = application.program(material);
    CHECK(held.tier() == Tier::memory);
    check("a hit in memory");
    (void)AdoptedGl::interface(built, material);
    check("interface()");
    application.open_cache();
    check("closing a cache");
    CHECK(application.program(material).tier() == Tier::disk);
    check("a hit on disk, and a program that is dropped");
    std::thread([dropped = application.program(doubling)]() mutable { dropped = {}; }).join();
    check("a program that is dropped elsewhere");
  }
  check("programs that are dropped");
  CHECK(application.gl->delete_dropped().ok());
  check("delete_dropped()");
  CHECK(failure(application.gl->program(*application.cache, "#version 430 core\nvoid main() { x; }\n")).code ==
        StatusCode::invalid_argument);
  check("a program that does not compile");
  {
    const auto again = AdoptedGl::adopt(find_gl, {}, application.workplace.config);
    CHECK(again);
    check("adopt() with the driver's facts stored");
    const auto anew = AdoptedGl::adopt(find_gl, {}, nullptr);
    CHECK(anew);
    check("adopt() with a program to learn of the driver");
  }
  check("the end of an AdoptedGl");
  KernelSource source;
  source.dialect = Dialect::glsl;
  source.text = doubling;
  source.bindings = {Access::read_write};
  Device& device = application.gl->device();
  const auto made = device.build(source);
  REQUIRE(made);
  check("device().build()");
  const auto binary = device.serialize(**made);
  REQUIRE(binary);
  check("device().serialize()");
  CHECK(device.load(source, *binary));
  check("device().load()");
}

TEST_CASE("adopted: a program that was linked for one caller alone goes with it", "[adopted]") {
  Application application;
  if (!application.gl) return;
  const AdoptedProgram first = application.program();
  AdoptedProgram second = application.program();
  const unsigned name = second.name();
  CHECK(application.cache->stats().builds == 1);
  second = {};
  CHECK_FALSE(is_program(name));
  CHECK(is_linked(first.name()));
}

TEST_CASE("adopted: what was learned of the driver is stored beside the programs, unless the caller wants it not",
          "[adopted]") {
  Workplace place;
  const OwnContext context;
  if (!is_usable(context)) return;
  REQUIRE(AdoptedGl::adopt(find_gl, {}, nullptr).has_value());
  CHECK(place.files(".note").empty());
  CacheConfig nowhere = place.config;
  nowhere.directory.clear();
  REQUIRE(AdoptedGl::adopt(find_gl, {}, nowhere).has_value());
  CHECK(place.files(".note").empty());
  REQUIRE(AdoptedGl::adopt(find_gl, {}, place.config).has_value());
  const auto notes = place.files(".note");
  REQUIRE(notes.size() == 1);
  const auto written = std::filesystem::last_write_time(notes[0]);
  REQUIRE(AdoptedGl::adopt(find_gl, {}, place.config).has_value());
  CHECK(place.files(".note") == notes);
  CHECK(std::filesystem::last_write_time(notes[0]) == written);
  overwrite(notes[0], std::vector<std::byte>(100));
  REQUIRE(AdoptedGl::adopt(find_gl, {}, place.config).has_value());  // a damaged note is replaced
  CHECK(contents(notes[0]).size() != 100);
}

TEST_CASE("adopted: the compiler's log reaches the caller, and nothing is kept of it", "[adopted]") {
  Application application;
  if (!application.gl) return;
  const std::string text = std::string(doubling) + "this is no GLSL\n";
  const Status status = failure(application.gl->program(*application.cache, text));
  CHECK(status.code == StatusCode::invalid_argument);
  CHECK(contains(status.message, "opengl:adopted: GLSL compiler: "));
  CHECK(contains(status.message, "syntax error"));
  CHECK(application.workplace.files(".bin").empty());
  CHECK(application.program().tier() == Tier::built);
}

TEST_CASE("adopted: a program dropped on its thread goes at once, one dropped elsewhere at the next call",
          "[adopted]") {
  Application application;
  if (!application.gl) return;
  AdoptedProgram program = application.program();
  const unsigned name = program.name();
  application.open_cache();  // the first cache's own handle goes
  CHECK(is_program(name));
  SECTION("on its thread") {
    program = {};
    CHECK_FALSE(is_program(name));
  }
  SECTION("elsewhere") {
    std::thread([dropped = std::move(program)]() mutable { dropped = {}; }).join();
    CHECK(is_program(name));
    CHECK(application.gl->delete_dropped().ok());
    CHECK_FALSE(is_program(name));
  }
  SECTION("with another context current") {
    const OwnContext other;
    program = {};
    CHECK_FALSE(application.gl->delete_dropped().ok());
    application.context.make_current();
    CHECK(is_program(name));
    CHECK(application.gl->delete_dropped().ok());
    CHECK_FALSE(is_program(name));
  }
  SECTION("after the adoption ended") {
    application.cache.reset();
    application.gl.reset();
    CHECK(is_linked(name));
    std::thread([dropped = std::move(program)]() mutable { dropped = {}; }).join();
  }
  SECTION("on its thread after the adoption ended: its context may be gone by then") {
    application.cache.reset();
    application.gl.reset();
    program = {};
    CHECK(is_linked(name));
  }
}

TEST_CASE("adopted: another thread is answered unavailable, and the cache is not touched", "[adopted]") {
  Application application;
  if (!application.gl) return;
  Status status;
  Status deleting;
  Result<std::unique_ptr<Program>> built = internal_error("not asked yet");
  std::thread([&] {
    status = failure(application.gl->program(*application.cache, doubling));
    deleting = application.gl->delete_dropped();
    built = application.gl->device().build(source_of(doubling));
  }).join();
  CHECK(status.code == StatusCode::unavailable);
  CHECK(contains(status.message, "a thread other than the one that adopted"));
  CHECK(deleting.code == StatusCode::unavailable);
  REQUIRE_FALSE(built.has_value());
  CHECK(built.error().code == StatusCode::unavailable);
  CHECK(application.cache->stats().misses == 0);
  CHECK(application.program().tier() == Tier::built);
}

TEST_CASE("adopted: without its context current it is unavailable", "[adopted]") {
  Application application;
  if (!application.gl) return;
  SECTION("none") {
    application.context.make_none_current();
    const Status status = failure(application.gl->program(*application.cache, doubling));
    CHECK(status.code == StatusCode::unavailable);
    CHECK(contains(status.message, "no context is current"));
  }
  SECTION("another") {
    const OwnContext other;
    const Status status = failure(application.gl->program(*application.cache, doubling));
    CHECK(status.code == StatusCode::unavailable);
    CHECK(contains(status.message, "another context is current"));
  }
  application.context.make_current();
  CHECK(application.program().tier() == Tier::built);
}

TEST_CASE("adopted: what cannot be adopted says why", "[adopted]") {
  if (!is_usable(OwnContext())) return;
  const auto refused = [] {
    auto adopted = AdoptedGl::adopt(find_gl);
    return adopted ? Status() : adopted.error();
  };
  SECTION("no context") {
    CHECK(refused().code == StatusCode::unavailable);
    CHECK(contains(refused().message, "no OpenGL context is current on this thread"));
  }
  SECTION("no function") {
    const auto adopted = AdoptedGl::adopt(nullptr);
    REQUIRE_FALSE(adopted.has_value());
    CHECK(adopted.error().code == StatusCode::invalid_argument);
  }
}

TEST_CASE("adopted: an error that the application left behind is said, and is not taken for Kiln's", "[adopted]") {
  Application application;
  if (!application.gl) return;
  cause_an_error();
  CHECK(application.program().tier() == Tier::built);
  const auto warnings = application.workplace.log.warnings();
  REQUIRE(warnings.size() == 1);
  CHECK(contains(warnings[0], "OpenGL error of the application"));
  CHECK(contains(warnings[0], "GL_INVALID_ENUM"));
}

TEST_CASE("adopted: buffers and the queue are the application's", "[adopted]") {
  Application application;
  if (!application.gl) return;
  Device& device = application.gl->device();
  CHECK(device.create_buffer({}).error().code == StatusCode::unsupported);
  CHECK(device.submit({}).error().code == StatusCode::unsupported);
  CHECK(device.wait(1, {}).error().code == StatusCode::unsupported);
}

TEST_CASE("adopted: the plugin and an adopted context share their programs", "[adopted]") {
  Application application;
  if (!application.gl) return;
  KernelSource source = source_of(doubling);
  source.bindings = {Access::read_write};
  source.workgroup = {8, 1, 1};
  support::PluginUnderTest plugin("opengl");
  for (const DeviceInfo& info : plugin.driver().enumerate()) {
    if (!info.usable) continue;
    const auto device = plugin.open(info.id);
    if (device->info().device_identity != application.gl->device().info().device_identity) continue;  // another GPU
    CHECK(device->info().driver_identity == application.gl->device().info().driver_identity);
    application.open_cache();
    const ProgramKey key = key_of(source, device->info(), "shared");
    REQUIRE(application.cache->get_or_build(key, source, *device).has_value());
    const auto ours = application.gl->program(*application.cache, source, "shared");
    REQUIRE(ours.has_value());
    CHECK(ours->tier() == Tier::disk);
    CHECK(is_linked(ours->name()));
    application.cache.reset();  // before the device
    break;
  }
}

TEST_CASE("adopted: a driver without program binaries serves, and nothing is kept", "[.no_binaries]") {
  Application application;
  if (!application.gl) return;
  CHECK_FALSE(application.gl->device().info().serializes);
  const AdoptedProgram first = application.program(material);
  CHECK(first.tier() == Tier::library);  // made inside this process
  change_state(first);
  const AdoptedProgram second = application.program(material);
  CHECK(second.tier() == Tier::memory);
  CHECK(has_initial_state(second));
  CHECK(application.workplace.files(".bin").empty());
  application.open_cache();
  CHECK(application.program(material).tier() == Tier::library);  // made inside this process
}

TEST_CASE("adopted: a context without compute programs says which version it has", "[.old_driver]") {
  const OwnContext context;
  if (!is_usable(context)) return;
  const auto adopted = AdoptedGl::adopt(find_gl);
  REQUIRE_FALSE(adopted.has_value());
  CHECK(adopted.error().code == StatusCode::unsupported);
  CHECK(contains(adopted.error().message, "3.3"));
  CHECK(contains(adopted.error().message, "expected OpenGL 4.3 or newer"));
}

TEST_CASE("open_program_cache: what core does not have, and every problem of the sources", "[adopted]") {
  CacheConfig config;
  config.name = "elsewhere";
  const auto named = open_program_cache(config);
  REQUIRE_FALSE(named.has_value());
  CHECK(named.error().code == StatusCode::unsupported);
  CHECK(contains(named.error().message, "cache 'elsewhere'"));

  ConfigSources sources;
  sources.environment = {{"KILN_LOG", "loud"}, {"KILN_CACHE_DIR", "~nobody/cache"}};
  const auto wrong = open_program_cache(sources);
  REQUIRE_FALSE(wrong.has_value());
  CHECK(wrong.error().code == StatusCode::invalid_argument);
  CHECK(contains(wrong.error().message, "KILN_LOG"));
  CHECK(contains(wrong.error().message, "KILN_CACHE_DIR"));
  sources.environment = {};
  CHECK(open_program_cache(sources).has_value());  // without a home: memory only

  CacheTestFolder home;
  sources.environment = {{"HOME", home.path().string()}};
  CHECK(open_program_cache(sources).has_value());
  CHECK(std::filesystem::is_empty(home.path()));  // opened at first use
}

}  // namespace kiln::test

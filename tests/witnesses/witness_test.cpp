// The foreign witnesses: compute shaders of ours, compiled and submitted by drivers that know nothing of this project,
// Mesa's RADV (Vulkan) and radeonsi (OpenGL), on the simulated device; compared with what the same shaders give on the
// processor (lavapipe, llvmpipe) and with what the specification says (expectations/).
#include "witnesses/judge.hpp"

#include "simulator/random/random_program.hpp"
#include "support/test_length.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <future>

namespace kiln::witness {
namespace {

using simulator::test::RandomProgram;

const std::filesystem::path shader_folder = KILN_WITNESS_SHADERS;
const std::filesystem::path out_folder = KILN_WITNESS_OUT;

enum class Api : std::uint8_t { invalid = 0, vulkan, opengl, images, vulkan_images };  // images: by OpenGL too

bool is_vulkan(Api api) { return api == Api::vulkan || api == Api::vulkan_images; }

// One of Mesa's files for the Vulkan loader; empty where it is not installed.
std::string driver_file(const std::string& driver) {
  for (const char* folder : {"/usr/share/vulkan/icd.d", "/usr/local/share/vulkan/icd.d", "/etc/vulkan/icd.d"}) {
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
      if (entry.path().filename().string().rfind(driver, 0) == 0) return entry.path().string();
    }
  }
  return {};
}

WitnessSetup setup_of(Api api, const std::string& name) {
  WitnessSetup setup;
  setup.name = name;
  setup.out = out_folder / name;
  setup.program = api == Api::vulkan          ? KILN_WITNESS_VULKAN
                  : api == Api::vulkan_images ? KILN_WITNESS_VULKAN_IMAGES
                  : api == Api::images        ? KILN_WITNESS_IMAGES
                                              : KILN_WITNESS_OPENGL;
  setup.arguments = {"--shaders", shader_folder.string()};
  if (is_vulkan(api)) {
    setup.arguments.insert(setup.arguments.end(),
                           {"--spirv", api == Api::vulkan ? KILN_WITNESS_SPIRV : KILN_WITNESS_IMAGE_SPIRV});
  }
  setup.environment = {{"MESA_SHADER_CACHE_DISABLE", "1"}, {"LD_PRELOAD", ""}, {"KILN_SIM_TARGET", ""}};
  return setup;
}

WitnessRun run_software(Api api, const std::vector<ShaderCase>& cases) {
  WitnessSetup setup = setup_of(api, api == Api::vulkan          ? "lavapipe"
                                     : api == Api::vulkan_images ? "lavapipe-images"
                                     : api == Api::images        ? "llvmpipe-images"
                                                                 : "llvmpipe");
  if (is_vulkan(api)) {
    setup.environment["VK_ICD_FILENAMES"] = driver_file("lvp_icd");
    if (setup.environment["VK_ICD_FILENAMES"].empty()) return {{}, "lavapipe is not installed", {}, {}};
  } else {
    setup.arguments.insert(setup.arguments.end(), {"--device", "software"});
  }
  return run_witness(setup, cases);
}

enum class Waves : std::uint8_t { invalid = 0, as_the_driver_likes, wave32 };

// Without a reason to skip in `skip`: a run of `api` on the simulated card.
WitnessSetup simulated_setup(Api api, const std::string& target, const std::string& queue, const std::string& name,
                             std::string& skip) {
  WitnessSetup setup = setup_of(api, name);
  // By name: what is preloaded is parted by blanks, which folders may have.
  const std::filesystem::path library = KILN_SIM_LIBRARY;
  setup.environment["LD_LIBRARY_PATH"] = library.parent_path();
  setup.environment["LD_PRELOAD"] = library.filename();
  setup.environment["KILN_SIM_TARGET"] = target;
  setup.environment["RADV_PERFTEST"] = "";
  if (is_vulkan(api)) {
    setup.arguments.insert(setup.arguments.end(), {"--queue", queue});
    setup.environment["VK_ICD_FILENAMES"] = driver_file("radeon_icd");
    if (setup.environment["VK_ICD_FILENAMES"].empty()) skip = "RADV is not installed";
  } else {
    setup.arguments.insert(setup.arguments.end(), {"--device", "hardware"});
  }
  return setup;
}

WitnessRun run_simulated(Api api, const std::string& target, const std::string& queue, Waves waves,
                         const std::vector<ShaderCase>& cases) {
  const std::string driver = api == Api::vulkan          ? "radv"
                             : api == Api::vulkan_images ? "radv-images"
                             : api == Api::images        ? "radeonsi-images"
                                                         : "radeonsi";
  std::string skip;
  WitnessSetup setup = simulated_setup(
      api, target, queue,
      driver + "-" + target + (queue == "graphics" ? "-graphics" : "") + (waves == Waves::wave32 ? "-wave32" : ""),
      skip);
  if (!skip.empty()) return {{}, skip, {}, {}};
  if (waves == Waves::wave32) setup.environment["RADV_PERFTEST"] = "cswave32";
  return run_witness(setup, cases);
}

struct References {
  WitnessRun vulkan, opengl;
};

// Side by side: each is a process that compiles on one thread.
References run_references(const std::vector<ShaderCase>& cases) {
  References references;
  std::future<WitnessRun> opengl =
      std::async(std::launch::async, [&cases] { return run_software(Api::opengl, cases); });
  references.vulkan = run_software(Api::vulkan, cases);
  references.opengl = opengl.get();
  return references;
}

// The software renderers' answers are the same for every test here: asked for once a process.
const WitnessRun& reference_of(Api api, const std::vector<ShaderCase>& cases) {
  static const References references = run_references(cases);
  return api == Api::vulkan ? references.vulkan : references.opengl;
}

void report(const std::vector<std::string>& disagreements) {
  for (const std::string& each : disagreements) FAIL_CHECK(each);
}

bool skipped(const WitnessRun& run, const std::string& name) {
  if (!run.renderer.empty()) return false;
  WARN("skipped: " << name << ": " << run.reason);
  return true;
}

bool built(Api api) {
  const bool has = *(api == Api::vulkan ? KILN_WITNESS_VULKAN : KILN_WITNESS_OPENGL) != '\0';
  if (!has) WARN("skipped: the Vulkan runner is not built: libvulkan or glslangValidator was not found");
  return has;
}

void check_simulated(Api api, const std::string& target, const std::string& queue, const std::string& chip,
                     Waves waves = Waves::as_the_driver_likes) {
  if (!built(api)) return;
  if (!std::filesystem::exists(KILN_SIM_LIBRARY)) {
    WARN("skipped: " KILN_SIM_LIBRARY " is not built");
    return;
  }
  const auto cases = load_cases(shader_folder);
  const Rules all = rules();
  const WitnessRun run = run_simulated(api, target, queue, waves, cases);
  if (run.reason.find("not installed") != std::string::npos && skipped(run, "simulated " + target)) return;
  INFO(run.reason);
  REQUIRE(run.renderer.find(chip) != std::string::npos);  // it is the driver of the simulated device that answered
  CHECK(count_of(run, Outcome::ok) >= 80);
  report(against_rules(cases, all, run, Arithmetic::device));
  const WitnessRun& reference = reference_of(api, cases);
  if (!skipped(reference, "the software renderer")) report(against_renderer(cases, all, run, reference));
}

// Every format in one shape, and a few formats in each; see runners/opengl/images.cpp.
std::vector<ShaderCase> image_cases() {
  std::vector<std::string> names = {"atomics", "samples"};
  for (const char* format :
       {"r32ui",    "rg32ui",     "rgba32ui",   "r16ui",          "rg16ui",   "rgba16ui",  "r8ui",       "rg8ui",
        "rgba8ui",  "rgb10_a2ui", "r32i",       "rg32i",          "rgba32i",  "r16i",      "rg16i",      "rgba16i",
        "r8i",      "rg8i",       "rgba8i",     "r32f",           "rg32f",    "rgba32f",   "r16f",       "rg16f",
        "rgba16f",  "r16",        "rg16",       "r11f_g11f_b10f", "rgba16",   "r8",        "rg8",        "rgba8",
        "rgb10_a2", "r16_snorm",  "rg16_snorm", "rgba16_snorm",   "r8_snorm", "rg8_snorm", "rgba8_snorm"}) {
    names.push_back(std::string("small-") + format);
  }
  for (const char* shape : {"row", "rows", "levels", "large", "layers", "volume", "cube", "rectangle"}) {
    for (const char* format : {"r8ui", "rg16i", "r32ui", "rgba16f", "rgba32f"}) {
      names.push_back(std::string(shape) + "-" + format);
    }
  }
  std::vector<ShaderCase> cases;
  for (const std::string& name : names) cases.emplace_back().name = name;
  return cases;
}

void check_images(const WitnessRun& run, const std::string& chip) {
  INFO(run.reason);
  REQUIRE(run.renderer.find(chip) != std::string::npos);
  for (const ShaderCase& each : image_cases()) {
    INFO(each.name);
    const auto found = run.cases.find(each.name);
    REQUIRE(found != run.cases.end());
    INFO(found->second.text);
    CHECK(found->second.outcome == Outcome::ok);
  }
}

void check_simulated_images(const std::string& target, const std::string& chip) {
  if (!std::filesystem::exists(KILN_SIM_LIBRARY)) {
    WARN("skipped: " KILN_SIM_LIBRARY " is not built");
    return;
  }
  check_images(run_simulated(Api::images, target, "graphics", Waves::as_the_driver_likes, image_cases()), chip);
}

std::vector<ShaderCase> vulkan_image_cases() {
  std::vector<ShaderCase> cases;
  for (const char* name : {"rgba8", "bgra8_srgb", "rgb10_a2", "r5g6b5", "rg16_snorm", "bc1", "bc3_srgb", "bc5_snorm",
                           "bc6", "bc6_signed", "bc7", "bc7_srgb", "depth16", "sparse"}) {
    cases.emplace_back().name = name;
  }
  return cases;
}

std::vector<float> floats_of(const Bytes& bytes) {
  std::vector<float> floats(bytes.size() / sizeof(float));
  std::memcpy(floats.data(), bytes.data(), floats.size() * sizeof(float));
  return floats;
}

// Texels as lavapipe reads them, but for the last places of numbers that are not whole. Of sRGB and of BC1 to BC5
// lavapipe computes eight bits.
void check_vulkan_images(const WitnessRun& software, const std::string& target, const std::string& chip) {
  const auto cases = vulkan_image_cases();
  const WitnessRun run = run_simulated(Api::vulkan_images, target, "compute", Waves::as_the_driver_likes, cases);
  if (run.reason.find("not installed") != std::string::npos && skipped(run, "simulated " + target)) return;
  INFO(run.reason);
  REQUIRE(run.renderer.find(chip) != std::string::npos);
  for (const ShaderCase& each : cases) {
    INFO(target << " " << each.name);
    const auto found = run.cases.find(each.name);
    REQUIRE(found != run.cases.end());
    INFO(found->second.text);
    CHECK(found->second.outcome == Outcome::ok);
    const auto reference = software.cases.find(each.name);
    if (reference == software.cases.end() || reference->second.outcome != Outcome::ok) continue;
    const bool coarse =
        each.name == "bgra8_srgb" || each.name == "bc1" || each.name == "bc3_srgb" || each.name == "bc5_snorm";
    const float allowed = coarse ? 2.0F / 127 : 1e-6F;
    const std::vector<float> got = floats_of(run.read(each.name, "texels"));
    const std::vector<float> wanted = floats_of(software.read(each.name, "texels"));
    REQUIRE(got.size() == wanted.size());
    std::size_t wrong = 0;
    for (std::size_t at = 0; at < got.size(); ++at) {
      const bool both_nan = got[at] != got[at] && wanted[at] != wanted[at];
      wrong += both_nan || got[at] == wanted[at] ||
                       std::fabs(got[at] - wanted[at]) <= allowed * std::fmax(1.0F, std::fabs(wanted[at]))
                   ? 0
                   : 1;
    }
    CHECK(wrong == 0);
  }
}

// A driver, and the variable that chooses its compiler's optimizations or its size of a wave.
struct RandomBuild {
  Api api;
  const char* target;
  unsigned lanes;
  const char* variable;
  const char* value;
};
constexpr RandomBuild random_builds[] = {
    {Api::vulkan, "gfx1100", 32, "ACO_DEBUG", ""},
    {Api::vulkan, "gfx1030", 64, "ACO_DEBUG", "noopt,nosched"},
    {Api::vulkan, "gfx1030", 32, "RADV_DEBUG", "llvm"},
    {Api::vulkan, "gfx1100", 64, "ACO_DEBUG", ""},
    {Api::vulkan, "gfx1100", 32, "ACO_DEBUG", "noopt,nosched"},
    {Api::vulkan, "gfx1030", 64, "RADV_DEBUG", "llvm"},
    {Api::vulkan, "gfx1030", 32, "ACO_DEBUG", ""},
    {Api::vulkan, "gfx1100", 64, "ACO_DEBUG", "noopt,nosched"},
    {Api::vulkan, "gfx1100", 32, "RADV_DEBUG", "llvm"},
    {Api::vulkan, "gfx1030", 64, "ACO_DEBUG", ""},
    {Api::vulkan, "gfx1030", 32, "ACO_DEBUG", "noopt,nosched"},
    {Api::vulkan, "gfx1100", 64, "RADV_DEBUG", "llvm"},
    {Api::opengl, "gfx1100", 32, "AMD_DEBUG", "w32cs"},
    {Api::opengl, "gfx1030", 64, "AMD_DEBUG", "w64cs"},
    {Api::opengl, "gfx1030", 32, "AMD_DEBUG", "w32cs"},
    {Api::opengl, "gfx1100", 64, "AMD_DEBUG", "w64cs"},
};

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

// Compares the first buffer that differs from what the program's interpreter says.
std::string random_verdict(const RandomProgram& program, const ShaderCase& shader, const WitnessRun& run,
                           unsigned lanes) {
  const auto found = run.cases.find(shader.name);
  if (found == run.cases.end()) return "did not run: " + run.reason;
  if (found->second.outcome != Outcome::ok) return found->second.text;
  const RandomProgram::Results expected = program.expected(Given(shader).read<std::uint32_t>("given"), lanes);
  const std::pair<const char*, Bytes> buffers[] = {
      {"words", bytes_of(expected.words)}, {"sums", bytes_of(expected.sums)}, {"wide", bytes_of(expected.wide)}};
  for (std::size_t k = 0; k + 1 < shader.buffers.size(); ++k) {
    const BufferSpec& buffer = shader.buffers[k + 1];
    const Bytes got = run.read(shader.name, buffer.name);
    if (got == buffers[k].second) continue;
    const Difference difference = compare(buffer.scalar, {}, 1, got, std::span(&buffers[k].second, 1));
    return buffer.name + (k == 0 ? ", " + program.word_name(difference.first) : "") + ": " + difference.text +
           ", and " + std::to_string(difference.count - 1) + " others";
  }
  return {};
}

// Programs that compilers build wrongly: docs/measurements/simulator.md.
const std::set<std::uint64_t>& miscompiled(Api api) {
  static const std::set<std::uint64_t> vulkan = {9, 17}, opengl = {2, 58};
  return api == Api::vulkan ? vulkan : opengl;
}

// Each program runs in two builds, which differ in target, size of a wave and optimizations.
void check_random(Api api, unsigned long count) {
  if (!built(api)) return;
  if (!std::filesystem::exists(KILN_SIM_LIBRARY)) {
    WARN("skipped: " KILN_SIM_LIBRARY " is not built");
    return;
  }
  const std::string name = api == Api::vulkan ? "random-vulkan" : "random-opengl";
  const std::filesystem::path folder = out_folder / name / "shaders", spirv = out_folder / name / "spirv";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  std::map<std::string, std::unique_ptr<RandomProgram>> programs;
  std::set<std::string> skipped;
  const bool chosen = std::getenv("KILN_TEST_PROGRAMS") != nullptr;
  for (const std::uint64_t seed : RandomProgram::chosen_seeds(count)) {
    auto program = std::make_unique<RandomProgram>(
        api == Api::vulkan ? RandomProgram::Language::vulkan : RandomProgram::Language::opengl, seed);
    std::ofstream(folder / (program->name() + ".glsl")) << program->text();
    if (!chosen && miscompiled(api).contains(seed)) skipped.insert(program->name());
    programs.emplace(program->name(), std::move(program));
  }
  const std::vector<ShaderCase> cases = load_cases(folder);
  if (api == Api::vulkan) {
    const std::string command = std::string("'") + KILN_WITNESS_COMPILE + "' '" + folder.string() + "' '" +
                                spirv.string() + "' '" + KILN_WITNESS_GLSLANG + "'";
    REQUIRE(std::system(command.c_str()) == 0);
  }
  std::vector<RandomBuild> builds;
  for (const RandomBuild& each : random_builds) {
    if (each.api == api) builds.push_back(each);
  }
  for (std::size_t b = 0; b < builds.size(); ++b) {
    const RandomBuild& build = builds[b];
    std::vector<ShaderCase> mine;
    for (std::size_t k = 0; k < cases.size(); ++k) {
      if (skipped.contains(cases[k].name)) continue;  // here, so that the others keep their builds
      if (2 * k % builds.size() == b || (2 * k + 1) % builds.size() == b) mine.push_back(cases[k]);
    }
    if (mine.empty()) continue;
    std::string skip;
    const std::string what =
        std::string(build.target) + "-wave" + std::to_string(build.lanes) + "-" + build.variable + "-" + build.value;
    WitnessSetup setup = simulated_setup(api, build.target, "compute", name + "/" + what, skip);
    if (!skip.empty()) {
      WARN("skipped: " << skip);
      return;
    }
    setup.arguments[1] = folder.string();  // --shaders
    if (api == Api::vulkan) setup.arguments[3] = spirv.string();
    setup.environment[build.variable] = build.value;
    setup.environment["KILN_SIM_CHECK"] = "1";
    if (api == Api::vulkan && build.lanes == 32) setup.environment["RADV_PERFTEST"] = "cswave32";
    setup.limit = std::chrono::seconds(60 + 5 * mine.size());
    const WitnessRun run = run_witness(setup, mine);
    INFO(run.reason);
    REQUIRE(!run.renderer.empty());
    for (const ShaderCase& shader : mine) {
      std::string verdict = random_verdict(*programs.at(shader.name), shader, run, build.lanes);
      // RADV compiles for 64 lanes all the same where full subgroups are used.
      if (!verdict.empty() && api == Api::vulkan && build.lanes == 32) {
        verdict = random_verdict(*programs.at(shader.name), shader, run, 64);
      }
      if (!verdict.empty()) FAIL_CHECK(folder.string() << "/" << shader.name << " on " << what << ": " << verdict);
    }
  }
}

}  // namespace

TEST_CASE("witnesses::expectations stand for cases that exist, and for most of them") {
  const auto cases = load_cases(shader_folder);
  std::size_t ruled = 0;
  const Rules all = rules();
  for (const ShaderCase& shader : cases) ruled += all.contains(shader.name) ? 1 : 0;
  CHECK(ruled == all.size());
  CHECK(ruled * 3 >= cases.size() * 2);
  CHECK(cases.size() >= 80);
}

TEST_CASE("witnesses::a renderer that answers wrongly is told, and one that dies costs its case alone") {
  const auto cases = load_cases(shader_folder);
  const auto named = [&](const std::string& name) {
    return *std::find_if(cases.begin(), cases.end(), [&](const ShaderCase& each) { return each.name == name; });
  };
  const ShaderCase shader = named("uint_arithmetic");
  WitnessRun run;
  run.renderer = "none";
  run.out = out_folder / "wrong";
  run.cases[shader.name] = {Outcome::ok, {}};
  std::filesystem::create_directories(run.out);
  Expected expected;
  const Rules all = rules();
  all.at(shader.name)(Given(shader), expected);
  Bytes bytes = expected.of("r").at(0);
  const auto write = [&] {
    FILE* file = std::fopen((run.out / "uint_arithmetic.r.bin").c_str(), "wb");
    std::fwrite(bytes.data(), 1, bytes.size(), file);
    std::fclose(file);
  };
  write();
  CHECK(against_rules({shader}, all, run, Arithmetic::device).empty());
  bytes[4 * 77] ^= std::byte{1};
  write();
  const auto told = against_rules({shader}, all, run, Arithmetic::device);
  REQUIRE(told.size() == 1);
  CHECK(told[0].find("uint_arithmetic.r[77]") == 0);

  // A runner that ends by a signal at every case it begins: each is a failed one, and none is missing.
  WitnessSetup setup = setup_of(Api::opengl, "dying");
  setup.program = "/bin/sh";
  setup.arguments = {"-c", R"(for each; do last=$each; done; while [ "$1" != --out ]; do shift; done
    echo none > "$2/renderer.txt"; printf '%s\tbegun\t\n' "$3" >> "$2/status.txt"; echo ill; kill -SEGV $$)",
                     "sh"};
  const WitnessRun dead = run_witness(setup, {shader, named("crc32")});
  CHECK(count_of(dead, Outcome::failed) == 2);
  CHECK(dead.cases.at("crc32").text.find("signal 11: ill") != std::string::npos);
}

TEST_CASE("witnesses::lavapipe and llvmpipe answer as the specification says, and alike") {
  const auto cases = load_cases(shader_folder);
  const Rules all = rules();
  const WitnessRun& opengl = reference_of(Api::opengl, cases);
  if (!skipped(opengl, "llvmpipe")) {
    CHECK(opengl.renderer.find("llvmpipe") != std::string::npos);
    CHECK(count_of(opengl, Outcome::ok) >= 80);
    report(against_rules(cases, all, opengl, Arithmetic::software));
  }
  if (!built(Api::vulkan)) return;
  const WitnessRun& vulkan = reference_of(Api::vulkan, cases);
  if (skipped(vulkan, "lavapipe")) return;
  CHECK(vulkan.renderer.find("llvmpipe") != std::string::npos);
  CHECK(count_of(vulkan, Outcome::ok) >= 80);
  report(against_rules(cases, all, vulkan, Arithmetic::software));
  if (!opengl.renderer.empty()) report(against_renderer(cases, all, opengl, vulkan));
}

TEST_CASE("witnesses::RADV on the simulated gfx1100") { check_simulated(Api::vulkan, "gfx1100", "compute", "GFX1100"); }

TEST_CASE("witnesses::RADV on the simulated gfx1100, by the graphics ring") {
  check_simulated(Api::vulkan, "gfx1100", "graphics", "GFX1100");
}

TEST_CASE("witnesses::RADV on the simulated gfx1100, by waves of 32") {
  check_simulated(Api::vulkan, "gfx1100", "compute", "GFX1100", Waves::wave32);
}

TEST_CASE("witnesses::RADV on the simulated gfx1030") { check_simulated(Api::vulkan, "gfx1030", "compute", "NAVI21"); }

TEST_CASE("witnesses::radeonsi on the simulated gfx1100") {
  check_simulated(Api::opengl, "gfx1100", "graphics", "gfx1100");
}

TEST_CASE("witnesses::images by llvmpipe, and by radeonsi on the simulated cards") {
  const WitnessRun software = run_software(Api::images, image_cases());
  if (!skipped(software, "llvmpipe")) check_images(software, "llvmpipe");
  check_simulated_images("gfx1100", "gfx1100");
  check_simulated_images("gfx1030", "navi21");
}

TEST_CASE("witnesses::images by lavapipe, and by RADV on the simulated cards") {
  if (!built(Api::vulkan)) return;
  if (!std::filesystem::exists(KILN_SIM_LIBRARY)) {
    WARN("skipped: " KILN_SIM_LIBRARY " is not built");
    return;
  }
  const WitnessRun software = run_software(Api::vulkan_images, vulkan_image_cases());
  if (!skipped(software, "lavapipe")) CHECK(count_of(software, Outcome::ok) >= vulkan_image_cases().size() - 1);
  check_vulkan_images(software, "gfx1100", "GFX1100");
  check_vulkan_images(software, "gfx1030", "NAVI21");
}

TEST_CASE("witnesses::radeonsi on the simulated gfx1030") {
  check_simulated(Api::opengl, "gfx1030", "graphics", "navi21");
}

TEST_CASE("witnesses::random programs by RADV on the simulated cards give the host's results", "[random]") {
  check_random(Api::vulkan, kiln::test::is_long() ? 72 : 24);
}

TEST_CASE("witnesses::random programs by radeonsi on the simulated cards give the host's results", "[random]") {
  check_random(Api::opengl, kiln::test::is_long() ? 72 : 10);
}

}  // namespace kiln::witness

// The Vulkan device: identity, entries of the cache, and refusals.
#include <sched.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>

#include <kiln/digest.hpp>

#include "support/taken_core.hpp"
#include "vulkan/kernel_under_test.hpp"

namespace kiln::vulkan {
namespace {

KernelSource source_of(std::string text) {
  KernelSource source;
  source.dialect = Dialect::glsl;
  source.text = std::move(text);
  source.bindings = {Access::read_write};
  source.files = {"mine.comp"};
  return source;
}

KernelSource doubling() {
  return source_of(
      "#version 430\n"
      "layout(local_size_x = 64) in;\n"
      "layout(std430, binding = 0) buffer X { float x[]; };\n"
      "void main() { uint i = gl_GlobalInvocationID.x; if (i < uint(x.length())) x[i] *= 2.0; }\n");
}

ProgramBinary entry_of(const KernelSource& source) {
  Device& device = *Vulkan::instance().device();
  auto program = device.build(source);
  REQUIRE(program);
  auto binary = device.serialize(**program);
  REQUIRE(binary);
  return *binary;
}

// The entry with a changed byte and the right digest, as if the cache had authenticated it.
ProgramBinary with_byte(ProgramBinary binary, std::size_t at, std::byte flip) {
  binary.bytes[at] ^= flip;
  const Digest digest = sha256(std::span<const std::byte>(binary.bytes).subspan(32));
  std::memcpy(binary.bytes.data(), digest.bytes.data(), 32);
  return binary;
}

std::size_t cache_data_at(const ProgramBinary& binary) {
  std::uint32_t module_bytes = 0;
  std::memcpy(&module_bytes, binary.bytes.data() + 32, 4);
  return 36 + std::size_t{module_bytes};
}

// Where it is known what the device offers.
bool on_lavapipe() {
  if (!Vulkan::instance().usable()) return false;
  return Vulkan::instance().device()->info().kind == DeviceKind::software;
}

// The head of a text with these extensions.
std::string with(std::initializer_list<const char*> extensions) {
  std::string text = "#version 450\n";
  for (const char* each : extensions) text += "#extension " + std::string(each) + " : require\n";
  return text + "layout(local_size_x = 64) in;\n";
}

}  // namespace

TEST_CASE("vulkan: the driver's identity has the build of its library", "[vulkan]") {
  if (!Vulkan::instance().usable()) return;
  const DeviceInfo& info = Vulkan::instance().device()->info();
  const auto build = std::ranges::find(info.driver_identity, "build", &std::pair<std::string, std::string>::first);
  REQUIRE(build != info.driver_identity.end());
  CHECK(build->second.size() >= 40);  // a SHA-1
  CHECK(build->second.find("val-") == std::string::npos);
  if (info.name.starts_with("llvmpipe")) {
    CHECK(info.kind == DeviceKind::software);
    CHECK(info.shared_resource == "host-cores");
    CHECK(info.physical_id.empty());
  }
}

TEST_CASE("vulkan: a device in software has another identity where it has other processors", "[vulkan]") {
  if (!Vulkan::instance().usable()) return;
  const auto processors = [] {
    support::PluginUnderTest fresh("vulkan");  // a driver looks at its devices once
    const std::vector<DeviceInfo> devices = fresh.driver().enumerate();
    const auto& identity = devices.at(0).driver_identity;
    const auto found = std::ranges::find(identity, "processors", &std::pair<std::string, std::string>::first);
    return found == identity.end() ? "none" : found->second;
  };
  const std::vector<int> cores = support::allowed_cores();
  const std::string of = " of " + std::to_string(sysconf(_SC_NPROCESSORS_CONF));
  const bool software = Vulkan::instance().device()->info().kind == DeviceKind::software;
  CHECK(processors() == (software ? std::to_string(cores.size()) + of : "none"));
  std::string alone;
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(cores.front()), &one);
    if (sched_setaffinity(0, sizeof one, &one) == 0) alone = processors();
  }).join();
  CHECK(alone == (software ? "1" + of : "none"));
}

TEST_CASE("vulkan: a device that is opened twice has the same identity", "[vulkan]") {
  if (!Vulkan::instance().usable()) return;
  const auto again = Vulkan::instance().plugin().open("vulkan:0");
  CHECK(again->info().driver_identity == Vulkan::instance().device()->info().driver_identity);
  CHECK(again->info().device_identity == Vulkan::instance().device()->info().device_identity);
}

TEST_CASE("vulkan: a loader of Vulkan 1.1 is asked for nothing newer", "[vulkan]") {
  if (!Vulkan::instance().usable()) return;
  support::FaultyVulkan faulty({{"FAULTY_VULKAN_VERSION", "1.1"}});
  const auto device = faulty.plugin().open("vulkan:0");
  check(Kernel("uniform float gain;\n", "gain * i").number("gain", 2.5).on(*device), {0, 2.5F, 5});
}

TEST_CASE("vulkan: a required size of subgroups is a power of two, and limits the workgroup", "[vulkan]") {
  if (!Vulkan::instance().usable()) return;
  support::FaultyVulkan odd({}, {{"subgroup_size", std::int64_t{48}}});
  const auto refused = odd.plugin().driver().open("vulkan:0");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == StatusCode::unavailable);
  CHECK_THAT(refused.error().message, Catch::Contains("subgroup_size = 48") && Catch::Contains("powers of two from"));
  if (!on_lavapipe()) return;
  support::FaultyVulkan small({}, {{"subgroup_size", std::int64_t{8}}});
  const auto device = small.plugin().open("vulkan:0");
  CHECK(device->info().max_workgroup_lanes == 256);
  CHECK(device->info().max_workgroup[0] == 256);
  check(Kernel("", "i").on(*device), {0, 1, 2});
  refuse(Kernel("#version 450\nlayout(local_size_x = 1024) in;\n", "i").on(*device),
         "a workgroup of 1024x1x1, the device takes at most 256 lanes");
}

TEST_CASE("vulkan: an entry of another device or driver does not reach the driver", "[vulkan][entry]") {
  if (!Vulkan::instance().usable()) return;
  Device& device = *Vulkan::instance().device();
  const KernelSource source = doubling();
  const ProgramBinary entry = entry_of(source);
  const std::size_t cache = cache_data_at(entry);
  REQUIRE(entry.bytes.size() >= cache + 32);
  const std::uint64_t loads = Vulkan::instance().plugin().counters().loads;
  const struct {
    std::size_t at;
    const char* words;
  } faults[] = {{cache + 4, "header version"},
                {cache + 8, "of device"},
                {cache + 12, "of device"},
                {cache + 16, "UUID"},
                {cache + 31, "UUID"},
                {36 + 3, "the stored module"},  // the number of its words
                {40, "SPIR-V"},                 // its magic number
                {40 + 15, "SPIR-V"},            // its number of ids
                {40 + 22, "SPIR-V"}};           // the length of its first instruction
  for (const auto& fault : faults) {
    INFO("byte " << fault.at);
    const auto loaded = device.load(source, with_byte(entry, fault.at, std::byte{0xff}));
    REQUIRE_FALSE(loaded);
    CHECK(loaded.error().code == StatusCode::corrupt);
    CHECK_THAT(loaded.error().message, Catch::Contains(fault.words));
  }
  CHECK(Vulkan::instance().plugin().counters().loads == loads);
  CHECK(device.load(source, entry).has_value());
}

TEST_CASE("vulkan: an entry cut at any length is refused", "[vulkan][entry]") {
  if (!Vulkan::instance().usable()) return;
  const KernelSource source = doubling();
  const ProgramBinary entry = entry_of(source);
  const std::size_t cache = cache_data_at(entry);
  for (const std::size_t length : {std::size_t{0}, std::size_t{31}, std::size_t{35}, std::size_t{36}, cache - 4,
                                   cache - 1, cache + 1, cache + 31}) {
    INFO("length " << length);
    ProgramBinary cut = entry;
    cut.bytes.resize(length);
    if (length > 32) {
      const Digest digest = sha256(std::span<const std::byte>(cut.bytes).subspan(32));
      std::memcpy(cut.bytes.data(), digest.bytes.data(), 32);
    }
    const auto loaded = Vulkan::instance().device()->load(source, cut);
    REQUIRE_FALSE(loaded);
    CHECK(loaded.error().code == StatusCode::corrupt);
  }
}

TEST_CASE("vulkan: a stored program counts as compiled anew only where the driver says so", "[vulkan][entry]") {
  if (!Vulkan::instance().usable()) return;
  const KernelSource source = doubling();
  ProgramBinary entry = entry_of(source);
  const bool has_code = entry.bytes.size() > cache_data_at(entry) + 32;
  if (!has_code) entry.bytes.push_back(std::byte{0});  // lavapipe does not look at it
  entry = with_byte(std::move(entry), 36, std::byte{0});
  const auto load_with = [&](support::FaultyVulkan::Variables faults) {
    support::FaultyVulkan faulty(faults);
    const auto loaded = faulty.plugin().open("vulkan:0")->load(source, entry);
    return loaded ? Status() : loaded.error();
  };
  CHECK(load_with({{"FAULTY_VULKAN_PIPELINES", "silent"}}).ok());
  CHECK(load_with({{"FAULTY_VULKAN_PIPELINES", "silent"}, {"FAULTY_VULKAN_WITHOUT", "cache_control"}}).ok());
  const Status anew = load_with({{"FAULTY_VULKAN_WITHOUT", "cache_control"}});
  INFO(anew.text());
  CHECK(anew.ok() == has_code);
  if (!has_code) CHECK_THAT(anew.message, Catch::Contains("compiled the program again"));
}

TEST_CASE("vulkan: what a program needs and the device lacks is named", "[vulkan][refusal]") {
  if (!Vulkan::instance().usable()) return;
  const std::string buffer = "layout(std430, binding = 0) buffer X { float x[]; };\n";
  const std::string size = "layout(local_size_x = 64) in;\n";
  const struct {
    std::string text;
    const char* words;
  } programs[] = {
      {"#version 450\nlayout(local_size_x = 4096) in;\n" + buffer + "void main() { x[0] = 1.0; }\n",
       "a workgroup of 4096x1x1"},
      {"#version 450\n" + size + buffer + "shared float s[1000000];\nvoid main() { s[0] = x[0]; x[0] = s[1]; }\n",
       "4000000 bytes of shared memory"},
      {"#version 450\n" + size + buffer +
           "shared uint s[65536][65536][65536][65536];\n"
           "void main() { s[0][0][0][0] = 1; barrier(); x[0] = s[0][0][0][0]; }\n",
       "bytes of shared memory, the device has"},
      {"#version 450\n" + size + buffer +
           "shared uint s[65536][65536][65536][8192], t[65536][65536][65536][8192];\n"
           "void main() { s[0][0][0][0] = t[0][0][0][0]; barrier(); x[0] = s[0][0][0][0]; }\n",
       "bytes of shared memory, the device has"},
      {"#version 450\n#extension GL_EXT_buffer_reference : require\n" + size +
           "layout(buffer_reference, std430) buffer P { float v[]; };\n"
           "layout(push_constant) uniform Push { P p; };\nvoid main() { p.v[0] = 1.0; }\n",
       "capability PhysicalStorageBufferAddresses (buffer_reference), which Kiln does not enable"},
      {"#version 450\n" + size + "uniform sampler2DRect t;\n" + buffer +
           "void main() { x[0] = texelFetch(t, ivec2(0)).x; }\n",
       "capability SampledRect, which Kiln does not enable"},
      {"#version 450\n" + size + "layout(push_constant) uniform Push { float big[4096]; };\n" + buffer +
           "void main() { x[0] = big[gl_LocalInvocationID.x]; }\n",
       "bytes of push constants"},
      {"#version 450\n" + size + buffer + "void main() { y = 1.0; }\n", "mine.comp:4: ERROR: 'y'"},
      {"#version 450\nvoid broken(\n", "GLSL compiler"},
      {"#version 450\n" + size + "subroutine void F();\n" + buffer + "void main() { x[0] = 1.0; }\n", "subroutine"},
  };
  for (const auto& program : programs) {
    INFO(program.text);
    const auto built = Vulkan::instance().device()->build(source_of(program.text));
    REQUIRE_FALSE(built);
    INFO(built.error().text());
    CHECK((built.error().code == StatusCode::invalid_argument || built.error().code == StatusCode::unsupported));
    CHECK_THAT(built.error().message, Catch::Contains(program.words));
  }
}

TEST_CASE("vulkan: more resources than a program or a set of descriptors may have are refused", "[vulkan][refusal]") {
  if (!Vulkan::instance().usable()) return;
  const auto run_with = [](support::FaultyVulkan::Variables limits) {
    support::FaultyVulkan faulty(limits);
    const auto device = faulty.plugin().open("vulkan:0");
    return Kernel("layout(std430, binding = 0) readonly buffer A { float a[]; };\nuniform float gain;\n", "a[i] * gain")
        .input(ramp(), "A")
        .number("gain", 2)
        .on(*device)
        .run();
  };
  CHECK(run_with({{"FAULTY_VULKAN_RESOURCES", "3"}, {"FAULTY_VULKAN_BLOCKS", "2"}}).ok());
  CHECK_THAT(run_with({{"FAULTY_VULKAN_RESOURCES", "2"}}).message,
             Catch::Contains("3 resources, the device takes at most 2"));
  CHECK_THAT(run_with({{"FAULTY_VULKAN_BLOCKS", "1"}}).message,
             Catch::Contains("2 storage blocks, the device takes at most 1"));
}

TEST_CASE("vulkan: what no capability tells is enabled where the device has it, and else named", "[vulkan][feature]") {
  if (!on_lavapipe()) return;
  const Kernel zeros(with({"GL_EXT_null_initializer"}) + "shared float s[64] = {};\n", "s[i] + 5");
  check(zeros, {5, 5});
  check(Kernel(with({"GL_KHR_shader_subgroup_arithmetic", "GL_EXT_shader_subgroup_extended_types_int64",
                     "GL_EXT_shader_explicit_arithmetic_types_int64"}),
               "subgroupMax(uint64_t(7))"),
        {7, 7});
  const std::string floats = with({"GL_EXT_shader_atomic_float"});
  check(Kernel(floats + "layout(std430, binding = 0) buffer A { float a[]; };\n", "atomicExchange(a[i], 1.0)")
            .input(ramp(), "A", {}, Access::read_write),
        {0, 1, 2});
  check(Kernel(floats + "shared float s;\n", "(atomicExchange(s, 2.0), barrier(), s)"), {2, 2});
  check(Kernel("layout(r32f) uniform image1D m;\n", "imageAtomicExchange(m, int(i), 3.0)")
            .texture(BindingKind::image, Access::read_write, "m", ramp(), DType::f32, {64}),
        {0, 1, 2});
  support::FaultyVulkan faulty({{"FAULTY_VULKAN_WITHOUT", "zero_init"}});
  const auto device = faulty.plugin().open("vulkan:0");
  refuse(Kernel(zeros).on(*device), "needs the Vulkan feature shaderZeroInitializeWorkgroupMemory, which " +
                                        device->info().name + " does not support");
}

TEST_CASE("vulkan: what a capability needs is enabled where the device has it, and else named", "[vulkan][feature]") {
  if (!on_lavapipe()) return;
  const std::string floats = with({"GL_EXT_shader_atomic_float"});
  check(Kernel(floats + "layout(std430, binding = 0) coherent buffer A { float a; };\n",
               "(atomicAdd(a, 1.0), barrier(), a)")
            .input(std::vector<float>{5}, "A", {}, Access::read_write),
        {69, 69});
  check(Kernel(floats + "shared float s;\n", "(i == 0u ? (s = 5.0) : 0.0, barrier(), atomicAdd(s, 1.0), barrier(), s)"),
        {69, 69});
  check(Kernel(with({"GL_EXT_spirv_intrinsics"}) +
                   "spirv_instruction(extensions = [\"SPV_KHR_integer_dot_product\"], capabilities = [6019, 6018], "
                   "id = 4450)\nint dot4(int a, int b, spirv_literal uint packed);\n",
               "dot4(0x01020304, 0x01010101, 0)"),
        {10, 10});
  check(Kernel(with({"GL_ARB_shader_clock", "GL_ARB_gpu_shader_int64"}), "7UL + clockARB() * 0UL"), {7, 7});
  check(Kernel(with({"GL_ARB_shader_ballot", "GL_ARB_gpu_shader_int64"}), "uint(ballotARB(true)) & 1u"), {1, 1});
  check(Kernel(with({"GL_ARB_shader_group_vote"}), "allInvocationsARB(true) ? 7 : 8"), {7, 7});
  support::FaultyVulkan faulty({{"FAULTY_VULKAN_WITHOUT", "float64"}});
  const auto device = faulty.plugin().open("vulkan:0");
  refuse(Kernel("", "double(i) / 3.0LF").on(*device),
         "needs the SPIR-V capability Float64, which " + device->info().name + " does not support");
}

TEST_CASE("vulkan: a kernel that reads and writes beyond its buffer changes nothing else", "[vulkan][robust]") {
  if (!Vulkan::instance().usable()) return;
  UserKernelSpec kernel;
  kernel.dialect = Dialect::glsl;
  kernel.path = "beyond.comp";
  kernel.text =
      "#version 450\n"
      "layout(local_size_x = 64) in;\n"
      "layout(std430, binding = 0) buffer X { float x[]; };\n"
      "void main() { x[gl_GlobalInvocationID.x * 1000u] = x[gl_GlobalInvocationID.x * 999u] + 1.0; }\n";
  UserKernelSpec::Binding binding;
  binding.access = Access::read_write;
  binding.bytes = 256;
  kernel.bindings = {binding};
  std::vector<std::vector<std::byte>> tensors{support::bytes_of_values(std::vector<float>(64, 1.0F))};
  const Status status = support::run_kernel(kernel, tensors);
  INFO(status.text());
  REQUIRE(status.ok());
  const auto values = support::values_of_bytes<float>(tensors[0]);
  CHECK(values[0] == 2.0F);
  CHECK(std::count(values.begin() + 1, values.end(), 1.0F) == 63);
}

TEST_CASE("vulkan: a loader that is not there is named", "[vulkan]") {
  support::PluginUnderTest plugin("vulkan", {{"vulkan_library", std::string("libnone-vulkan.so.1")}});
  const std::vector<DeviceInfo> listed = plugin.driver().enumerate();
  REQUIRE(listed.size() == 1);
  CHECK_FALSE(listed[0].usable);
  CHECK_THAT(listed[0].why_not, Catch::Contains("libnone-vulkan.so.1"));
  CHECK(plugin.driver().open("vulkan:0").error().code == StatusCode::unavailable);
  CHECK(plugin.driver().open("vulkan:7").error().code == StatusCode::not_found);
}

}  // namespace kiln::vulkan

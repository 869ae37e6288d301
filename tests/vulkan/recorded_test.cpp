// Dispatches that repeat: their commands may be submitted again, and the results are those of commands recorded anew.
#include <catch2/catch.hpp>

#include <array>
#include <cstring>
#include <random>
#include <vector>

#include "vulkan/kernel_under_test.hpp"

namespace kiln::vulkan {
namespace {

using support::lanes;
using support::Vulkan;

Device& device() { return *Vulkan::instance().device(); }

std::unique_ptr<Program> built(const KernelSource& source) {
  auto program = device().build(source);
  INFO((program ? std::string() : program.error().text()));
  REQUIRE(program.has_value());
  return std::move(*program);
}

// y[i] = x[i] * 2 + 1 over as many lanes as the grid has.
KernelSource stepping() {
  KernelSource source;
  source.dialect = Dialect::glsl;
  source.text =
      "#version 430\n"
      "layout(local_size_x = 64) in;\n"
      "layout(std430, binding = 0) readonly buffer X { uint x[]; };\n"
      "layout(std430, binding = 1) buffer Y { uint y[]; };\n"
      "void main() { uint i = gl_GlobalInvocationID.x; y[i] = x[i] * 2u + 1u; }\n";
  source.bindings = {Access::read, Access::read_write};
  return source;
}

std::unique_ptr<Buffer> buffer_of(std::uint32_t words, std::uint32_t value, BufferUsage usage = BufferUsage::readback) {
  BufferDesc desc;
  desc.bytes = words * sizeof(std::uint32_t);
  desc.usage = usage;
  auto made = device().create_buffer(desc);
  REQUIRE(made.has_value());
  const std::vector<std::uint32_t> values(words, value);
  REQUIRE((*made)->write(0, std::as_bytes(std::span(values))).ok());
  return std::move(*made);
}

std::vector<std::uint32_t> words_in(Buffer& buffer) {
  std::vector<std::uint32_t> values(static_cast<std::size_t>(buffer.bytes() / sizeof(std::uint32_t)));
  REQUIRE(buffer.read(0, std::as_writable_bytes(std::span(values))).ok());
  return values;
}

std::uint64_t submit(std::span<const PassLaunch> passes) {
  const auto value = device().submit({passes});
  INFO((value ? std::string() : value.error().text()));
  REQUIRE(value.has_value());
  return *value;
}

void wait(std::uint64_t value) {
  const auto fence = device().wait(value, Deadline::never());
  INFO((fence ? std::string() : fence.error().text()));
  REQUIRE(fence.has_value());
}

}  // namespace

TEST_CASE("vulkan: an equal dispatch reads what the host wrote since", "[vulkan][recorded]") {
  if (!Vulkan::instance().usable()) return;
  const auto program = built(stepping());
  const auto from = buffer_of(lanes, 0, BufferUsage::upload), to = buffer_of(lanes, 0);
  Buffer* const bindings[] = {from.get(), to.get()};
  const PassLaunch launch{program.get(), bindings, {1, 1, 1}};
  for (std::uint32_t round = 1; round <= 5; ++round) {
    INFO("round " << round);
    const std::vector<std::uint32_t> values(lanes, round * 1000);
    REQUIRE(from->write(0, std::as_bytes(std::span(values))).ok());
    wait(submit({&launch, 1}));
    CHECK(words_in(*to) == std::vector<std::uint32_t>(lanes, round * 2000 + 1));
  }
}

TEST_CASE("vulkan: a buffer in the place of a destroyed one is written, and nothing else", "[vulkan][recorded]") {
  if (!Vulkan::instance().usable()) return;
  const auto program = built(stepping());
  const auto from = buffer_of(lanes, 7);
  for (std::uint32_t round = 1; round <= 5; ++round) {
    INFO("round " << round);
    const auto to = buffer_of(lanes, round);
    Buffer* const bindings[] = {from.get(), to.get()};
    const PassLaunch launch{program.get(), bindings, {1, 1, 1}};
    wait(submit({&launch, 1}));
    CHECK(words_in(*to) == std::vector<std::uint32_t>(lanes, 15));
    CHECK(words_in(*from) == std::vector<std::uint32_t>(lanes, 7));
  }
}

TEST_CASE("vulkan: dispatches that differ in grid, program or order do not take each other's commands",
          "[vulkan][recorded]") {
  if (!Vulkan::instance().usable()) return;
  KernelSource other = stepping();
  other.text.replace(other.text.find("* 2u + 1u"), 9, "* 3u + 5u");
  const auto twice = built(stepping()), thrice = built(other);
  const auto a = buffer_of(4 * lanes, 1), b = buffer_of(4 * lanes, 0);
  Buffer* const forth[] = {a.get(), b.get()};
  Buffer* const back[] = {b.get(), a.get()};
  const PassLaunch one{twice.get(), forth, {1, 1, 1}}, two{twice.get(), forth, {2, 1, 1}},
      three{thrice.get(), forth, {1, 1, 1}};
  const auto expect = [&](const PassLaunch& launch, std::uint32_t first, std::uint32_t second) {
    wait(submit({&launch, 1}));
    const auto values = words_in(*b);
    CHECK(values[0] == first);
    CHECK(values[lanes] == second);
  };
  for (int round = 0; round < 3; ++round) {
    const std::vector<std::uint32_t> zeros(4 * lanes, 0);
    REQUIRE(b->write(0, std::as_bytes(std::span(zeros))).ok());
    expect(one, 3, 0);
    expect(three, 8, 0);
    expect(two, 3, 3);
  }
  // a 1, b 3, a 7, b 15: each pass sees the one before, again and again.
  const std::array<PassLaunch, 3> chain{one, PassLaunch{twice.get(), back, {1, 1, 1}}, one};
  for (int round = 0; round < 3; ++round) {
    const std::vector<std::uint32_t> ones(4 * lanes, 1);
    REQUIRE(a->write(0, std::as_bytes(std::span(ones))).ok());
    wait(submit(chain));
    CHECK(words_in(*b)[0] == 15);
    CHECK(words_in(*a)[0] == 7);
  }
}

TEST_CASE("vulkan: equal dispatches that are in flight together each run", "[vulkan][recorded]") {
  if (!Vulkan::instance().usable()) return;
  const auto program = built(adding_one());
  std::vector<std::unique_ptr<Buffer>> sums;
  std::vector<std::array<Buffer*, 1>> bindings;
  for (int i = 0; i < 4; ++i) {
    sums.push_back(buffer_of(lanes, 0));
    bindings.push_back({sums.back().get()});
  }
  std::vector<PassLaunch> passes;
  for (std::size_t i = 0; i < 32; ++i) {
    passes.push_back({program.get(), bindings[i % 4], {1, 1, 1}});
    passes.back().waits = i % 4 == 0;
  }
  std::vector<std::uint64_t> values;
  for (int i = 0; i < 20; ++i) values.push_back(submit(passes));
  for (const std::uint64_t value : values) wait(value);
  for (const auto& sum : sums) CHECK(words_in(*sum) == std::vector<std::uint32_t>(lanes, 160));
}

TEST_CASE("vulkan: batches of launches in any order compute what the host computes", "[vulkan][recorded]") {
  if (!Vulkan::instance().usable()) return;
  KernelSource other = stepping();
  other.text.replace(other.text.find("* 2u + 1u"), 9, "* 3u + 5u");
  const std::array<std::unique_ptr<Program>, 2> programs{built(stepping()), built(other)};
  constexpr std::size_t count = 5;
  std::array<std::unique_ptr<Buffer>, count> buffers;
  for (auto& buffer : buffers) buffer = buffer_of(2 * lanes, 0);
  std::mt19937 random(7);
  for (int batch = 0; batch < 6; ++batch) {
    INFO("batch " << batch);
    struct Launch {
      std::size_t program, from, to;
      std::uint32_t groups;
    };
    std::vector<Launch> launches;
    for (int i = 0; i < 300; ++i) {
      const std::size_t from = random() % count;
      // The first batches repeat a sequence, with one launch that differs.
      launches.push_back(batch < 2 && i >= 7 && i != 150
                             ? launches[static_cast<std::size_t>(i) - 7]
                             : Launch{random() % 2, from, (from + 1 + random() % (count - 1)) % count,
                                      static_cast<std::uint32_t>(1 + random() % 2)});
    }
    // An array of its own for each launch: equal arrays at other addresses.
    std::vector<std::array<Buffer*, 2>> bindings;
    for (const Launch& each : launches) bindings.push_back({buffers[each.from].get(), buffers[each.to].get()});
    std::vector<PassLaunch> passes;
    for (std::size_t i = 0; i < launches.size(); ++i) {
      passes.push_back({programs[launches[i].program].get(), bindings[i], {launches[i].groups, 1, 1}});
    }
    std::array<std::array<std::uint32_t, 2>, count> expected{};  // a word of each group of lanes
    for (std::size_t i = 0; i < count; ++i) {
      expected[i] = {static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i)};
      const std::vector<std::uint32_t> values(2 * lanes, static_cast<std::uint32_t>(i));
      REQUIRE(buffers[i]->write(0, std::as_bytes(std::span(values))).ok());
    }
    for (int round = 0; round < 4; ++round) {
      INFO("round " << round);
      for (const Launch& each : launches) {
        for (std::uint32_t group = 0; group < each.groups; ++group) {
          const std::uint32_t x = expected[each.from][group];
          expected[each.to][group] = each.program == 0 ? x * 2 + 1 : x * 3 + 5;
        }
      }
      wait(submit(passes));
      for (std::size_t i = 0; i < count; ++i) {
        const auto values = words_in(*buffers[i]);
        CHECK(values[0] == expected[i][0]);
        CHECK(values[lanes] == expected[i][1]);
      }
    }
  }
}

TEST_CASE("vulkan: more dispatches than commands are stored for repeat, each with its own results",
          "[vulkan][recorded]") {
  if (!Vulkan::instance().usable()) return;
  const auto program = built(stepping());
  constexpr std::uint32_t dispatches = 140;
  const auto from = buffer_of(dispatches * lanes, 4), to = buffer_of(dispatches * lanes, 0);
  Buffer* const bindings[] = {from.get(), to.get()};
  // 100 that repeat, then all: the first are stored, and then some of them give way.
  for (const std::uint32_t most : {100U, 100U, 100U, dispatches, dispatches, dispatches}) {
    for (std::uint32_t groups = 1; groups <= most; ++groups) {
      INFO("groups " << groups);
      const std::vector<std::uint32_t> zeros(dispatches * lanes, 0);
      REQUIRE(to->write(0, std::as_bytes(std::span(zeros))).ok());
      const PassLaunch launch{program.get(), bindings, {groups, 1, 1}};
      wait(submit({&launch, 1}));
      const auto values = words_in(*to);
      REQUIRE(values[(groups - 1) * lanes] == 9);
      if (groups < dispatches) REQUIRE(values[groups * lanes] == 0);
    }
  }
}

TEST_CASE("vulkan: a grid behind that of an indirect launch is checked", "[vulkan][recorded]") {
  if (!Vulkan::instance().usable()) return;
  const std::uint32_t most = device().info().max_grid[0];
  if (most == 0xffffffff) return;
  KernelSource source;
  source.dialect = Dialect::glsl;
  source.text =
      "#version 430\n"
      "layout(local_size_x = 1) in;\n"
      "layout(std430, binding = 0) buffer U { uint counts[3]; uint runs; };\n"
      "void main() { runs = 1u; }\n";
  source.bindings = {Access::read_write};
  const auto program = built(source);
  const auto buffer = buffer_of(4, 1);
  Buffer* const bindings[] = {buffer.get()};
  PassLaunch indirect{program.get(), bindings, {most + 1, 1, 1}};
  indirect.indirect = IndirectGrid{0, 0};
  const PassLaunch good{program.get(), bindings, {1, 1, 1}}, bad{program.get(), bindings, {most + 1, 1, 1}};
  const std::array<PassLaunch, 2> accepted{good, indirect};
  wait(submit(accepted));
  const std::array<PassLaunch, 3> refused{good, indirect, bad};
  const auto value = device().submit({refused});
  REQUIRE_FALSE(value.has_value());
  CHECK(value.error().code == StatusCode::invalid_argument);
}

namespace {

// x[i] = gain, a uniform that `declared` declares.
struct Gain {
  std::unique_ptr<Program> program;
  std::vector<ResourceSource> sources;

  explicit Gain(const std::string& declared) {
    UserKernelSpec kernel;
    kernel.dialect = Dialect::glsl;
    kernel.path = "gain.comp";
    kernel.text = "#version 450\nlayout(local_size_x = 64) in;\n" + declared +
                  "layout(std430, binding = 0) buffer X { float x[]; };\n"
                  "void main() { x[gl_GlobalInvocationID.x] = gain; }\n";
    UserKernelSpec::Binding binding;
    binding.name = "X";
    binding.access = Access::read_write;
    binding.bytes = lanes * sizeof(float);
    kernel.bindings = {binding};
    UserKernelSpec::Uniform uniform;
    uniform.name = declared.find("Block") == std::string::npos ? "gain" : "Block.gain";
    uniform.type = UserKernelSpec::Uniform::Type::number;
    kernel.uniforms = {uniform};
    KernelSource source;
    source.dialect = Dialect::glsl;
    source.text = kernel.text;
    source.bindings = {Access::read_write, Access::read};
    source.files = {kernel.path};
    program = built(source);
    auto provided = provide(*program->interface(source), kernel);
    INFO((provided ? std::string() : provided.error().text()));
    REQUIRE(provided.has_value());
    sources = std::move(*provided);
  }
};

constexpr const char* block_of_gain = "layout(std140, binding = 1) uniform Block { float gain; };\n";

void give(Buffer& uniforms, double gain) { REQUIRE(uniforms.write(0, std::as_bytes(std::span(&gain, 1))).ok()); }

void check_all_are(Buffer& x, double gain) {
  std::vector<float> found(lanes);
  REQUIRE(x.read(0, std::as_writable_bytes(std::span(found))).ok());
  CHECK(found == std::vector<float>(lanes, static_cast<float>(gain)));
}

}  // namespace

TEST_CASE("vulkan: an equal dispatch takes the values that its uniforms have then", "[vulkan][recorded]") {
  if (!Vulkan::instance().usable()) return;
  for (const char* declared :
       {"uniform float gain;\n", "layout(push_constant) uniform Push { float gain; };\n", block_of_gain}) {
    INFO(declared);
    const Gain kernel(declared);
    const auto x = buffer_of(lanes, 0), uniforms = buffer_of(2, 0, BufferUsage::upload);
    Buffer* const bindings[] = {x.get(), uniforms.get()};
    const PassLaunch launch{kernel.program.get(), bindings, {1, 1, 1}, kernel.sources};
    for (const double gain : {1.5, 2.5, 3.5}) {
      give(*uniforms, gain);
      wait(submit({&launch, 1}));
      check_all_are(*x, gain);
    }
  }
}

TEST_CASE("vulkan: uniforms have the values that a submission in flight writes", "[vulkan][recorded]") {
  if (!Vulkan::instance().usable()) return;
  const Gain kernel("uniform float gain;\n");
  KernelSource source;
  source.dialect = Dialect::glsl;
  source.text =
      "#version 430\n"
      "layout(local_size_x = 1) in;\n"
      "layout(std430, binding = 0) buffer U { uint low, high, x; };\n"
      "void main() {\n"
      "  uint v = x;\n"
      "  for (uint i = 0u; i < 300000u; ++i) v = (v ^ v >> 15) * 2654435761u + i;\n"
      "  x = v;\n"
      "  low = 0u;\n"
      "  high = 0x40000000u;  // 2.0 as a double\n"
      "}\n";
  source.bindings = {Access::read_write};
  const auto writing = built(source);
  for (const BufferUsage usage : {BufferUsage::upload, BufferUsage::readback, BufferUsage::storage}) {
    INFO("usage " << static_cast<int>(usage));
    const auto x = buffer_of(lanes, 0), uniforms = buffer_of(4, 0, usage);
    give(*uniforms, 1);
    Buffer* const written[] = {uniforms.get()};
    Buffer* const bindings[] = {x.get(), uniforms.get()};
    const PassLaunch passes[] = {{writing.get(), written, {1, 1, 1}},
                                 {kernel.program.get(), bindings, {1, 1, 1}, kernel.sources}};
    const std::uint64_t first = submit(std::span(passes).first(1)), second = submit(std::span(passes).last(1));
    wait(second);
    wait(first);
    check_all_are(*x, 2);
    const auto together = device().submit({passes});
    REQUIRE_FALSE(together.has_value());
    CHECK(together.error().code == StatusCode::unsupported);
    CHECK_THAT(together.error().message, Catch::Contains("uniform float gain: an earlier pass writes its tensor"));
  }
}

TEST_CASE("vulkan: uniforms have their values after a dispatch with more of them", "[vulkan][recorded]") {
  if (!Vulkan::instance().usable()) return;
  const Gain kernel(block_of_gain);
  constexpr std::size_t most = 300;  // blocks: more than a page of values
  std::vector<std::unique_ptr<Buffer>> xs, uniforms;
  std::vector<std::array<Buffer*, 2>> bindings;
  for (std::size_t i = 0; i < most; ++i) {
    xs.push_back(buffer_of(lanes, 0));
    uniforms.push_back(buffer_of(2, 0, BufferUsage::upload));
    bindings.push_back({xs[i].get(), uniforms[i].get()});
  }
  double gain = 0;
  for (const std::size_t passes : {std::size_t{1}, std::size_t{1}, most, most, std::size_t{1}, most}) {
    INFO(passes << " passes");
    std::vector<PassLaunch> launches;
    gain += 1000;
    for (std::size_t i = 0; i < passes; ++i) {
      give(*uniforms[i], gain + static_cast<double>(i));
      launches.push_back({kernel.program.get(), bindings[i], {1, 1, 1}, kernel.sources});
    }
    wait(submit(launches));
    for (std::size_t i = 0; i < passes; ++i) check_all_are(*xs[i], gain + static_cast<double>(i));
  }
}

}  // namespace kiln::vulkan

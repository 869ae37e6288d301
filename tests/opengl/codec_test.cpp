#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "opengl/support/kernels.hpp"
#include "support/own_process.hpp"

namespace kiln::support {
namespace {

ProgramBinary serialized(Device& device, const Program& program) {
  auto binary = device.serialize(program);
  INFO((binary ? std::string() : binary.error().text()));
  REQUIRE(binary.has_value());
  return std::move(binary).value();
}

void check_saxpy(Device& device, const Program& program) {
  const auto x = buffer_of(device, std::vector<float>(128, 2.0f));
  const auto y = buffer_of(device, std::vector<float>(128, 1.0f), BufferUsage::readback);
  const auto fence = run(device, program, {x.get(), y.get()}, {2, 1, 1});
  INFO((fence ? std::string() : fence.error().text()));
  REQUIRE(fence.has_value());
  CHECK(contents(*y) == std::vector<float>(128, 6.0f));
}

// Some lines of text and an error on the line with the mark; the number of that line is told by the compiler.
KernelSource with_many_errors() {
  KernelSource source = saxpy();
  source.constants.push_back({"ANOTHER", "1"});
  source.text =
      "// a comment before the version\n"
      "#version 430\n"
      "layout(local_size_x = 1) in;\n"
      "void main() {\n"
      "  int first = undeclared_one;\n";
  for (int i = 0; i < 200; ++i) {
    source.text += "  int v" + std::to_string(i) + " = undeclared_in_the_middle_" + std::to_string(i) + ";\n";
  }
  source.text += "  int last = undeclared_at_the_end;\n}\n";
  return source;
}

}  // namespace

TEST_CASE("opengl: a build error holds the whole log, with the user's line numbers", "[opengl][codec]") {
  OpenGl gl;
  if (!gl.usable()) return;
  const auto program = gl.device().build(with_many_errors());
  REQUIRE_FALSE(program.has_value());
  CHECK(program.error().code == StatusCode::invalid_argument);
  const std::string& log = program.error().message;
  CHECK_THAT(log, Catch::Contains("opengl:0"));
  CHECK_THAT(log, Catch::Contains("undeclared_one"));
  CHECK_THAT(log, Catch::Contains("undeclared_in_the_middle_150"));
  CHECK_THAT(log, Catch::Contains("undeclared_at_the_end"));
  CHECK_THAT(log, Catch::Contains(":5(") || Catch::Contains("(5)") || Catch::Contains(":5:"));
  CHECK_THAT(log, Catch::Contains(":206(") || Catch::Contains("(206)") || Catch::Contains(":206:"));
}

TEST_CASE("opengl: what is wrong with a source is named before or by the compiler", "[opengl][codec]") {
  OpenGl gl;
  if (!gl.usable()) return;
  KernelSource other_size = saxpy();
  other_size.workgroup = {32, 1, 1};
  const auto size = gl.device().build(other_size);
  REQUIRE_FALSE(size.has_value());
  CHECK_THAT(size.error().message, Catch::Contains("64x1x1") && Catch::Contains("32x1x1"));
  KernelSource many = saxpy();
  many.bindings.resize(gl.device().info().max_bindings + 1, Access::read);
  const auto bindings = gl.device().build(many);
  REQUIRE_FALSE(bindings.has_value());
  CHECK(bindings.error().code == StatusCode::invalid_argument);
  CHECK_THAT(bindings.error().message, Catch::Contains(std::to_string(gl.device().info().max_bindings)));
}

TEST_CASE("opengl: builds and loads are counted at the driver's call; opening counts none", "[opengl][codec]") {
  OpenGl gl;
  if (!gl.usable()) return;
  Device& device = gl.device();
  const WorkCounters& counters = gl.plugin().counters();
  CHECK(counters.builds == 0);
  CHECK(counters.prepared == 0);
  const auto program = build(device, saxpy());
  if (!device.info().serializes) {
    CHECK(counters.prepared == 1);
    return;
  }
  CHECK(counters.builds == 1);
  CHECK_FALSE(device.build(with_many_errors()).has_value());
  CHECK(counters.builds == 2);
  const ProgramBinary binary = serialized(device, *program);
  CHECK(counters.loads == 0);
  REQUIRE(device.load(saxpy(), binary).has_value());
  CHECK(counters.loads == 1);
  CHECK(counters.builds == 2);
}

TEST_CASE("opengl: a loaded program is linked and computes", "[opengl][codec]") {
  OpenGl gl;
  if (!gl.usable()) return;
  Device& device = gl.device();
  if (!device.info().serializes) return;
  auto built = build(device, saxpy());
  check_saxpy(device, *built);
  const ProgramBinary binary = serialized(device, *built);
  CHECK(binary.format.substr(0, 4) == "gl2:");
  CHECK(binary.format.size() == 8);
  built.reset();
  const auto loaded = device.load(saxpy(), binary);
  INFO((loaded ? std::string() : loaded.error().text()));
  REQUIRE(loaded.has_value());
  check_saxpy(device, **loaded);
  CHECK(serialized(device, **loaded).bytes.size() == binary.bytes.size());  // and can be kept again
}

TEST_CASE("opengl: another process loads what this one built", "[opengl][codec]") {
  OpenGl gl;
  if (!gl.usable()) return;
  if (!gl.device().info().serializes) return;
  const auto program = build(gl.device(), saxpy());
  const ProgramBinary binary = serialized(gl.device(), *program);
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("kiln-test-binary-" + std::to_string(getpid()));
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(binary.bytes.data()), static_cast<std::streamsize>(binary.bytes.size()));
  const ChildResult child =
      run_child("[.child_load]", {{"KILN_TEST_BINARY", file.string()}, {"KILN_TEST_FORMAT", binary.format}});
  std::filesystem::remove(file);
  INFO(child.output);
  CHECK(child.status == 0);
}

TEST_CASE("opengl: child: load a program that another process built", "[.child_load]") {
  OpenGl gl;
  REQUIRE(gl.usable());
  REQUIRE(std::getenv("KILN_TEST_BINARY") != nullptr);
  std::ifstream file(std::getenv("KILN_TEST_BINARY"), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  ProgramBinary binary{std::getenv("KILN_TEST_FORMAT"), {}};
  for (const char byte : bytes) binary.bytes.push_back(static_cast<std::byte>(byte));
  const auto loaded = gl.device().load(saxpy(), binary);
  INFO((loaded ? std::string() : loaded.error().text()));
  REQUIRE(loaded.has_value());
  CHECK(gl.plugin().counters().builds == 0);
  CHECK(gl.plugin().counters().loads == 1);
  check_saxpy(gl.device(), **loaded);
}

TEST_CASE("opengl: a damaged header, a cut or another format is refused by type", "[opengl][codec]") {
  OpenGl gl;
  if (!gl.usable()) return;
  Device& device = gl.device();
  if (!device.info().serializes) return;
  const auto program = build(device, saxpy());
  const ProgramBinary binary = serialized(device, *program);
  // Only the header is altered: what stands behind its checksum is not a test's to feed to a driver.
  for (const std::size_t at : {0u, 3u, 4u, 13u, 23u, 24u, 28u, 31u}) {
    INFO("byte " << at);
    ProgramBinary damaged = binary;
    damaged.bytes[at] ^= std::byte{0x41};
    const auto loaded = device.load(saxpy(), damaged);
    REQUIRE_FALSE(loaded.has_value());
    CHECK(loaded.error().code == StatusCode::corrupt);
    CHECK_THAT(loaded.error().message, Catch::Contains(binary.format) && Catch::Contains("rejected"));
  }
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{31}, binary.bytes.size() - 1}) {
    INFO(size << " bytes");
    ProgramBinary cut = binary;
    cut.bytes.resize(size);
    const auto loaded = device.load(saxpy(), cut);
    REQUIRE_FALSE(loaded.has_value());
    CHECK(loaded.error().code == StatusCode::corrupt);
  }
  ProgramBinary foreign = binary;
  foreign.format = "gl2:1234";
  const auto loaded = device.load(saxpy(), foreign);
  REQUIRE_FALSE(loaded.has_value());
  CHECK(loaded.error().code == StatusCode::unsupported);
  CHECK_THAT(loaded.error().message, Catch::Contains("gl2:1234") && Catch::Contains(binary.format));
  check_saxpy(device, *program);  // refusals leave nothing behind
}

TEST_CASE("opengl: a program outlives its device and may be dropped on another thread", "[opengl][codec]") {
  OpenGl gl;
  if (!gl.usable()) return;
  auto device = gl.plugin().open("opengl:0");
  auto first = build(*device, saxpy());
  auto second = build(*device, spin(1));
  check_saxpy(*device, *first);
  std::thread([&first] { first.reset(); }).join();
  device.reset();
  std::thread([&second] { second.reset(); }).join();
  CHECK(second == nullptr);
}

}  // namespace kiln::support

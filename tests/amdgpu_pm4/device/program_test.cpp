#include "amdgpu_pm4/device/program.hpp"

#include <catch2/catch.hpp>

namespace kiln::amdgpu_pm4 {
namespace {

std::vector<std::byte> some_bytes() {
  std::vector<std::byte> bytes(1000);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7);
  return bytes;
}

ProgramBinary some_binary() {
  const auto object = some_bytes();
  return make_binary(Target::gfx1100, 5, sha256(std::span<const std::byte>(object)), object);
}

}  // namespace

TEST_CASE("program binary: bytes come back under their digest") {
  const ProgramBinary binary = some_binary();
  CHECK(binary.format == "amdgpu:gfx1100:v5");
  CHECK(binary.bytes.size() == 1032);
  const auto opened = open_binary(binary, Target::gfx1100);
  REQUIRE(opened.has_value());
  const auto object = some_bytes();
  CHECK(std::equal(opened->object.begin(), opened->object.end(), object.begin(), object.end()));
  CHECK(opened->digest == sha256(std::span<const std::byte>(object)));
}

TEST_CASE("program binary: another target's or another plugin's is unsupported") {
  ProgramBinary binary = some_binary();
  const auto other = open_binary(binary, Target::gfx1030);
  REQUIRE_FALSE(other.has_value());
  CHECK(other.error().code == StatusCode::unsupported);
  CHECK(other.error().message ==
        "program binary has format 'amdgpu:gfx1100:v5', expected one of amdgpu:gfx1030:v4, amdgpu:gfx1030:v5");
  binary.format = "gl:875f";
  CHECK(open_binary(binary, Target::gfx1100).error().code == StatusCode::unsupported);
}

TEST_CASE("program binary: every flipped bit and every cut is seen") {
  const ProgramBinary binary = some_binary();
  for (std::size_t at = 0; at < binary.bytes.size(); at += 13) {
    ProgramBinary damaged = binary;
    damaged.bytes[at] ^= std::byte{0x20};
    const auto opened = open_binary(damaged, Target::gfx1100);
    REQUIRE_FALSE(opened.has_value());
    CHECK(opened.error().code == StatusCode::corrupt);
  }
  for (const std::size_t size : {0, 1, 31, 32, 33, 1031}) {
    ProgramBinary cut = binary;
    cut.bytes.resize(size);
    const auto opened = open_binary(cut, Target::gfx1100);
    REQUIRE_FALSE(opened.has_value());
    CHECK(opened.error().code == StatusCode::corrupt);
  }
}

}  // namespace kiln::amdgpu_pm4

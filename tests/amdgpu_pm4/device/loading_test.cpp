// What of a code object fits its source, where it lies in device memory, and what only builds.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "amdgpu_pm4/code_object/object_file.hpp"
#include "amdgpu_pm4/device/build_device.hpp"
#include "amdgpu_pm4/device/program.hpp"
#include "device/fake_winsys.hpp"
#include "recipe/sample.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

KernelSource source_of(std::string entry, std::vector<Access> bindings, std::array<std::uint32_t, 3> workgroup = {}) {
  KernelSource source;
  source.dialect = Dialect::opencl_c;
  source.entry = std::move(entry);
  source.bindings = std::move(bindings);
  source.workgroup = workgroup;
  return source;
}

std::string refusal_of_object(const char* file, const KernelSource& source, Target target = Target::gfx1100) {
  const auto checked = check_kernel(source, ObjectFile::named(file).bytes, target);
  return checked ? std::string("it fits") : checked.error().text();
}

const std::vector<Access> three = {Access::read, Access::write, Access::read};

}  // namespace

TEST_CASE("loading: a kernel fits its source, or both sides are named") {
  const char* const file = "readable-gfx1100";
  CHECK(refusal_of_object(file, source_of("saxpy", three)) == "it fits");
  CHECK(refusal_of_object(file, source_of("main", three)) == "it fits");
  CHECK(refusal_of_object(file, source_of("saxpy", three, {64, 1, 1})) == "it fits");
  CHECK(refusal_of_object(file, source_of("saxpy", three), Target::gfx1030) ==
        "unsupported: the code object is for gfx1100, expected gfx1030");
  CHECK(refusal_of_object(file, source_of("work", three)) ==
        "invalid_argument: the code object has no kernel 'work': expected one of saxpy");
  CHECK(refusal_of_object("readable-relocated", source_of("main", three)) ==
        "invalid_argument: the code object has no kernel 'main': expected one of first, second");
  CHECK(
      refusal_of_object(file, source_of("saxpy", three, {32, 1, 1})) ==
      "invalid_argument: workgroup: kernel 'saxpy' declares 64x1x1 by reqd_work_group_size, expected 32x1x1 as in the "
      "job");
  CHECK(
      refusal_of_object(file, source_of("saxpy", three, {64, 1, 2})) ==
      "invalid_argument: workgroup: kernel 'saxpy' declares 64x1x1 by reqd_work_group_size, expected 64x1x2 as in the "
      "job");
  for (const std::size_t count : {0u, 2u, 4u}) {
    std::vector<Access> bindings = three;
    bindings.resize(count, Access::read);
    CHECK(refusal_of_object(file, source_of("saxpy", bindings)) ==
          "invalid_argument: kernel 'saxpy' takes 3 arguments, found " + std::to_string(count) +
              " bindings, without local memory: (float* x, float* y, float a)");
  }
  for (const Access written : {Access::write, Access::read_write}) {
    CHECK(refusal_of_object(file, source_of("saxpy", {Access::read, Access::write, written})) ==
          "invalid_argument: kernel 'saxpy' takes 'a' by value: binding 2 is written, expected a read-only binding");
  }
  CHECK(refusal_of_object("readable-not-offered", source_of("unusual", {})) ==
        "unsupported: kernel 'unusual' needs dispatch_pointer, which is not supported");
}

TEST_CASE("loading: the interface of a kernel is its arguments in order, hidden ones left out") {
  const auto checked =
      check_kernel(source_of("saxpy", three), ObjectFile::named("readable-gfx1100").bytes, Target::gfx1100);
  REQUIRE(checked);
  CHECK(checked->by_value == std::vector<std::uint32_t>{0, 0, 4});
  CHECK(checked->workgroup == std::array<std::uint32_t, 3>{64, 1, 1});
  const std::vector<ProgramResource>& resources = checked->interface.resources;
  REQUIRE(resources.size() == 3);
  const char* const names[] = {"x", "y", "a"};
  const char* const types[] = {"float*", "float*", "float"};
  for (std::uint32_t i = 0; i < 3; ++i) {
    CHECK(resources[i].name == names[i]);
    CHECK(resources[i].type == types[i]);
    CHECK(resources[i].number == i);
    CHECK(resources[i].element == ElementType::f32);
    CHECK(resources[i].kind == (i == 2 ? ResourceKind::value_argument : ResourceKind::buffer_argument));
    CHECK(resources[i].bytes == (i == 2 ? 4 : 0));
    CHECK(resources[i].array_stride == 0);
  }
  const auto second = check_kernel(source_of("second", {Access::write}, {64, 1, 1}),
                                   ObjectFile::named("readable-relocated").bytes, Target::gfx1100);
  INFO((second ? std::string() : second.error().text()));
  REQUIRE(second);
  CHECK(second->by_value.empty());
  CHECK(second->interface.resources.size() == 1);
}

TEST_CASE("loading: an image is copied, with its own addresses in it, in front of what is fetched ahead") {
  const auto gpu = std::make_shared<fake::Gpu>();
  const auto winsys = fake::make_winsys(gpu);
  ProgramLoader loader(*winsys, Target::gfx1100, navi31);
  const ObjectFile file = ObjectFile::named("readable-relocated");
  const CodeObject object = file.read();
  const Digest digest = sha256(std::span<const std::byte>(file.bytes));
  const auto loaded = loader.load(source_of("second", {Access::write}, {64, 1, 1}), file.bytes, digest);
  INFO((loaded ? std::string() : loaded.error().text()));
  REQUIRE(loaded);
  const LoadedKernel& kernel = **loaded;
  CHECK(kernel.code->access() == GpuAccess::read_execute);
  CHECK(kernel.code->bytes() == (object.image.size() + 256 + 4095) / 4096 * 4096);
  CHECK(kernel.object == file.bytes);
  CHECK(kernel.digest == digest);
  CHECK(kernel.version == 5);
  CHECK(kernel.quarantine_key == sha256(digest.hex() + "second"));
  CHECK(kernel.name() == "kernel 'second' (program " + digest.hex().substr(0, 12) + ")");
  std::vector<std::byte> expected = object.image;
  REQUIRE(object.address_words.size() == 2);
  for (const AddressWord& word : object.address_words) {
    const std::uint64_t address = kernel.code->address() + word.target;
    std::memcpy(expected.data() + word.offset, &address, 8);
  }
  CHECK(std::ranges::equal(kernel.code->mapped().first(expected.size()), expected));
  // Of two kernels with scratch memory the second shares that of the first.
  REQUIRE(kernel.scratch != nullptr);
  const auto other = loader.load(source_of("second", {Access::write}, {32, 1, 1}), file.bytes, digest);
  REQUIRE(other);
  CHECK((*other)->scratch == kernel.scratch);
  CHECK((*other)->code->address() != kernel.code->address());
  const Pm4Program program(*winsys, *loaded);
  CHECK(program.charge() == file.bytes.size() + kernel.code->bytes());
  CHECK(program.number() != Pm4Program(*winsys, *loaded).number());
  gpu->allocation_error = unavailable("no memory");
  CHECK(loader.load(source_of("second", {Access::write}, {64, 1, 1}), file.bytes, digest).error().text() ==
        "unavailable: no memory");
  ProgramLoader fresh(*winsys, Target::gfx1100, navi31);
  CHECK(fresh.load(source_of("second", {Access::write}, {64, 1, 1}), file.bytes, digest).error().text() ==
        "unavailable: scratch memory: no memory");
}

TEST_CASE("loading: a binary has a digest and at least a byte behind it, in one of two versions") {
  const std::vector<std::byte> one{std::byte{5}};
  const Digest digest = sha256(std::span<const std::byte>(one));
  CHECK(binary_format(Target::gfx1030, 4) == "amdgpu:gfx1030:v4");
  for (const std::uint32_t version : {4u, 5u}) {
    const ProgramBinary binary = make_binary(Target::gfx1101, version, digest, one);
    CHECK(binary.bytes.size() == 33);
    const auto opened = open_binary(binary, Target::gfx1101);
    REQUIRE(opened);
    CHECK(opened->object.size() == 1);
    CHECK(opened->object[0] == std::byte{5});
  }
  for (const std::uint32_t version : {3u, 6u}) {
    CHECK(open_binary(make_binary(Target::gfx1101, version, digest, one), Target::gfx1101).error().text() ==
          "unsupported: program binary has format 'amdgpu:gfx1101:v" + std::to_string(version) +
              "', expected one of amdgpu:gfx1101:v4, amdgpu:gfx1101:v5");
  }
  ProgramBinary bare = make_binary(Target::gfx1101, 5, digest, one);
  bare.bytes.resize(32);
  CHECK(open_binary(bare, Target::gfx1101).error().text() ==
        "corrupt: program binary of 32 bytes: expected at least a digest and a code object");
  const std::vector<std::byte> other{std::byte{6}};
  CHECK(open_binary(make_binary(Target::gfx1101, 5, digest, other), Target::gfx1101).error().text() ==
        "corrupt: program binary of 33 bytes: digest is " + sha256(std::span<const std::byte>(other)).hex() +
            ", expected " + digest.hex());
}

TEST_CASE("loading: a device that only builds says of everything else that it cannot") {
  const auto chip = identify_chip(143, 0x3c);
  REQUIRE(chip);
  Compiler compiler{"corpus", [](const KernelSource& source, Target target) -> Result<std::vector<std::byte>> {
                      CHECK(target == Target::gfx1030);
                      if (source.text == "wrong") return invalid_argument("no such text");
                      return ObjectFile::named("readable-gfx1030").bytes;
                    }};
  auto opened = BuildDevice::open(*chip, compiler);
  REQUIRE(opened);
  Device& device = **opened;
  CHECK(device.info().id == "amdgpu:gfx1032");
  CHECK(device.info().name == "AMD Navi23 (gfx1032)");
  CHECK(device.info().speed_identity.empty());
  CHECK(device.info().max_buffer_bytes == 0);
  CHECK(device.info().roof_gflops == 0);
  KernelSource source = source_of("saxpy", three);
  const auto program = device.build(source);
  REQUIRE(program);
  CHECK((*program)->charge() == ObjectFile::named("readable-gfx1030").bytes.size());
  const auto binary = device.serialize(**program);
  REQUIRE(binary);
  CHECK(device.load(source, *binary));
  source.entry = "other";
  CHECK(device.load(source, *binary).error().text() ==
        "invalid_argument: amdgpu:gfx1032: the code object has no kernel 'other': expected one of saxpy");
  CHECK(device.build(source).error().text() ==
        "invalid_argument: amdgpu:gfx1032: the code object has no kernel 'other': expected one of saxpy");
  source.text = "wrong";
  CHECK(device.build(source).error().text() == "invalid_argument: amdgpu:gfx1032: no such text");
  source.dialect = Dialect::code_object;
  CHECK(device.build(source).error().text() == "unsupported: amdgpu:gfx1032: source in code_object, expected opencl_c");
  const std::string cannot = "unsupported: amdgpu:gfx1032: this device only builds programs and cannot run them";
  CHECK(device.create_buffer({}).error().text() == cannot);
  const PassLaunch nothing{program->get(), {}, PassLaunch::nothing}, something{program->get(), {}, {1, 1, 1}};
  const PassLaunch both[] = {nothing, something};
  CHECK(device.submit({both}).error().text() == cannot);
  for (std::uint64_t value = 1; value <= 2; ++value) {
    const std::string missing =
        "invalid_argument: amdgpu:gfx1032: submission " + std::to_string(value) + " does not exist";
    CHECK(device.wait(value, Deadline::never()).error().text() == missing);
    CHECK(*device.submit({std::span(&nothing, 1)}) == value);
    CHECK(device.wait(value, Deadline::never()));
  }
  CHECK(device.wait(0, Deadline::never()).error().text() ==
        "invalid_argument: amdgpu:gfx1032: submission 0 does not exist");
}

TEST_CASE("loading: without a compiler each compilation says why, and nothing is built ahead") {
  const Compiler none = compiler_of(unavailable("no clang"), std::chrono::seconds(1));
  CHECK(none.identity == "none");
  CHECK(none.compile({}, Target::gfx1100).error().text() == "unavailable: no compiler: no clang");
  const auto chip = identify_chip(145, 1);
  CHECK(BuildDevice::open(*chip, none).error().text() == "unavailable: target gfx1100: no compiler: no clang");
  ClangAheadCompiler ahead({}, {});
  CHECK(ahead.targets() == std::vector<std::string>{"gfx1030", "gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150",
                                                    "gfx1151", "gfx1152", "gfx1200", "gfx1201"});
  CHECK(ahead.open("gfx1200").error().text() ==
        "unsupported: target 'gfx1200' is not supported, expected one of gfx1030, gfx1031, gfx1032, gfx1034, gfx1100, "
        "gfx1102, gfx1101, gfx1103");
  CHECK(ahead.compile({"", "k.cl", "gfx906"}).error().text() ==
        "invalid_argument: target 'gfx906': expected one of gfx1030, gfx1100, gfx1101, gfx1102, gfx1103, gfx1150, "
        "gfx1151, gfx1152, gfx1200, gfx1201");
}

}  // namespace kiln::amdgpu_pm4

// Clang within the process, where its module was built: the same bytes and the same words as the command's.
#include <catch2/catch.hpp>
#include <thread>

#include "amdgpu_pm4/toolchain/fake_compiler.hpp"
#include "amdgpu_pm4/toolchain/in_process_clang.hpp"
#include "amdgpu_pm4/toolchain/toolchain.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

using Catch::Contains;
using Catch::StartsWith;

const std::filesystem::path module_path = KILN_BINARY_DIR "/lib/kiln/libkiln_clang.so";

class OneNote final : public DriverNotes {
 public:
  std::optional<std::vector<std::byte>> find(std::string_view name) noexcept override {
    return kept && name == kept_name ? kept : std::nullopt;
  }
  void keep(std::string_view name, std::span<const std::byte> bytes) noexcept override {
    kept_name = name;
    kept.emplace(bytes.begin(), bytes.end());
  }
  std::string kept_name;
  std::optional<std::vector<std::byte>> kept;
};

std::unique_ptr<InProcessClang> in_process(DriverNotes* notes = nullptr) {
  auto clang = InProcessClang::create(module_path, notes, find_device_library("auto", nullptr));
  if (clang) return std::move(*clang);
  WARN("skipped: " << clang.error().message);
  return nullptr;
}

constexpr const char* text = R"(
__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void kiln_kernel(__global const float4* restrict x, __global float4* restrict y) {
  __local float s[64];
  int i = (int)get_global_id(0), l = (int)get_local_id(0);
  s[l] = x[i].x;
  barrier(CLK_LOCAL_MEM_FENCE);
  float4 sum = (float4)(0.0f);
  for (int k = 0; k < 64; ++k) sum += x[k] * s[k];
  y[i] = fmax(sum, 0.0f) + exp(sum);
}
)";

}  // namespace

TEST_CASE("in process: a module that is not there is unavailable") {
  CHECK_THAT(InProcessClang::create("/nowhere/module.so", nullptr, {}).error().text(),
             StartsWith("unavailable: Clang module /nowhere/module.so was not found"));
  const FakeCompiler scripts;
  CHECK_THAT(InProcessClang::create(scripts.write("module.so", "no library"), nullptr, {}).error().text(),
             StartsWith("unavailable: Clang cannot be loaded: "));
}

TEST_CASE("in process: the same bytes and the same identity as the command") {
  const auto here = in_process();
  const auto child = clang_of_this_machine();
  if (here == nullptr || child == nullptr) return;
  CHECK(here->version() == child->version());
  CHECK(identity_of(*here) == identity_of(*child));
  for (const Target target : {Target::gfx1030, Target::gfx1100, Target::gfx1201}) {
    const auto by_library = compile_kernel(*here, opencl(text), "k.cl", target, soon());
    const auto by_command = compile_kernel(*child, opencl(text), "k.cl", target, soon());
    INFO((by_library ? std::string() : by_library.error().text()));
    REQUIRE((by_library && by_command));
    CHECK(by_library->object == by_command->object);
  }
  const std::string wrong = "__kernel void kiln_kernel() {\n  int a = ;\n}\n";
  const Status refused = compile_kernel(*here, opencl(wrong), "k.cl", Target::gfx1100, soon()).error();
  CHECK_THAT(refused.text(), StartsWith("invalid_argument: k.cl:2:11: error: "));
  CHECK(refused.message == compile_kernel(*child, opencl(wrong), "k.cl", Target::gfx1100, soon()).error().message);
}

TEST_CASE("in process: no file of the machine takes part") {
  const auto here = in_process();
  if (here == nullptr) return;
  // A comment hides the directive from the check of the text: then there is no file to find.
  CHECK_THAT(
      compile_kernel(*here, opencl("#/**/include \"/etc/hostname\"\n"), "k.cl", Target::gfx1100, soon()).error().text(),
      StartsWith("invalid_argument: ") && Contains("file not found"));
}

TEST_CASE("in process: where Clang would end the process, it gives up on the kernel alone") {
  const auto here = in_process();
  if (here == nullptr) return;
  const Status gave_up =
      compile_kernel(*here, opencl("#pragma clang __debug llvm_fatal_error\n"), "k.cl", Target::gfx1100, soon())
          .error();
  CHECK_THAT(gave_up.text(),
             StartsWith("unavailable: Clang stopped with a fatal error: ") && Contains("llvm_fatal_error"));
  CHECK(compile_kernel(*here, opencl(text), "k.cl", Target::gfx1100, soon()).has_value());
}

TEST_CASE("in process: the version is kept, and the library opened at first use") {
  OneNote notes;
  const auto first = in_process(&notes);
  if (first == nullptr) return;
  REQUIRE(notes.kept.has_value());
  // With another word in the note the module is seen not to have been opened for it; and it is not used then.
  std::string told(reinterpret_cast<const char*>(notes.kept->data()), notes.kept->size());
  CHECK_THAT(told, Contains(first->version()));
  told += " as remembered";
  notes.keep(notes.kept_name, std::as_bytes(std::span(told)));
  const auto second = in_process(&notes);
  REQUIRE(second != nullptr);
  CHECK(second->version() == first->version() + " as remembered");
  CHECK_THAT(compile_kernel(*second, opencl(text), "k.cl", Target::gfx1100, soon()).error().text(),
             StartsWith("unavailable: Clang library has changed: version is "));
  // A note about another file of the library does not count.
  told.insert(told.find('\n') + 1, "another ");
  notes.keep(notes.kept_name, std::as_bytes(std::span(told)));
  CHECK(in_process(&notes)->version() == first->version());
}

TEST_CASE("in process: several threads at once") {
  const auto here = in_process();
  if (here == nullptr) return;
  std::vector<std::vector<std::byte>> objects(4);
  std::vector<std::thread> threads;
  for (auto& object : objects) {
    threads.emplace_back([&here, &object] {
      auto compiled = compile_kernel(*here, opencl(text), "k.cl", Target::gfx1100, soon());
      if (compiled) object = std::move(compiled->object);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_FALSE(objects[0].empty());
  for (const auto& object : objects) CHECK(object == objects[0]);
}

}  // namespace kiln::amdgpu_pm4

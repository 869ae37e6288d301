// What becomes of a compiler's answer: with the library or again with it, in which words, and for which kernel. The
// compilers here are made of answers.
#include <catch2/catch.hpp>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "amdgpu_pm4/code_object/object_file.hpp"
#include "amdgpu_pm4/toolchain/fake_compiler.hpp"
#include "amdgpu_pm4/toolchain/toolchain.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

using Answer = std::function<Result<Compiled>(const OpenClText& text, Target target)>;

class AnsweringToolchain final : public Toolchain {
 public:
  AnsweringToolchain(DeviceLibrary library, Answer answer)
      : Toolchain(std::move(library)), answer_(std::move(answer)) {}

  const std::string& version() const noexcept override { return version_; }
  Result<Compiled> compile(const OpenClText& text, Target target, Deadline deadline) noexcept override {
    asked.push_back(text);
    deadlines.push_back(deadline);
    return answer_(text, target);
  }
  std::vector<std::string> arguments_of(const OpenClText& text) const { return arguments_for(text, Target::gfx1100); }

  std::vector<OpenClText> asked;
  std::vector<Deadline> deadlines;

 private:
  const Answer answer_;
  const std::string version_ = "a clang version";
};

DeviceLibrary some_library() { return {"/folder", "0123", {}}; }
DeviceLibrary no_library() { return {{}, {}, "not found in /folder"}; }

Result<Compiled> the_object(const std::string& name, std::string said = "") {
  return Compiled{ObjectFile::named(name).bytes, std::move(said)};
}

const std::string undeclared = "k.cl:1:1: error: use of undeclared identifier 'sin'\n";

}  // namespace

TEST_CASE("compile: once more with the library, where something is undeclared without it") {
  struct Row {
    bool has_library, calls_library;
    StatusCode code;
    std::string said;
    std::vector<bool> asked;  // whether with the library, once a compilation
  };
  const std::string other = "k.cl:1:1: error: expected ';'\n";
  const Row rows[] = {{true, false, StatusCode::invalid_argument, undeclared, {false, true}},
                      {true, true, StatusCode::invalid_argument, undeclared, {true}},
                      {true, false, StatusCode::invalid_argument, other, {false}},
                      {true, false, StatusCode::unavailable, undeclared, {false}},
                      {false, false, StatusCode::invalid_argument, undeclared, {false}},
                      {false, true, StatusCode::invalid_argument, undeclared, {true}}};
  for (const Row& row : rows) {
    AnsweringToolchain clang(row.has_library ? some_library() : no_library(), [&row](const OpenClText&, Target) {
      return Status{row.code, row.said};
    });
    OpenClText text{"text"};
    text.calls_library = row.calls_library;
    const auto compiled = compile_text(clang, text, Target::gfx1100, soon());
    REQUIRE_FALSE(compiled);
    CHECK(compiled.error().code == row.code);
    std::vector<bool> asked;
    for (const OpenClText& each : clang.asked) asked.push_back(each.calls_library);
    CHECK(asked == row.asked);
    const bool tells = !row.has_library && row.said == undeclared;
    CHECK(compiled.error().message ==
          row.said + (tells ? "OpenCL C's function library is missing (not found in /folder), so its functions are "
                              "undeclared. Install Debian's rocm-device-libs, or set [plugin.amdgpu_pm4] device_library"
                            : ""));
  }
}

TEST_CASE("compile: a missing library is named only where something is undeclared") {
  for (const auto& [code, said] : {std::pair(StatusCode::invalid_argument, "error: expected ';'"),
                                   std::pair(StatusCode::unavailable, "undeclared identifier"),
                                   std::pair(StatusCode::timeout, "undeclared identifier")}) {
    AnsweringToolchain clang(no_library(), [how = Status{code, said}](const OpenClText&, Target) { return how; });
    CHECK(compile_text(clang, {"text"}, Target::gfx1100, soon()).error().message == said);
  }
}

TEST_CASE("compile: words of the text's own stand before the compiler's, and refused names are the text's") {
  AnsweringToolchain clang(no_library(), [](const OpenClText& text, Target) -> Result<Compiled> {
    if (text.text == "good") return Compiled{{std::byte{1}}, "theirs\n"};
    return invalid_argument("'kiln_no_read_pipe' and kiln_no_kiln_no_a, kiln_n, kiln_no_");
  });
  OpenClText good{"good"};
  CHECK(compile_text(clang, good, Target::gfx1100, soon())->said == "theirs\n");
  good.warning = "ours\n";
  CHECK(compile_text(clang, good, Target::gfx1100, soon())->said == "ours\ntheirs\n");
  CHECK(compile_text(clang, {"bad"}, Target::gfx1100, soon()).error().message == "'read_pipe' and a, kiln_n, ");
}

TEST_CASE("compile: the deadline and the target reach the compiler") {
  std::vector<Target> targets;
  AnsweringToolchain clang(some_library(), [&targets](const OpenClText&, Target target) -> Result<Compiled> {
    targets.push_back(target);
    return invalid_argument(undeclared);
  });
  const Deadline deadline = soon();
  CHECK_FALSE(compile_kernel(clang, opencl("kernel void k() {}", "k"), "k.cl", Target::gfx1102, deadline));
  CHECK(targets == std::vector<Target>{Target::gfx1102, Target::gfx1102});
  REQUIRE(clang.deadlines.size() == 2);
  for (const Deadline& each : clang.deadlines) CHECK(each.at == deadline.at);
}

TEST_CASE("compile: what is not offered is passed over where the entry does not reach it") {
  const std::string text = "void g() { printf(1); }\nkernel void saxpy() {}\n";
  const auto compile = [](AnsweringToolchain& clang, const std::string& lines) {
    return compile_kernel(clang, opencl(lines, "saxpy"), "k.cl", Target::gfx1100, soon());
  };
  const Answer refuses_print = [](const OpenClText& asked, Target) -> Result<Compiled> {
    if (asked.text.find("printf(1)") != std::string::npos) return invalid_argument("printf is not offered");
    return the_object("readable-gfx1100");
  };
  AnsweringToolchain clang(no_library(), refuses_print);
  CHECK(compile(clang, text));
  CHECK(clang.asked.size() == 2);
  CHECK(clang.asked.back().text.ends_with("\n" + std::string(23, ' ') + "\nkernel void saxpy() {}\n"));
  // It is reached; another error; nothing is refused.
  AnsweringToolchain reached(no_library(), refuses_print);
  CHECK(compile(reached, "void g() { printf(1); }\nkernel void saxpy() { g(); }\n").error().message ==
        "printf is not offered");
  CHECK(reached.asked.size() == 1);
  AnsweringToolchain other(no_library(), [](const OpenClText&, Target) { return invalid_argument("another error"); });
  CHECK(compile(other, text).error().message == "another error");
  CHECK(other.asked.size() == 1);
}

TEST_CASE("compile: the entry is a kernel of what came out, or the text's kernels are named") {
  const auto said = [](const std::string& object, const std::string& entry) {
    AnsweringToolchain clang(no_library(), [&object](const OpenClText&, Target) { return the_object(object); });
    const auto compiled = compile_kernel(clang, opencl("", entry), "k.cl", Target::gfx1100, soon());
    return compiled ? std::string("ok") : compiled.error().text();
  };
  CHECK(said("readable-gfx1100", "saxpy") == "ok");
  CHECK(said("readable-gfx1100", "main") == "ok");  // the only one
  CHECK(said("readable-gfx1100", "saxp") ==
        "invalid_argument: entry 'saxp' is not a kernel of the text: expected one of saxpy");
  CHECK(said("readable-relocated", "second") == "ok");
  CHECK(said("readable-relocated", "third") ==
        "invalid_argument: entry 'third' is not a kernel of the text: expected one of first, second");
  CHECK(said("readable-relocated", "main") ==
        "invalid_argument: the text has several kernels, first and second: choose one with entry = \"first\"");
  CHECK(said("readable-gfx1030", "saxpy") == "internal: the compiler wrote code for gfx1030, expected gfx1100");
}

TEST_CASE("compile: what the object lacks is the text's own, what it breaks is the compiler's") {
  const auto said = [](const std::string& object, std::vector<std::string> files) {
    AnsweringToolchain clang(no_library(), [&object](const OpenClText&, Target) { return the_object(object); });
    KernelSource source = opencl("", "k");
    source.files = std::move(files);
    return compile_kernel(clang, source, "label", Target::gfx1100, soon()).error().text();
  };
  const std::string undefined = "function or variable 'outside' has no definition in the text";
  CHECK(said("undefined-symbol", {}) == "unsupported: label: " + undefined);
  CHECK(said("undefined-symbol", {"own.cl", "other.h"}) == "unsupported: own.cl: " + undefined);
  CHECK(said("empty", {"own.cl"}) ==
        "corrupt: output of the compiler for label: the code object has 0 bytes, expected at least 64 for the ELF "
        "header");
}

TEST_CASE("compile: a circle of calls is told in the order of the calls") {
  const auto said = [](const std::string& text, std::vector<std::string> files = {}) {
    KernelSource source = opencl(text, "k");
    source.files = std::move(files);
    return check_calls(source, "k", "label").text();
  };
  const std::string why = "; OpenCL C does not support recursion";
  CHECK(said("void k() { g(); }\nint g() { return 1; }\n") == "ok");
  CHECK(said("void k() { k(); }\n") == "invalid_argument: label: function 'k' calls itself" + why);
  CHECK(said("void k() { a(); }\nint a() { b(); }\nint b() { a(); }\n", {"own.cl"}) ==
        "invalid_argument: own.cl: function 'a' calls 'b', which calls 'a'" + why);
  CHECK(said("void k() { a(); }\nint a() { c(); }\nint c() { b(); }\nint b() { a(); }\n") ==
        "invalid_argument: label: function 'a' calls 'c', which calls 'b', which calls 'a'" + why);
  // The object's only kernel, where the source names none.
  AnsweringToolchain clang(no_library(), [](const OpenClText&, Target) { return the_object("readable-gfx1100"); });
  const std::string own = "kernel void saxpy() { saxpy(); }\n";
  CHECK(compile_kernel(clang, opencl(own, "main"), "k.cl", Target::gfx1100, soon()).error().text() ==
        "invalid_argument: k.cl: function 'saxpy' calls itself" + why);
  CHECK(compile_kernel(clang, opencl(own, "saxpy"), "k.cl", Target::gfx1100, soon()).error().text() ==
        "invalid_argument: k.cl: function 'saxpy' calls itself" + why);
}

TEST_CASE("compile: the arguments, word by word") {
  const std::vector<std::string> alone = {"-x",
                                          "cl",
                                          "-cl-std=CL2.0",
                                          "-target",
                                          "amdgcn-amd-amdhsa",
                                          "-mcpu=gfx1100",
                                          "-O3",
                                          "-mcode-object-version=5",
                                          "-c",
                                          "-ffp-contract=on",
                                          "-cl-fp32-correctly-rounded-divide-sqrt",
                                          "-fgnu89-inline",
                                          "-mllvm",
                                          "-amdgpu-internalize-symbols",
                                          "-mllvm",
                                          "-disable-promote-alloca-to-lds",
                                          "-cl-uniform-work-group-size",
                                          "-cl-kernel-arg-info",
                                          "-nogpulib",
                                          "-nostdinc",
                                          "-cl-no-stdinc",
                                          "--no-default-config",
                                          "-fno-crash-diagnostics",
                                          "-fno-color-diagnostics",
                                          "-fdebug-compilation-dir=."};
  CHECK(clang_arguments(Target::gfx1100) == alone);
  std::vector<std::string> linked = alone;
  linked.insert(linked.end(), {"-Xclang", "-fdeclare-opencl-builtins", "-DKILN_LIBRARY_"});
  for (const char* const file :
       {"opencl", "ocml", "ockl", "oclc_abi_version_500", "oclc_correctly_rounded_sqrt_on", "oclc_daz_opt_off",
        "oclc_finite_only_off", "oclc_unsafe_math_off", "oclc_wavefrontsize64_off", "oclc_isa_version_1036"}) {
    linked.insert(linked.end(),
                  {"-Xclang", "-mlink-builtin-bitcode", "-Xclang", "/folder/" + std::string(file) + ".bc"});
  }
  CHECK(clang_arguments(Target::gfx1100, some_library()) == linked);
  const Answer none = [](const OpenClText&, Target) { return invalid_argument("none"); };
  const AnsweringToolchain with(some_library(), none), without(no_library(), none);
  OpenClText text{"text"};
  CHECK(with.arguments_of(text) == alone);
  CHECK(without.arguments_of(text) == alone);
  text.calls_library = true;
  CHECK(with.arguments_of(text) == linked);
  CHECK(without.arguments_of(text) == alone);
}

TEST_CASE("compile: a compiler's identity is its version and a recipe that the library is part of") {
  const Answer none = [](const OpenClText&, Target) { return invalid_argument("none"); };
  const std::string first = identity_of(AnsweringToolchain(some_library(), none));
  const std::string beginning = "a clang version, recipe ";
  CHECK(first.starts_with(beginning));
  CHECK(first.size() == beginning.size() + 16);
  CHECK(identity_of(AnsweringToolchain(some_library(), none)) == first);
  CHECK(identity_of(AnsweringToolchain(no_library(), none)) != first);
  CHECK(identity_of(AnsweringToolchain({"/other", "0123", {}}, none)) == first);
  CHECK(identity_of(AnsweringToolchain({"/folder", "0124", {}}, none)) != first);
}

TEST_CASE("compile: settings have their limits and fallbacks") {
  const std::vector<ConfigKey> keys = toolchain_keys();
  REQUIRE(keys.size() == 4);
  const std::pair<const char*, ConfigValue> fallbacks[] = {{"compiler", std::string("auto")},
                                                           {"clang", std::string("clang-19")},
                                                           {"device_library", std::string("auto")},
                                                           {"compile_timeout", std::int64_t{60}}};
  std::size_t i = 0;
  for (const auto& [name, fallback] : fallbacks) {
    CHECK(keys[i].name == name);
    CHECK(keys[i].fallback == fallback);
    CHECK(keys[i].type == (i == 3 ? ConfigType::integer : ConfigType::text));
    ++i;
  }
  CHECK(keys[0].allowed == std::vector<std::string>{"auto", "in_process", "child"});
  CHECK(keys[3].least == 1);
  CHECK(keys[3].most == 3600);
}

}  // namespace kiln::amdgpu_pm4

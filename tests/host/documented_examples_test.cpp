// Every example of README.md and docs/*.md runs here, twice, or is listed below with the reason why it does not.
#include "host/kiln_process.hpp"
#include "support/test_length.hpp"

#include "data/npy.hpp"
#include "data/png.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <regex>
#include <set>

using namespace kiln;
using namespace kiln::test;

namespace {

namespace fs = std::filesystem;

// A fenced block, an indented configuration, or one command of an indented or unnamed block.
struct Example {
  std::string page;  // relative to the repository
  int line = 0;
  std::string kind;  // "toml", "glsl", "cpp", "json", … as the fence names it; "command"
  std::string text;

  std::string place() const { return page + ":" + std::to_string(line); }
  std::string first_line() const { return text.substr(0, text.find('\n')); }
};

// Examples that do not run here. An entry without `begins` is the whole page.
struct NotHere {
  std::string page, begins, why;
};

const std::vector<NotHere> not_here = {
    {"README.md", "scripts/quickstart", "installs packages; quickstart_test.cpp runs its configuration"},
    {"docs/getting-started.md", "apt install", "installs packages as root"},
    {"docs/getting-started.md", "cmake --preset release", "builds Kiln; the test kiln_package packages a build"},
    {"docs/getting-started.md", "cpack", "the test kiln_package does it"},
    {"docs/getting-started.md", "kiln run /usr/share",
     "needs the installed package; quickstart_test.cpp runs this configuration"},
    {"docs/getting-started.md", "scripts/package-check", "installs packages as root"},
    {"README.md", "kiln::Config config;", "the test kiln_installed_tree builds it and runs it twice"},
    {"README.md", "auto gl = ", "the test kiln_installed_tree builds it and runs it twice"},
    {"docs/adopting-a-context.md", "#include", "the test kiln_installed_tree builds it and runs it twice"},
    {"docs/amdgpu-dispatch.md", "", "needs a benchmark program; offline_verbs_test.cpp runs `kiln pm4 dump`"},
    {"docs/architecture.md", "", "tests/core/runtime/architecture_test.cpp compares it with the source"},
    {"docs/benchmarks.md", "",
     "takes minutes and needs the benchmarks; bench_test.cpp and bench_compare_test.cpp run the verb"},
    {"docs/c-interface.md", "", "tests/c_interface/header_check compiles them; kiln_installed_tree runs the first"},
    {"docs/cache.md", "kiln cache persist layer 2eddbf53",
     "the key stands for another; cache_verbs_test.cpp names keys"},
    {"docs/cache.md", "chgrp", "needs the group kiln; cache_folder_test.cpp reads a folder of root's"},
    {"docs/cache.md", "$ kiln cache import",
     "the key stands for another; cache_bundle_test.cpp imports what it exported"},
    {"docs/pipelines.md", "", "pipeline_test.cpp runs configs/pipelines and further pipelines"},
    {"docs/python.md", "", "tests/python/examples_check runs them twice"},
    {"docs/result-journal.md", "kiln results 2", "the format of a file, not a command"},
    {"docs/sharing-a-cache.md", "", "needs several users and servers; cache_sharing_test.cpp takes the same steps"},
    {"docs/testing.md", "", "builds and tests Kiln"},
    {"docs/writing-a-plugin.md", "", "the test kiln_installed_tree runs these commands twice"},
};

bool covers(const NotHere& entry, const Example& example) {
  return entry.page == example.page && example.text.starts_with(entry.begins);
}

const std::regex command_pattern(
    R"((\$ )?([A-Z_]+=\S+ )*(kiln|scripts/\S+|build/\S+|apt|cat|chgrp|chmod|cmake|cp|cpack|for|install|python3) .*)");
// `scripts/test` stands alone in its line.
const std::regex script_pattern(R"(scripts/\S+( .*)?)");

bool is_command(const std::string& line) {
  return std::regex_match(line, command_pattern) || std::regex_match(line, script_pattern);
}

// The commands among the lines of a block; a here-document and a loop belong to their first line.
void add_commands(std::vector<Example>& into, const std::string& page, int line,
                  const std::vector<std::string>& lines) {
  for (std::size_t at = 0; at < lines.size(); ++at) {
    if (!is_command(lines[at])) continue;
    Example example{page, line + static_cast<int>(at), "command", lines[at]};
    std::string end;
    if (lines[at].find("<<'END'") != std::string::npos) end = "END";
    if (lines[at].starts_with("for ")) end = "done";
    while (!end.empty() && at + 1 < lines.size()) {
      example.text += "\n" + lines[++at];
      if (lines[at] == end) break;
    }
    into.push_back(std::move(example));
  }
}

std::vector<Example> examples_of(const std::string& page) {
  std::vector<Example> examples;
  std::ifstream stream(fs::path(KILN_SOURCE_DIR) / page);
  REQUIRE(stream);
  bool fenced = false, after_blank = true;
  std::string language;
  std::vector<std::string> block;
  int begin = 0, number = 0;
  const auto end_block = [&] {
    if (block.empty()) return;
    std::string text;
    for (const std::string& line : block) text += line + "\n";
    if (!language.empty()) {
      examples.push_back({page, begin, language, text});
    } else if (std::regex_search(block[0], std::regex(R"(^\[[a-z_.]+\])"))) {
      examples.push_back({page, begin, "toml", text});
    } else {
      add_commands(examples, page, begin, block);
    }
    block.clear();
  };
  for (std::string line; std::getline(stream, line);) {
    ++number;
    if (line.starts_with("```")) {
      end_block();
      fenced = !fenced;
      language = fenced ? line.substr(3) : "";
      begin = number + 1;
      continue;
    }
    if (fenced) {
      block.push_back(line);
      continue;
    }
    const bool indented = line.starts_with("    ") && line.size() > 4;
    if (indented && (after_blank || !block.empty())) {
      if (block.empty()) begin = number;
      block.push_back(line.substr(4));
    } else if (!line.empty() || block.empty()) {
      end_block();
    } else if (!block[0].starts_with("cat ")) {  // a blank line ends a block, but not a here-document
      end_block();
    } else {
      block.emplace_back();
    }
    after_blank = line.empty();
  }
  end_block();
  CHECK_FALSE(fenced);
  return examples;
}

std::vector<std::string> pages() {
  std::vector<std::string> all{"README.md"};
  for (const auto& entry : fs::directory_iterator(fs::path(KILN_SOURCE_DIR) / "docs")) {
    if (entry.path().extension() == ".md") all.push_back("docs/" + entry.path().filename().string());
  }
  std::ranges::sort(all);
  return all;
}

Example only_example(const std::string& page, const std::string& kind) {
  for (Example& example : examples_of(page)) {
    if (example.kind == kind) return std::move(example);
  }
  FAIL(page << " has no " << kind << " block");
  return {};
}

void put_floats(const fs::path& file, std::int64_t elements, const std::function<float(float)>& value) {
  auto tensor = HostTensor::create(DType::f32, {elements}).value();
  float index = 0;
  for (float& element : tensor->as<float>()) element = value(index++);
  REQUIRE(data::write_npy(file, *tensor).ok());
}

constexpr const char* layer = R"(
[[job]]
name = "layer"
op = "conv2d"
c = 4
h = 8
w = 8
k = 8
r = 1
s = 1
input = "random:1"
weights = "random:2"
verify = true
)";

// What a documented fragment of a job leaves out.
constexpr const char* fragment_job = R"([[job]]
name = "fragment"
op = "kernel"
verify = true
)";
const std::map<std::string, std::string> rest_of_fragment = {
    {"uniforms", R"(source = "uniforms.comp"
bindings = [ { input = "x.npy" }, { output = "shaded.npy", expect = "shaded_expected.npy" } ]
grid = [16]
)"},
    {"images", R"(source = "shown.comp"
bindings = [ { input = "x.npy" }, { output = "copied.npy", expect = "x.npy" } ]
grid = [40, 30]
)"},
    {"source", R"(bindings = [ { input = "x.npy" }, { output = "blurred.npy", expect = "x.npy" } ]
grid = [16]
)"},
    {"constants", R"(source = "tiled.comp"
bindings = [ { input = "long_x.npy" }, { output = "long_y.npy", expect = "long_expected.npy" } ]
)"},
};

// A folder with all that the examples name, the home of a new user, and stand-ins for folders of the system.
class Machine {
 public:
  explicit Machine(const std::string& page) : page_(page) {
    for (const char* name : {"home", "configs", "shaders", "shaders/lib", "textfile", "srv", "etc"}) {
      fs::create_directory(folder / name);
    }
    fs::permissions(folder / "etc", fs::perms::owner_all);
    fs::create_directory_symlink(fs::path(KILN_SOURCE_DIR) / "docs", folder / "docs");
    put_floats(folder / "x.npy", 1024, [](float i) { return 0.25f * i; });
    put_floats(folder / "y.npy", 1024, [](float i) { return i; });
    put_floats(folder / "z.npy", 1024, [](float i) { return 1.625f * i; });  // 2.5 x + y
    put_floats(folder / "shaded_expected.npy", 1024, [](float i) { return 0.75f * i + 402.5f; });
    put_floats(folder / "long_x.npy", 4096, [](float i) { return i; });
    put_floats(folder / "long_expected.npy", 4096, [](float i) { return 2.5f * i; });
    folder.write("saxpy.comp", only_example("docs/user-kernels.md", "glsl").text);
    folder.write("uniforms.comp", R"(#version 430
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer X { float x[]; };
layout(std430, binding = 1) buffer Y { float y[]; };
struct Light { float power; };
uniform float gain;
uniform int first;
uniform ivec2 size;
uniform mat2 transform;
uniform Light light;
layout(std140) uniform Params { float scale; int count; };
void main() {
  uint i = gl_GlobalInvocationID.x;
  vec2 at = transform * vec2(x[i], float(first + size.x - size.y));
  y[i] = gain * at.x + light.power * at.y + scale * 32.0 - float(count);
}
)");
    folder.write("shown.comp", R"(#version 430
layout(local_size_x = 16, local_size_y = 16) in;
layout(rgba8) uniform readonly image2D photo;
layout(rgba8) uniform writeonly image2D shown;
uniform sampler2D source;
layout(std430, binding = 0) readonly buffer X { float x[]; };
layout(std430, binding = 1) buffer Y { float y[]; };
void main() {
  ivec2 at = ivec2(gl_GlobalInvocationID.xy);
  imageStore(shown, at, imageLoad(photo, at) - 0.5 * texelFetch(source, at, 0));
  int i = at.y * 640 + at.x;
  if (i < x.length()) y[i] = x[i];
}
)");
    auto photo = HostTensor::create(DType::f32, {1, 3, 480, 640}).value();
    std::ranges::fill(photo->as<float>(), 0.5f);
    REQUIRE(data::write_png(folder / "photo.png", *photo).ok());
    folder.write("shaders/lib/weights.glsl", "const float centre = 0.5, side = 0.25;\n");
    folder.write("shaders/blur.comp", R"(#version 430
#include "weights.glsl"
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer X { float x[]; };
layout(std430, binding = 1) buffer Y { float y[]; };
void main() {
  uint i = gl_GlobalInvocationID.x;
  y[i] = (centre + 2.0 * side) * x[i];
}
)");
    folder.write("tiled.comp", R"(#version 430
layout(local_size_x = TILE) in;
layout(std430, binding = 0) readonly buffer X { float x[]; };
layout(std430, binding = 1) buffer Y { float y[]; };
void main() {
  for (uint step = 0; step < UNROLL; ++step) {
    uint i = gl_GlobalInvocationID.x * UNROLL + step;
    if (i < N) y[i] = A * x[i];
  }
}
)");
    folder.write("saxpy.cl", R"(__attribute__((reqd_work_group_size(64, 1, 1)))
__kernel void saxpy(__global const float* x, __global float* y, float a) {
  const unsigned i = get_global_id(0);
  y[i] = a * x[i] + y[i];
}
)");
    const std::uint32_t packet[] = {0xC0001000, 0};  // NOP with one word
    folder.write("stream.bin", std::string(reinterpret_cast<const char*>(packet), sizeof packet));
    const std::string mine = only_example("README.md", "toml").text;
    for (const char* name : {"my.toml", "jobs.toml", "site.toml"}) folder.write(name, mine);
    // One small layer: the configurations of these names take minutes.
    folder.write("configs/resnet50.toml", layer);
    folder.write("configs/amdgpu_pm4.toml", std::string("[device]\nprefer = \"amdgpu:0\"\n") + layer);
    folder.write("configs/vulkan.toml",
                 "[plugins]\nload = [\"cpu\", \"vulkan\", \"dynamic_shaders\"]\n" + std::string(layer));
  }

  // What the examples presuppose: a report, a recorded choice, and programs in the cache.
  void begin_round() const {
    require("kiln run my.toml --json --output run.json");
    require("kiln run configs/resnet50.toml --set selector.log=true");
    require("kiln run configs/resnet50.toml --device opengl:0");
  }

  // In bash, in the folder, as a user with an empty home at first.
  Finished run(std::string command) const {
    if (command.starts_with("$ ")) command.erase(0, 2);
    return run_process({"bash", "-euo", "pipefail", "-c", local(std::move(command))},
                       {.environment = {{"HOME", folder / "home"},
                                        {"PATH", std::string(KILN_BINARY_DIR) + "/bin:" + std::getenv("PATH")},
                                        {"XDG_CACHE_HOME", ""},
                                        {"XDG_STATE_HOME", ""}},
                        .folder = folder.path()});
  }
  void require(const std::string& command) const {
    const Finished finished = run(command);
    INFO(page_ << ": " << command << "\n" << finished.out << finished.err);
    // On a busy machine the times of a small layer vary: status 1 says that a winner was slower than before.
    const bool audit = command.starts_with("kiln tune audit") && finished.out.find("winner") != std::string::npos;
    CHECK((finished.status == 0 || (audit && finished.status == 1)));
  }
  void configuration(const Example& example) const {
    std::string text = example.text;
    if (text.find("[[job]]") != std::string::npos) {
    } else if (text.starts_with("[")) {
      text += layer;
    } else {
      const auto rest = rest_of_fragment.find(text.substr(0, text.find(' ')));
      INFO(example.place() << ": a fragment of a job that this test does not complete: " << text);
      REQUIRE(rest != rest_of_fragment.end());
      text = fragment_job + text + rest->second;
    }
    folder.write("example.toml", local(std::move(text)));
    require("kiln config check example.toml");
    // Real cards are left alone.
    if (example.text.starts_with("[plugin.amdgpu_pm4]\nhardware = true")) return;
    const bool comparable = example.text.find("expect") != std::string::npos;
    require("kiln run example.toml --json" + std::string(comparable ? " --verify" : ""));
  }

  const TemporaryFolder folder;

 private:
  // Words for which a user writes his own, and folders of the system.
  std::string local(std::string text) const {
    const std::pair<std::string, std::string> words[] = {{"/var/lib/node_exporter/textfile", folder / "textfile"},
                                                         {"/srv/kiln", folder / "srv"},
                                                         {"/etc/kiln", folder / "etc"},
                                                         {" CONFIG", " my.toml"},
                                                         {" [--device ID]", ""},
                                                         {" [LOG]", ""}};
    for (const auto& [from, to] : words) {
      for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
        text.replace(at, from.size(), to);
      }
    }
    return text;
  }

  std::string page_;
};

bool has(const std::string& command) { return std::system((command + " >/dev/null 2>&1").c_str()) == 0; }

// Programs that a machine may lack, and the commands that need them.
bool lacks_program(const std::string& command) {
  const std::pair<const char*, const char*> needs[] = {{"kiln kernel build", "command -v clang-19"},
                                                       {"vulkaninfo", "command -v vulkaninfo"},
                                                       {"jsonschema", "python3 -c 'import jsonschema'"}};
  for (const auto& [word, program] : needs) {
    if (command.find(word) == std::string::npos || has(program)) continue;
    WARN("skipped: '" << command.substr(0, command.find('\n')) << "' needs " << program);
    return true;
  }
  return false;
}

}  // namespace

TEST_CASE("documented examples: each runs twice, or is listed with a reason", "[unsanitized]") {
  std::set<const NotHere*> used;
  std::size_t ran = 0;
  for (const std::string& page : pages()) {
    std::vector<Example> here;
    for (Example& example : examples_of(page)) {
      const auto entry = std::ranges::find_if(not_here, [&](const NotHere& one) { return covers(one, example); });
      if (entry != not_here.end()) {
        used.insert(&*entry);
      } else {
        here.push_back(std::move(example));
      }
    }
    if (here.empty()) continue;
    if (is_sanitized && page == "docs/vulkan.md") {
      WARN("skipped: the loader unloads Mesa's driver, so that the leak checker cannot name whose memory it is");
      continue;
    }
    const Machine machine(page);
    for (int round = 1; round <= (is_sanitized ? 1 : 2); ++round) {
      machine.begin_round();
      for (const Example& example : here) {
        INFO(example.place() << ", round " << round << ": " << example.first_line());
        if (example.kind == "command") {
          if (!lacks_program(example.text)) machine.require(example.text);
        } else if (example.kind == "toml") {
          machine.configuration(example);
        } else if (example.kind == "glsl") {  // saxpy.comp of the configurations
          CHECK(example.text == only_example("docs/user-kernels.md", "glsl").text);
        } else {
          FAIL_CHECK("no way to run a block of '" << example.kind << "': add one, or list it with a reason");
        }
        ++ran;
      }
    }
  }
  for (const NotHere& entry : not_here) {
    INFO(entry.page << ": " << entry.begins << ": the documentation has this example no longer");
    CHECK(used.contains(&entry));
  }
  CHECK(ran >= (is_sanitized ? 50 : 100));
}

// What the texts of the families say: which tensor each binding is, the loops of direct/blocked in full, and the
// transforms of winograd as arithmetic.
#include <catch2/catch.hpp>
#include <cctype>
#include <cstdint>
#include <map>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "dynamic_shaders/family_plans.hpp"
#include "dynamic_shaders/generator.hpp"
#include "dynamic_shaders/sample_specs.hpp"

namespace kiln::dynamic_shaders {
namespace {

KernelPlan text_plan(const KernelSpec& spec, const std::string& variant) {
  INFO(variant);
  auto plan = Generator().generate_variant(spec, sample_device(), Dialect::glsl, variant);
  INFO((plan ? std::string() : plan.error().text()));
  REQUIRE(plan.has_value());
  return std::move(plan).value();
}

std::string main_of(const std::string& text) {
  const std::size_t at = text.find("void main() {\n");
  REQUIRE(at != std::string::npos);
  return text.substr(at);
}

// The names of a GLSL text's bindings, in order.
std::vector<std::string> bound_names(const std::string& text) {
  const std::regex declared(R"(layout\(.*binding = (\d+).* (?:buffer Of_(\w+) \{.*|\w+Buffer (\w+);))");
  std::vector<std::string> names;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    if (!line.starts_with("layout(") || !std::regex_match(line, found, declared)) continue;
    CHECK(found.str(1) == std::to_string(names.size()));
    names.push_back(found.str(2) + found.str(3));
  }
  return names;
}

using Values = std::map<std::string, double>;

std::string element_name(char letter, int row, int column) {
  std::string name(1, letter);
  name += std::to_string(row);
  name += '_';
  name += std::to_string(column);
  return name;
}

// The value of "-0.25 * a0_0 + b1_1": terms with a factor or without.
double linear_value(const std::string& sum, const Values& values) {
  std::istringstream tokens(sum);
  double total = 0, sign = 1;
  for (std::string token; tokens >> token;) {
    if (token == "+" || token == "-") {
      sign = token == "+" ? 1 : -1;
      continue;
    }
    if (token.front() == '-') {
      sign = -1;
      token.erase(0, 1);
    }
    double factor = 1;
    if (std::isdigit(static_cast<unsigned char>(token.front())) != 0) {
      factor = std::stod(token);
      std::string star;
      tokens >> star >> token;
      REQUIRE(star == "*");
    }
    const auto at = values.find(token);
    INFO(sum);
    REQUIRE(at != values.end());
    total += sign * factor * at->second;
  }
  return total;
}

// Runs the lines of a text that transform a tile: their names are h, u, v or o, a row and a column.
void run_transform(const std::string& text, Values& values) {
  const std::regex transforms(R"(  vec4 ([huvo]\d+_\d+) = (.+);)");
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    if (line.starts_with("  vec4 ") && std::regex_match(line, found, transforms)) {
      values[found.str(1)] = linear_value(found.str(2), values);
    }
  }
}

}  // namespace

TEST_CASE("kernel text: bindings have their tensor's name, and only the result is written") {
  const std::map<std::string, std::uint32_t> operands = {{"a", 0}, {"x", 0},       {"b", 1},
                                                         {"w", 1}, {"weights", 1}, {"bias", 2}};
  for (const KernelPlan& plan : plans_of_families(Dialect::glsl)) {
    INFO(plan.variant);
    REQUIRE(plan.tensors.size() >= 3);
    const auto result = static_cast<std::uint32_t>(plan.tensors.size() - 1);
    std::set<std::uint32_t> loaded, stored;
    for (const Pass& pass : passes_of({plan})) {
      const std::vector<std::string> names = bound_names(pass.source.text);
      REQUIRE(names.size() == pass.bindings.size());
      REQUIRE(pass.source.bindings.size() == pass.bindings.size());
      for (std::size_t i = 0; i < names.size(); ++i) {
        if (pass.bindings[i].source != BindingSource::tensor) continue;
        const std::uint32_t tensor = pass.bindings[i].index;
        const auto operand = operands.find(names[i]);
        INFO("binding " << names[i]);
        CHECK(tensor == (operand == operands.end() ? result : operand->second));
        (pass.source.bindings[i] == Access::read ? loaded : stored).insert(tensor);
      }
    }
    std::set<std::uint32_t> expected;
    for (std::uint32_t tensor = 0; tensor < result; ++tensor) expected.insert(tensor);
    CHECK(loaded == expected);
    CHECK(stored == std::set<std::uint32_t>{result});
  }
}

TEST_CASE("kernel text: direct/blocked unrolls a 1x1 kernel by four steps") {
  Conv2dSpec spec;
  spec.c = spec.k = 4, spec.h = 2, spec.w = 4, spec.r = spec.s = 1;
  const KernelPlan plan = text_plan(
      spec,
      "direct/blocked:lanes=channels,k=4,x=4,y=1,packing=plane,view=storage,rows=unrolled,border=padded,workgroup=1");
  REQUIRE(plan.passes.size() == 1);
  std::string rounds;
  for (const char* const step : {"0", "1", "2", "3"}) {
    rounds += "    {\n    int step = round + ";
    rounds += step;
    rounds +=
        ";\n"
        "    int at_x = first_x + step * 2;\n"
        "    int at_w = first_w + step * 1;\n"
        "    vec4 w0_0_0_0 = w[at_w + 0];\n"
        "    vec4 x0_0 = x[at_x + q0];\n"
        "    a0_0_0 += x0_0.x * w0_0_0_0;\n"
        "    a0_1_0 += x0_0.y * w0_0_0_0;\n"
        "    a0_2_0 += x0_0.z * w0_0_0_0;\n"
        "    a0_3_0 += x0_0.w * w0_0_0_0;\n"
        "    }\n";
  }
  CHECK(main_of(plan.passes[0].source.text) ==
        "void main() {\n"
        "  int block = int(gl_WorkGroupID.x);\n"
        "  int group = int(gl_WorkGroupID.y) / 1;\n"
        "  int k_lane = int(gl_WorkGroupID.y) % 1 * 1 + int(gl_LocalInvocationID.x);\n"
        "  int image = int(gl_WorkGroupID.z);\n"
        "  int x0 = block % 2 * 4;\n"
        "  int y0 = block / 2 * 1;\n"
        "  int first_x = (image * 1 + group) * 8;\n"
        "  int first_w = group * 4 + k_lane;\n"
        "  int q0 = min(x0 / 4 + 0, 1);\n"
        "  vec4 a0_0_0 = vec4(0.0);\n"
        "  vec4 a0_1_0 = vec4(0.0);\n"
        "  vec4 a0_2_0 = vec4(0.0);\n"
        "  vec4 a0_3_0 = vec4(0.0);\n"
        "  for (int round = 0; round < 4; round += 4) {\n" +
            rounds +
            "  }\n"
            "  int k = k_lane * 4;\n"
            "  int plane = ((image * 1 + group) * 4 + k) * 2;\n"
            "  {\n"
            "    y[plane + 0 + (y0 + 0) * 2 + x0 / 4 + 0] = vec4(a0_0_0.x, a0_1_0.x, a0_2_0.x, a0_3_0.x);\n"
            "  }\n"
            "  {\n"
            "    y[plane + 2 + (y0 + 0) * 2 + x0 / 4 + 0] = vec4(a0_0_0.y, a0_1_0.y, a0_2_0.y, a0_3_0.y);\n"
            "  }\n"
            "  {\n"
            "    y[plane + 4 + (y0 + 0) * 2 + x0 / 4 + 0] = vec4(a0_0_0.z, a0_1_0.z, a0_2_0.z, a0_3_0.z);\n"
            "  }\n"
            "  {\n"
            "    y[plane + 6 + (y0 + 0) * 2 + x0 / 4 + 0] = vec4(a0_0_0.w, a0_1_0.w, a0_2_0.w, a0_3_0.w);\n"
            "  }\n"
            "}\n");
}

TEST_CASE("kernel text: a lane of direct/blocked computes its block, group and channels") {
  Conv2dSpec spec;
  spec.c = spec.k = 8, spec.groups = 2, spec.h = spec.w = 4, spec.r = spec.s = 3, spec.pad_y = spec.pad_x = 1;
  const auto main_text = [&spec](const std::string& lanes, const std::string& border) {
    const KernelPlan plan = text_plan(
        spec, "direct/blocked:lanes=" + lanes +
                  ",k=4,x=4,y=2,packing=channels,view=storage,rows=looped,border=" + border + ",workgroup=16");
    REQUIRE(plan.passes.size() == 2);
    return main_of(plan.passes[1].source.text);
  };
  CHECK_THAT(main_text("groups", "padded"), Catch::StartsWith("void main() {\n"
                                                              "  int block = int(gl_WorkGroupID.x);\n"
                                                              "  int lane = int(gl_WorkGroupID.y) * 16 + "
                                                              "int(gl_LocalInvocationID.x);\n"
                                                              "  if (lane >= 2) return;\n"
                                                              "  int group = lane / 1;\n"
                                                              "  int k_lane = lane % 1;\n"
                                                              "  int image = int(gl_WorkGroupID.z);\n"
                                                              "  int x0 = block % 1 * 4;\n"
                                                              "  int y0 = block / 1 * 2;\n"
                                                              "  int first_x = (image * 2 + group) * 36;\n"
                                                              "  int first_w = group * 36 + k_lane;\n"
                                                              "  first_x += y0 * 6 + x0 * 1;\n"
                                                              "  vec4 a0_0_0 = vec4(0.0);\n"));
  CHECK_THAT(main_text("places", "guarded"), Catch::StartsWith("void main() {\n"
                                                               "  int block = int(gl_GlobalInvocationID.x);\n"
                                                               "  if (block >= 2) return;\n"
                                                               "  int group = int(gl_WorkGroupID.y) / 1;\n"
                                                               "  int k_lane = int(gl_WorkGroupID.y) % 1;\n"
                                                               "  int image = int(gl_WorkGroupID.z);\n"
                                                               "  int x0 = block % 1 * 4;\n"
                                                               "  int y0 = block / 1 * 2;\n"
                                                               "  int first_x = (image * 2 + group) * 16;\n"
                                                               "  int first_w = group * 36 + k_lane;\n"
                                                               "  int ix0 = x0 * 1 + -1;\n"
                                                               "  bool in0 = ix0 >= 0 && ix0 < 4;\n"));
}

TEST_CASE("kernel text: winograd's transforms compute the convolution of a tile") {
  Conv2dSpec spec;
  spec.c = spec.k = 8, spec.h = spec.w = 6, spec.r = spec.s = 3, spec.pad_y = spec.pad_x = 1;
  spec.accuracy = Accuracy::winograd;
  std::mt19937 random(11);
  const auto whole = [&random] { return static_cast<double>(random() % 19) - 9; };
  for (const int outputs : {2, 4}) {
    const int extent = outputs + 2;
    INFO("F(" << outputs << ", 3)");
    const KernelPlan plan =
        text_plan(spec, "winograd/f" + std::to_string(outputs) +
                            ":lanes=channels,k=4,x=4,y=1,packing=plane,view=storage,rows=looped,border=padded,"
                            "workgroup=8");
    REQUIRE(plan.prepare.size() == 1);
    REQUIRE(plan.passes.size() == 3);
    for (int round = 0; round < 3; ++round) {
      Values inputs, weights, sums;
      for (int row = 0; row < extent; ++row) {
        for (int column = 0; column < extent; ++column) inputs[element_name('d', row, column)] = whole();
      }
      for (int row = 0; row < 3; ++row) {
        for (int column = 0; column < 3; ++column) weights[element_name('g', row, column)] = whole();
      }
      run_transform(plan.passes[0].source.text, inputs);
      run_transform(plan.prepare[0].source.text, weights);
      for (int row = 0; row < extent; ++row) {
        for (int column = 0; column < extent; ++column) {
          sums[element_name('p', row, column)] =
              inputs.at(element_name('v', row, column)) * weights.at(element_name('u', row, column));
        }
      }
      run_transform(plan.passes[2].source.text, sums);
      for (int y = 0; y < outputs; ++y) {
        for (int x = 0; x < outputs; ++x) {
          double expected = 0;
          for (int r = 0; r < 3; ++r) {
            for (int s = 0; s < 3; ++s) {
              expected += inputs.at(element_name('d', y + r, x + s)) * weights.at(element_name('g', r, s));
            }
          }
          INFO("output " << y << ", " << x);
          CHECK(sums.at(element_name('o', y, x)) == Approx(expected).margin(1e-4));
        }
      }
    }
  }
}

}  // namespace kiln::dynamic_shaders

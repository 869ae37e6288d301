// gl_conv: the generator's kernels on an OpenGL device against the plain kernel with constants and a shape-generic one.
//
// usage: gl_conv [TABLE.csv] [ROUNDS] [NAMES] [VARIANT…]
// NAMES: layers of the table, parted by commas, or "all". VARIANT: ids to run beside the generator's own choice.
// In each round every contender runs once, in an order that rotates. Device time: the last pass alone, on packed
// activations, by the device's clock. Wall: from the input in host memory to the output in host memory, NCHW both, with
// all passes. A ratio is the other's time ÷ ours within one round; medians and quartiles over the rounds. Every
// contender's whole output is compared with the double-precision reference, poisoned first, outside the clock.
#include <kiln/kernel_generator.hpp>
#include <kiln/plugin_loader.hpp>

#include "gl_conv/contender.hpp"
#include "layer_table.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace {

using namespace kiln;
using bench::Layer;
using benchmarks::Contender;
using benchmarks::Problem;
using benchmarks::Times;

template <class T>
T need(Result<T> result, const std::string& what) {
  if (!result) throw std::runtime_error(what + ": " + result.error().text());
  return std::move(result).value();
}

std::vector<Layer> read_table(const std::string& path, const std::string& names) {
  std::vector<Layer> layers = bench::read_layer_table(path);
  if (names == "all") return layers;
  const std::string wanted = "," + names + ",";
  std::erase_if(layers, [&](const Layer& layer) { return wanted.find("," + layer.name + ",") == std::string::npos; });
  return layers;
}

double quantile(std::vector<double> of, double share) {
  std::sort(of.begin(), of.end());
  return of[static_cast<std::size_t>(share * static_cast<double>(of.size() - 1) + 0.5)];
}

struct Series {
  std::vector<double> device, wall;
};

std::vector<double> ratios(const std::vector<double>& other, const std::vector<double>& ours) {
  std::vector<double> result;
  for (std::size_t i = 0; i < ours.size(); ++i) result.push_back(other[i] / ours[i]);
  return result;
}

void print_row(const std::string& name, const Series& series, const Series& ours, double flops, bool right) {
  const auto device = ratios(series.device, ours.device), wall = ratios(series.wall, ours.wall);
  std::printf("  %9.3f %7.1f %8.2f [%6.2f %6.2f] | %9.3f %7.1f %8.2f [%6.2f %6.2f]  %s%s\n",
              quantile(series.device, 0.5), flops / quantile(series.device, 0.5) / 1e6, quantile(device, 0.5),
              quantile(device, 0.25), quantile(device, 0.75), quantile(series.wall, 0.5),
              flops / quantile(series.wall, 0.5) / 1e6, quantile(wall, 0.5), quantile(wall, 0.25), quantile(wall, 0.75),
              name.c_str(), right ? "" : "  WRONG");
}

struct Means {
  double device = 0, wall = 0;  // sums of logarithms of plain ÷ ours
};

// Answers whether every contender was right.
bool compare(const Layer& layer, Device& device, KernelGenerator& generator, const std::vector<std::string>& variants,
             int rounds, Means& means) {
  const Problem problem(layer.spec, 20240607);
  const DeviceInfo& info = device.info();
  std::vector<Contender> contenders;
  contenders.reserve(variants.size() + 3);
  contenders.emplace_back(device, problem, need(generator.generate(layer.spec, info, Dialect::glsl), layer.name));
  contenders.emplace_back(
      device, problem, need(generator.generate_variant(layer.spec, info, Dialect::glsl, "direct/plain"), layer.name));
  contenders.emplace_back(device, problem, benchmarks::shape_generic_plan(layer.spec));
  for (const std::string& variant : variants) {
    contenders.emplace_back(device, problem,
                            need(generator.generate_variant(layer.spec, info, Dialect::glsl, variant), layer.name));
  }
  std::vector<Series> series(contenders.size());
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t turn = 0; turn < contenders.size(); ++turn) {
      const std::size_t which = (turn + static_cast<std::size_t>(round)) % contenders.size();
      const Times times = contenders[which].time();
      series[which].device.push_back(times.device_ms);
      series[which].wall.push_back(times.wall_ms);
    }
  }
  std::printf("%s: %s\n", layer.name.c_str(), canonical_text(layer.spec).c_str());
  bool all_right = true;
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    const bool right = contenders[i].is_right();
    all_right = all_right && right;
    print_row(contenders[i].variant(), series[i], series[0], flops(layer.spec), right);
  }
  std::fflush(stdout);
  means.device += std::log(quantile(ratios(series[1].device, series[0].device), 0.5));
  means.wall += std::log(quantile(ratios(series[1].wall, series[0].wall), 0.5));
  return all_right;
}

int run(const std::string& table, int rounds, const std::string& names, const std::vector<std::string>& variants) {
  Registry registry;
  PluginLoader loader;
  const std::vector<std::string> plugins{"opengl", "dynamic_shaders"};
  for (const PluginReport& report : loader.load(plugins, plugins, registry, {})) {
    if (!report.loaded) throw std::runtime_error("plugin '" + report.name + "': " + report.why_not.text());
  }
  WorkCounters counters;
  const auto driver = need(registry.drivers().at("opengl").make({{}, &counters, {}, nullptr, {}}), "opengl");
  const auto device = need(driver->open("opengl:0"), "opengl:0");
  const auto generators = need(registry.generators("dynamic_shaders"), "dynamic_shaders");
  const auto generator = need(generators.front()->make({}), "dynamic_shaders");
  std::printf("%s, %s, %d rounds\n", device->info().name.c_str(), device->info().driver.c_str(), rounds);
  std::printf("  %9s %7s %8s %15s | %9s %7s %8s %15s  %s\n", "device ms", "GFLOP/s", "÷ ours", "quartiles", "wall ms",
              "GFLOP/s", "÷ ours", "quartiles", "variant");
  Means means;
  bool right = true;
  const std::vector<Layer> layers = read_table(table, names);
  for (const Layer& layer : layers) {
    right = compare(layer, *device, *generator, variants, rounds, means) && right;
  }
  const auto mean = [&](double sum) {
    return std::exp(sum / static_cast<double>(std::max<std::size_t>(layers.size(), 1)));
  };
  std::printf("geometric mean of plain ÷ ours over %zu layers: device %.2f, wall %.2f; outputs %s\n", layers.size(),
              mean(means.device), mean(means.wall), right ? "verified" : "WRONG");
  return right ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  try {
    const std::string table = count > 1 ? words[1] : KILN_SOURCE_DIR "/tests/data/workloads/resnet50.csv";
    const int rounds = count > 2 ? std::max(1, std::atoi(words[2])) : 7;
    const std::vector<std::string> variants(words + std::min(count, 4), words + count);
    return run(table, rounds, count > 3 ? words[3] : "all", variants);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gl_conv: %s\n", error.what());
    return 1;
  }
}

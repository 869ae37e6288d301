// record_trace: what each program of the layer tables costs to build, from nothing, on one device.
//
// usage: record_trace [ROUNDS] [DEVICE] > benchmarks/traces/costs.txt
// For each layer the plain kernel's source is built and dispatched twice, with one workgroup: the driver generates
// machine code at the first dispatch, whatever the grid, and one workgroup keeps the layer's own work out of the
// figure. The cost is build + first dispatch − second dispatch, the least of all rounds; the bytes are what the memory
// tier charges. The driver's own cache is switched off, so that each round pays again. The one-off shapes are drawn
// from a seed.
#include <kiln/plugin_loader.hpp>
#include <kiln/program.hpp>

#include "layer_table.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <random>
#include <set>
#include <stdexcept>

namespace {

using namespace kiln;
using bench::Layer;

template <class T>
T need(Result<T> result, const std::string& what) {
  if (!result) throw std::runtime_error(what + ": " + result.error().text());
  return std::move(result).value();
}

void append_table(std::vector<Layer>& layers, const std::string& network) {
  for (Layer& layer : bench::read_layer_table(KILN_SOURCE_DIR "/tests/data/workloads/" + network + ".csv")) {
    layers.push_back({network + "/" + layer.name, layer.spec});
  }
}

void append_one_offs(std::vector<Layer>& layers, std::size_t count) {
  std::mt19937_64 dice(3);
  const auto one_of = [&](std::initializer_list<std::int64_t> values) {
    return values.begin()[dice() % values.size()];
  };
  std::set<std::string> seen;
  while (seen.size() < count) {
    Conv2dSpec spec;
    spec.c = one_of({3, 8, 24, 48, 72, 136, 200});
    spec.k = one_of({8, 24, 40, 72, 112, 136, 200});
    spec.h = spec.w = one_of({9, 18, 27, 36, 54, 72});
    spec.r = spec.s = one_of({1, 3, 3, 5, 7});
    spec.stride_y = spec.stride_x = one_of({1, 1, 2});
    spec.pad_y = spec.pad_x = spec.r / 2;
    if (!seen.insert(canonical_text(spec)).second) continue;
    layers.push_back({"one_off/s" + std::to_string(seen.size() - 1), spec});
  }
}

struct Cost {
  std::string key;
  std::uint64_t bytes = 0;
  std::uint64_t build_ns = 0;
};

std::uint64_t dispatch_ns(Device& device, const PassLaunch& launch, const std::string& what) {
  const std::uint64_t start = now_ns();
  const std::uint64_t value = need(device.submit({std::span(&launch, 1)}), what);
  need(device.wait(value, Deadline::after(std::chrono::seconds(60))), what);
  return now_ns() - start;
}

Cost measure(Device& device, const KernelPlan& plan, const Pass& pass, const std::string& what) {
  std::vector<std::unique_ptr<Buffer>> owned;
  std::vector<Buffer*> bindings;
  for (const Binding& binding : pass.bindings) {
    const std::uint64_t bytes = binding.source == BindingSource::tensor    ? plan.tensors[binding.index].bytes
                                : binding.source == BindingSource::scratch ? plan.scratch[binding.index].bytes
                                : binding.source == BindingSource::prepared
                                    ? plan.prepared[binding.index].bytes
                                    : plan.constants[binding.index]->tensor().bytes().size();
    owned.push_back(need(device.create_buffer({bytes, BufferUsage::storage, {}, -1}), what));
    bindings.push_back(owned.back().get());
  }
  const std::uint64_t start = now_ns();
  const auto program = need(device.build(pass.source), what);
  const std::uint64_t build_ns = now_ns() - start;
  const PassLaunch launch{program.get(), bindings, {1, 1, 1}};
  const std::uint64_t first_ns = dispatch_ns(device, launch, what);
  const std::uint64_t second_ns = dispatch_ns(device, launch, what);
  return {key_of(pass.source, device.info(), what).digest.hex().substr(0, 16), program->charge(),
          build_ns + first_ns - std::min(first_ns, second_ns)};
}

int record(int rounds, const std::string& id) {
  Registry registry;
  PluginLoader loader;
  const std::vector<std::string> plugins{"opengl", "dynamic_shaders"};
  for (const PluginReport& report : loader.load(plugins, plugins, registry, {})) {
    if (!report.loaded) throw std::runtime_error("plugin '" + report.name + "': " + report.why_not.text());
  }
  WorkCounters counters;
  const auto driver = need(registry.drivers().at("opengl").make({{}, &counters, {}, nullptr, {}}), "opengl");
  const auto device = need(driver->open(id), id);
  const auto generators = need(registry.generators("dynamic_shaders"), "dynamic_shaders");
  const auto generator = need(generators.front()->make({}), "dynamic_shaders");

  std::vector<Layer> layers;
  for (const char* network : {"resnet50", "mobilenet_v2", "vgg16", "prior_system"}) append_table(layers, network);
  append_one_offs(layers, 96);
  std::map<std::pair<std::string, std::size_t>, Cost> least;
  for (int round = 0; round < rounds; ++round) {
    for (const Layer& layer : layers) {
      const KernelPlan plan =
          need(generator->generate_variant(layer.spec, device->info(), Dialect::glsl, "direct/plain"), layer.name);
      if (!plan.prepare.empty()) throw std::runtime_error(layer.name + ": prepares constants, which is not recorded");
      for (std::size_t i = 0; i < plan.passes.size(); ++i) {
        const Cost cost = measure(*device, plan, plan.passes[i], layer.name);
        const auto [known, fresh] = least.try_emplace({layer.name, i}, cost);
        if (!fresh && cost.build_ns < known->second.build_ns) known->second = cost;
      }
    }
    std::fprintf(stderr, "record_trace: round %d of %d\n", round + 1, rounds);
  }
  std::printf("# layer program bytes build_ns: record_trace %d %s, on %s, %s\n", rounds, id.c_str(),
              device->info().name.c_str(), device->info().driver.c_str());
  for (const Layer& layer : layers) {
    for (auto at = least.lower_bound({layer.name, 0}); at != least.end() && at->first.first == layer.name; ++at) {
      std::printf("%s %s %llu %llu\n", layer.name.c_str(), at->second.key.c_str(),
                  static_cast<unsigned long long>(at->second.bytes),
                  static_cast<unsigned long long>(at->second.build_ns));
    }
  }
  return 0;
}

}  // namespace

int main(int count, char** words) {
  try {
    // A folder that cannot be: the driver keeps nothing, and still hands out program binaries, whose size is charged.
    setenv("MESA_SHADER_CACHE_DIR", "/proc/nope", 1);
    return record(count > 1 ? std::max(1, std::atoi(words[1])) : 5, count > 2 ? words[2] : "opengl:0");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "record_trace: %s\n", error.what());
    return 1;
  }
}

// What the executor's benchmarks share: a device of a plugin of this build, and plans of one pass.
//
// Thread-safety: none; a benchmark's main thread. Ownership: as each type says.
#pragma once

#include "executor/ring_executor.hpp"
#include "figures.hpp"
#include "places.hpp"

#include <kiln/plugin.hpp>

#include <dlfcn.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace kiln::bench {

template <class T>
T need(Result<T> result, const std::string& what) {
  if (!result) throw std::runtime_error(what + ": " + result.error().text());
  return std::move(result).value();
}

// The plugin stays loaded; its device dies before it.
class PluginDevice {
 public:
  PluginDevice(const std::string& plugin, const std::string& id) {
    const std::string path = plugins_folder() / (plugin + ".so");
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(dlerror());
    const auto* const entry = static_cast<const PluginEntry*>(dlsym(library, plugin_entry_symbol));
    if (entry == nullptr) throw std::runtime_error(path + ": no " + plugin_entry_symbol);
    if (const Status status = entry->register_fn(registry_, {entry->note.name, {}}); !status.ok()) {
      throw std::runtime_error(status.text());
    }
    driver_ = need(registry_.drivers().at(plugin).make({{}, &counters_, {}, nullptr, {}}), plugin);
    device_ = need(driver_->open(id), id);
  }

  const std::shared_ptr<Device>& device() const noexcept { return device_; }

 private:
  Registry registry_;
  WorkCounters counters_;
  std::unique_ptr<Driver> driver_;
  std::shared_ptr<Device> device_;
};

// A plan of one pass that binds its tensors in order, with its program.
struct Planned {
  std::shared_ptr<Device> device;
  std::shared_ptr<const KernelPlan> plan;
  ProgramHandle program;

  Submission submission(std::vector<TensorArgument> tensors) const {
    Submission made;
    made.device = device;
    made.plan = plan;
    made.programs = {program};
    made.tensors = std::move(tensors);
    return made;
  }
};

inline Planned plan(const std::shared_ptr<Device>& device, std::vector<TensorDecl> tensors, KernelSource source,
                    std::array<std::uint32_t, 3> grid) {
  KernelPlan plan;
  plan.variant = "benchmark";
  plan.tensors = std::move(tensors);
  Pass& pass = plan.passes.emplace_back();
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    const TensorRole role = plan.tensors[i].role;
    source.bindings.push_back(role == TensorRole::output  ? Access::write
                              : role == TensorRole::inout ? Access::read_write
                                                          : Access::read);
    pass.bindings.push_back({BindingSource::tensor, static_cast<std::uint32_t>(i)});
  }
  pass.grid = grid;
  pass.source = std::move(source);
  const std::shared_ptr<const Program> program = need(device->build(pass.source), "program");
  return {device, std::make_shared<const KernelPlan>(std::move(plan)), ProgramHandle(program)};
}

inline std::unique_ptr<Executor> ring(std::uint32_t in_flight) {
  ExecutorContext context;
  context.config.in_flight = in_flight;
  return need(RingExecutor::create(context), "ring");
}

// A ramp that wraps around within [-1, 1].
inline std::shared_ptr<HostTensor> tensor(Shape shape, float first, float step) {
  auto made = need(HostTensor::create(DType::f32, std::move(shape)), "tensor");
  float value = first;
  for (float& each : made->as<float>()) {
    each = value;
    value = value + step > 1 ? value + step - 2 : value + step;
  }
  return made;
}

inline double median(const std::vector<double>& values) { return values.empty() ? 0 : quantile(values, 0.5); }

}  // namespace kiln::bench

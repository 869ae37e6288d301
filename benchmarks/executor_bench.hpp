// What the executor's benchmarks share: plugins, plans and submissions for real devices.
//
// Thread-safety: none; a benchmark's main thread. Ownership: a Bench owns what it loaded.
#pragma once

#include "executor/ring_executor.hpp"

#include <kiln/kernel_generator.hpp>
#include <kiln/plugin_loader.hpp>

#include <algorithm>
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

// A spec, planned and built for one device, and what its submissions look like.
struct Planned {
  std::shared_ptr<Device> device;
  std::shared_ptr<const KernelPlan> plan;
  std::vector<ProgramHandle> programs, prepare;

  Submission submission(std::vector<TensorArgument> tensors) const {
    Submission made;
    made.device = device;
    made.plan = plan;
    made.programs = programs;
    made.prepare_programs = prepare;
    made.tensors = std::move(tensors);
    return made;
  }
};

class Bench {
 public:
  explicit Bench(const std::vector<std::string>& plugins) {
    for (const PluginReport& report : loader_.load(plugins, plugins, registry_, {})) {
      if (!report.loaded) throw std::runtime_error("plugin '" + report.name + "': " + report.why_not.text());
    }
  }

  std::shared_ptr<Device> open(const std::string& driver, const std::string& id, PluginSettings settings = {}) {
    drivers_.push_back(
        need(registry_.drivers().at(driver).make({{}, &counters_, {}, nullptr, std::move(settings)}), driver));
    return need(drivers_.back()->open(id), id);
  }

  Planned plan(const std::shared_ptr<Device>& device, const KernelSpec& spec) {
    for (const Dialect dialect : device->info().dialects) {
      for (const RegisteredGenerator* one : need(registry_.generators(any_generator()), "generators")) {
        if (std::find(one->dialects.begin(), one->dialects.end(), dialect) == one->dialects.end()) continue;
        const auto generator = need(one->make({}), "generator");
        Planned planned{device, nullptr, {}, {}};
        auto plan = need(generator->generate(spec, device->info(), dialect), "plan");
        for (const Pass& pass : plan.prepare) planned.prepare.push_back(build(*device, pass));
        for (const Pass& pass : plan.passes) planned.programs.push_back(build(*device, pass));
        planned.plan = std::make_shared<const KernelPlan>(std::move(plan));
        return planned;
      }
    }
    throw std::runtime_error(device->info().id + ": no generator writes its dialect");
  }

  std::unique_ptr<Executor> executor(std::uint32_t in_flight) {
    ExecutorContext context;
    context.config.in_flight = in_flight;
    return need(RingExecutor::create(context), "ring");
  }

 private:
  static ProgramHandle build(Device& device, const Pass& pass) {
    return ProgramHandle(std::shared_ptr<const Program>(need(device.build(pass.source), "program")));
  }
  std::string any_generator() const { return registry_.generators("dynamic_shaders") ? "dynamic_shaders" : "library"; }

  Registry registry_;
  PluginLoader loader_;
  WorkCounters counters_;
  std::vector<std::unique_ptr<Driver>> drivers_;
};

inline std::shared_ptr<HostTensor> tensor(Shape shape, float first, float step) {
  auto made = need(HostTensor::create(DType::f32, std::move(shape)), "tensor");
  float value = first;
  for (float& each : made->as<float>()) {
    each = value;
    value = value + step > 1 ? value + step - 2 : value + step;
  }
  return made;
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

}  // namespace kiln::bench

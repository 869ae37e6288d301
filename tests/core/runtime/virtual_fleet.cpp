#include "core/runtime/virtual_fleet.hpp"

#include "selector/performance_model.hpp"
#include "support/simulated/sim_driver.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <stdexcept>

namespace kiln::test {
namespace {

double log_uniform(std::mt19937_64& random, double least, double most) {
  return std::exp(std::uniform_real_distribution<double>(std::log(least), std::log(most))(random));
}

std::shared_ptr<HostTensor> zeros(Shape shape) { return HostTensor::create(DType::f32, std::move(shape)).value(); }

// Small enough that copying their tensors takes the host no time to speak of.
std::vector<Conv2dSpec> different_convolutions(std::size_t count) {
  std::vector<Conv2dSpec> specs;
  std::set<std::string> seen;
  for (const std::int64_t kernel : {3, 1, 5}) {
    for (const std::int64_t channels : {4, 8, 16, 32, 64}) {
      for (const std::int64_t side : {6, 8, 12, 16, 24, 32}) {
        Conv2dSpec spec;
        spec.c = spec.k = channels;
        spec.h = spec.w = side;
        spec.r = spec.s = kernel;
        spec.pad_y = spec.pad_x = kernel / 2;
        if (specs.size() < count && seen.insert(ShapeBucket(spec).shape).second) specs.push_back(spec);
      }
    }
  }
  if (specs.size() < count) throw std::runtime_error("only " + std::to_string(specs.size()) + " different buckets");
  return specs;
}

RunRequest request_of(const Conv2dSpec& spec) {
  RunRequest request;
  request.name = "job";
  request.spec = spec;
  request.tensors = {{zeros({1, spec.c, spec.h, spec.w}), nullptr},
                     {nullptr, Constant::create(zeros({spec.k, spec.c, spec.r, spec.s}))},
                     {zeros({1, spec.k, spec.out_h(), spec.out_w()}), nullptr}};
  return request;
}

double bytes_of(const TensorArgument& tensor) {
  return static_cast<double>(tensor.host != nullptr ? tensor.host->bytes().size()
                                                    : tensor.constant->tensor().bytes().size());
}

}  // namespace

std::vector<support::SimModel> drawn_models(std::size_t devices, double noise, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<support::SimModel> models(devices);
  for (std::size_t d = 0; d < devices; ++d) {
    support::SimModel& model = models[d];
    model.device = {log_uniform(random, 1e7, 3e8), log_uniform(random, 10, 200), log_uniform(random, 1, 25)};
    model.upload = {log_uniform(random, 1e5, 1e6), log_uniform(random, 1, 20), 0};
    model.readback = {log_uniform(random, 1e5, 1e6), log_uniform(random, 1, 20), 0};
    model.noise = noise;
    model.seed = 1000 * seed + d;
  }
  return models;
}

VirtualFleet::VirtualFleet(std::vector<support::SimModel> models, std::size_t shapes, const std::string& policy)
    : models_(std::move(models)) {
  for (const char* other : {"alpha", "beta"}) {
    fixture_.options(other).info.usable = false;
    fixture_.options(other).info.why_not = "not part of this test";
  }
  std::vector<support::SimOptions> devices(models_.size());
  for (std::size_t d = 0; d < devices.size(); ++d) {
    devices[d].model = models_[d];
    devices[d].info = support::sim_info("simulated:" + std::to_string(d));
    devices[d].info.serializes = false;  // programs are made anew, and nothing is written
    devices[d].computes = false;
  }
  const Status added = fixture_.registry.add_driver("test", "simulated", [devices](const DriverContext&) {
    return Result<std::unique_ptr<Driver>>(std::make_unique<support::SimDriver>(devices, support::Pace::virtual_time));
  });
  if (!added.ok()) throw std::runtime_error(added.text());
  fixture_.config.device.prefer = "auto";
  fixture_.config.selector.policy = policy;
  fixture_.config.cache.max_programs = 64 * 4;
  fixture_.log = {&words_, LogLevel::info};
  for (const Conv2dSpec& spec : different_convolutions(shapes)) requests_.push_back(request_of(spec));
}

RunReport VirtualFleet::serve(std::size_t shape, const std::string& device) {
  requests_[shape].device = device;
  RunReport report = fixture_.runtime().run(requests_[shape]);
  requests_[shape].device.clear();
  if (!report.status.ok()) throw std::runtime_error(report.status.text());
  return report;
}

Explanation VirtualFleet::explain_hurried(std::size_t shape) {
  RunRequest hurried = requests_[shape];
  hurried.timeout = std::chrono::hours(1);
  return fixture_.runtime().explain(hurried).value();
}

double VirtualFleet::truth_ns(std::size_t shape, std::size_t device) const {
  const RunRequest& request = requests_[shape];
  const support::SimModel& model = models_[device];
  double bound = 0;
  for (const TensorArgument& tensor : request.tensors) bound += bytes_of(tensor);
  return model.upload.of(bytes_of(request.tensors.front()), 0) + model.device.of(bound, flops(request.spec)) +
         model.readback.of(bytes_of(request.tensors.back()), 0);
}

std::size_t VirtualFleet::best(std::size_t shape) const {
  std::size_t best = 0;
  for (std::size_t d = 1; d < devices(); ++d) best = truth_ns(shape, d) < truth_ns(shape, best) ? d : best;
  return best;
}

std::size_t VirtualFleet::alarms(std::string_view device, std::string_view became) const {
  return static_cast<std::size_t>(std::ranges::count_if(words_.all, [&](const std::string& line) {
    return line.starts_with("device " + std::string(device) + ":") &&
           line.find("has become " + std::string(became)) != std::string::npos;
  }));
}

}  // namespace kiln::test

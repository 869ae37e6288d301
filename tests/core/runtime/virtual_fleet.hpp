// VirtualFleet: a Runtime over two to four simulated devices on one virtual clock: the selector, the cache, the
// executor and its threads are the real ones, and what a job truly takes is known from the devices' models.
//
// A job takes 10 ms to 10 s of the virtual clock, so that what little is measured by the host's (getting a program)
// decides nothing. Thread-safety: none. Ownership: owns everything; its cache folder goes with it.
#pragma once

#include "core/runtime/runtime_fixture.hpp"
#include "support/simulated/sim_model.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::test {

// Devices whose starts, rates and bandwidths are drawn apart, so that it depends on the shape which is the fastest.
std::vector<support::SimModel> drawn_models(std::size_t devices, double noise, std::uint64_t seed);

class VirtualFleet {
 public:
  // shapes: of as many different buckets; at most 64. Devices are "simulated:0" to "simulated:N-1".
  VirtualFleet(std::vector<support::SimModel> models, std::size_t shapes, const std::string& policy = "thompson");

  std::size_t devices() const { return models_.size(); }
  std::size_t shapes() const { return requests_.size(); }

  // One job of the shape; device: empty leaves it to the selector. Throws what the runtime says where it fails.
  RunReport serve(std::size_t shape, const std::string& device = {});
  Explanation explain(std::size_t shape) { return fixture_.runtime().explain(requests_[shape]).value(); }
  // Of a job with a deadline, which pays for no look.
  Explanation explain_hurried(std::size_t shape);

  // Without noise, and without what a device does once.
  double truth_ns(std::size_t shape, std::size_t device) const;
  std::size_t best(std::size_t shape) const;

  // How often the selector has said that a device became "slower" or "faster".
  std::size_t alarms(std::string_view device, std::string_view became) const;

 private:
  class Words final : public LogSink {
   public:
    void write(LogLevel, std::string_view, std::string_view message) noexcept override { all.emplace_back(message); }
    std::vector<std::string> all;
  };

  Words words_;
  RuntimeFixture fixture_;
  std::vector<support::SimModel> models_;
  std::vector<RunRequest> requests_;
};

}  // namespace kiln::test

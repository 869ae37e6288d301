// Devices, shapes and measurements of the selector's tests, all made up.
//
// Thread-safety: values. Ownership: Fleet owns the device facts that its candidates borrow.
#pragma once

#include <kiln/device_selector.hpp>
#include <kiln/registry.hpp>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace kiln::test {

Conv2dSpec conv(std::int64_t channels, std::int64_t side, std::int64_t kernel = 3);
DeviceInfo device_of(std::string id, double roof_gflops = 0);
Measurement run_of(double ms);

// Collects what is logged.
class Lines final : public LogSink {
 public:
  void write(LogLevel, std::string_view, std::string_view message) noexcept override { all.emplace_back(message); }
  bool mention(const std::string& words) const;
  std::vector<std::string> all;
};

class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

std::unique_ptr<DeviceSelector> selector_of(const std::string& name, SelectorContext context = {});
// The selector "learning"; `exploration` is the share of the time for looks at other devices than the best.
std::unique_ptr<DeviceSelector> learning(const std::string& policy = "thompson", double exploration = 0.02,
                                         Log log = {});

// Some devices whose true times are known, and a selector that is fed with them.
class Fleet {
 public:
  explicit Fleet(std::vector<DeviceInfo> devices) : devices_(std::move(devices)) {}

  std::vector<Candidate> candidates() const;
  const DeviceInfo& operator[](std::size_t i) const { return devices_[i]; }
  std::size_t size() const { return devices_.size(); }
  // Selects, "runs" the job in the time that `ms` gives for the device's index, records it, and answers the index.
  template <class Milliseconds>
  std::size_t serve(DeviceSelector& selector, const KernelSpec& spec, Milliseconds ms) const {
    const auto all = candidates();
    const std::size_t chosen = selector.select(spec, all, {}).value().candidate;
    selector.record(spec, devices_[chosen], run_of(ms(chosen)), {});
    return chosen;
  }

 private:
  std::vector<DeviceInfo> devices_;
};

}  // namespace kiln::test

// RuntimeFixture: a Runtime over two fixture devices, "alpha" and "beta", which the test can make fail.
// Thread-safety: none. Ownership: owns everything; its cache folder goes with it.
#pragma once

#include "support/fixture_device.hpp"

#include <kiln/runtime.hpp>

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

namespace kiln::test {

class RuntimeFixture {
 public:
  RuntimeFixture();
  ~RuntimeFixture();
  RuntimeFixture(const RuntimeFixture&) = delete;
  RuntimeFixture& operator=(const RuntimeFixture&) = delete;

  // Makes the runtime from `config`; throws with the message where it cannot.
  Runtime& runtime();
  void restart() { runtime_.reset(); }  // as a new process would: the cache folder stays
  const std::filesystem::path& folder() const noexcept { return folder_; }  // for what a test writes
  support::FixtureControls& controls(const std::string& device) { return *options_.at(device).controls; }
  support::FixtureOptions& options(const std::string& device) { return options_.at(device); }

  Config config;
  Registry registry;
  Log log;
  TraceSink* trace = nullptr;
  std::atomic<int> learned{0};  // runs that the generator was told of

 private:
  std::filesystem::path folder_;
  std::map<std::string, support::FixtureOptions> options_;
  std::unique_ptr<Runtime> runtime_;
};

// conv2d 1x4x6x6 → 3, 3x3, pad 1, with random-like contents and verification.
RunRequest small_conv2d();
// gemm 5x7 by 7x4, likewise.
RunRequest small_gemm();

}  // namespace kiln::test

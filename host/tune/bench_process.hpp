// BenchProcess: runs variants of one spec in kiln-probe, a process of its own, under a watchdog.
//
// Thread-safety: one thread. Ownership: the child and its process group are gone when this dies; the child dies with
// its parent too. What crashes or hangs costs the child: the next measurement starts another.
#pragma once

#include <kiln/buffer.hpp>
#include <kiln/clock.hpp>
#include <kiln/tuning.hpp>

#include "tune/bench_protocol.hpp"

#include <sys/types.h>

#include <filesystem>
#include <string>

namespace kiln::host {

class BenchProcess final : public VariantBench {
 public:
  BenchProcess(std::filesystem::path probe, BenchSetup setup) : probe_(std::move(probe)), setup_(std::move(setup)) {}
  ~BenchProcess() override;

  Result<VariantSamples> measure(std::string_view variant, std::uint32_t runs,
                                 std::chrono::nanoseconds limit) noexcept override;

 private:
  Status start();
  Status say(const std::string& line);
  Result<std::string> hear(Deadline deadline);
  // Ends the child; answers how it had ended by itself, where it had.
  std::string stop();

  std::filesystem::path probe_;
  BenchSetup setup_;
  pid_t pid_ = -1;
  UniqueFd to_child_, from_child_;
  std::string heard_;  // behind the last whole line
};

}  // namespace kiln::host

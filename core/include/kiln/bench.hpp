// Bench: measures variants of a kernel in a child process, for Runtime::tune().
//
// The child is the program kiln-probe (kiln/probe.hpp). If it crashes or hangs, the measurement fails and the next one
// starts a new child.
// Thread-safety: one thread at a time uses a bench. Ownership: the bench owns its child; its destructor ends the child
// and what that started.
//
//   auto bench = kiln::open_bench(kiln::PluginLoader::default_probe(), {sources, "opengl:0", conv});
//   auto outcome = runtime.tune(conv, "opengl:0", *bench, {});
#pragma once

#include <kiln/config_reader.hpp>
#include <kiln/kernel.hpp>
#include <kiln/tuning.hpp>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <variant>

namespace [[gnu::visibility("default")]] kiln {

struct BenchSetup {
  ConfigSources sources;  // of the parent: the child reads the same configuration
  std::string device;
  // A shape, measured on random tensors; or the name of a job with a user kernel, measured on the files of the job.
  // Outputs are compared with the expected ones of the job. Without those, variants with equal outputs form groups.
  std::variant<Conv2dSpec, GemmSpec, std::string> subject;
  // Descriptor of an anonymous file in the child that stores one output of each group for the next child. -1: none. Set
  // by the bench.
  int outputs = -1;
};

// The child starts at the first measurement. When `interrupted` becomes true, a measurement fails with `cancelled`; it
// must outlive the bench; null: never.
std::unique_ptr<VariantBench> open_bench(std::filesystem::path probe, BenchSetup setup,
                                         const std::atomic<bool>* interrupted = nullptr);

}  // namespace kiln

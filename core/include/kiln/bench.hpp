// Bench: measures variants of a kernel in a child process, for Runtime::tune().
//
// The child is the program kiln-probe (kiln/probe.hpp). If the child crashes or hangs, the measurement fails. The next
// measurement starts a new child.
// Thread-safety: one thread at a time uses a bench. Ownership: the bench owns its child. Its destructor ends the child and
// all processes that the child started.
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
  // The bench compares outputs with the job's expected outputs. Without these, variants with equal outputs form groups.
  std::variant<Conv2dSpec, GemmSpec, std::string> subject;
  // Descriptor of an anonymous file in the child. The file passes one output of each group to the next child. -1: none. The
  // bench sets it.
  int outputs = -1;
};

// Opens a bench. It starts the child at the first measurement. When `interrupted` becomes true, a measurement fails with
// `cancelled`. `interrupted` must outlive the bench. null: never interrupted.
std::unique_ptr<VariantBench> open_bench(std::filesystem::path probe, BenchSetup setup,
                                         const std::atomic<bool>* interrupted = nullptr);

}  // namespace kiln

// What a test binary hands to the conformance checks: one opened device and the generator that writes for it.
// Each binary defines subject() once; the checks are compiled once and linked into all.
// Thread-safety: read-only once built. Ownership: the binary owns all of it until main() ends.
#pragma once

#include <kiln/device.hpp>
#include <kiln/kernel_generator.hpp>

#include <functional>
#include <memory>
#include <string>

namespace kiln::conformance {

struct Subject {
  std::shared_ptr<Device> device;    // null: there is none on this machine; `absent` says why
  std::string absent;                // a skip carries its reason
  WorkCounters* counters = nullptr;  // those given to the device's driver
  std::shared_ptr<KernelGenerator> generator;
  Dialect dialect = Dialect::invalid;  // the device's, which the generator writes
  Driver* driver = nullptr;            // the device's; null: what it enumerates is not checked
};

// REQUIRES: the same Subject at each call; it lives until main() ends.
Subject& subject();

}  // namespace kiln::conformance

// The device that the conformance checks are run on in this binary.
#include "conformance/subject.hpp"

#include "cpu/cpu_under_test.hpp"

namespace kiln::conformance {

Subject& subject() {
  static Subject cpu = [] {
    cpu_test::OpenedCpu& opened = cpu_test::shared_cpu();
    Subject made;
    made.device = opened.device;
    made.counters = &opened.plugin.counters();
    made.generator = opened.generator;
    made.driver = &opened.plugin.driver();
    made.dialect = Dialect::library;
    return made;
  }();
  return cpu;
}

}  // namespace kiln::conformance

// The conformance library's subject: a device made of host memory.
#include "conformance/subject.hpp"

#include <memory>

#include "conformance/selftest/host_device.hpp"

namespace kiln::conformance {
namespace {

struct Host {
  WorkCounters counters;
  Subject subject;

  Host() {
    subject.device = std::make_shared<HostDevice>(counters);
    subject.counters = &counters;
    subject.generator = std::make_shared<HostGenerator>();
    subject.dialect = Dialect::library;
  }
};

}  // namespace

Subject& subject() {
  static Host host;
  return host.subject;
}

}  // namespace kiln::conformance

// The conformance library's subject: the simulated device, loaded as the plugin that it is.
#include "conformance/subject.hpp"

#include "support/plugin_under_test.hpp"

#include <stdexcept>

namespace kiln::conformance {
namespace {

struct Owned {
  Owned() {
    subject.device = plugin.open("simulated:0");
    subject.driver = &plugin.driver();
    subject.counters = &plugin.counters();
    subject.dialect = Dialect::library;
    auto generators = plugin.registry().generators("simulated");
    if (!generators) throw std::runtime_error(generators.error().text());
    auto made = generators->front()->make({});
    if (!made) throw std::runtime_error(made.error().text());
    subject.generator = std::move(made).value();
  }

  // Costs that are not 0, so that its clock moves.
  support::PluginUnderTest plugin{"simulated",
                                  {{"upload_byte_ns", 0.1},
                                   {"device_fixed_ns", 5e4},
                                   {"device_flop_ns", 0.01},
                                   {"readback_byte_ns", 0.1},
                                   {"noise", 0.1}},
                                  KILN_FIXTURE_DIR};
  Subject subject;
};

}  // namespace

Subject& subject() {
  static Owned owned;
  return owned.subject;
}

}  // namespace kiln::conformance

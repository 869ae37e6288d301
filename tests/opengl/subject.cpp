// The conformance library's subject: the first OpenGL device, with the generator of dynamic_shaders where it is built.
#include "conformance/subject.hpp"

#include <stdexcept>

#include "support/plugin_under_test.hpp"

namespace kiln::conformance {
namespace {

struct Owned {
  Owned() {
    auto opened = opengl.driver().open("opengl:0");
    if (opened) {
      subject.device = std::move(*opened);
    } else {
      subject.absent = opened.error().message;
    }
    subject.driver = &opengl.driver();
    subject.counters = &opengl.counters();
    subject.dialect = Dialect::glsl;
#ifdef KILN_HAS_GENERATOR
    auto generators = shaders.registry().generators("dynamic_shaders");
    if (!generators) throw std::runtime_error(generators.error().text());
    auto made = generators->front()->make({});
    if (!made) throw std::runtime_error(made.error().text());
    subject.generator = std::move(made).value();
#endif
  }

  support::PluginUnderTest opengl{"opengl"};
#ifdef KILN_HAS_GENERATOR
  support::PluginUnderTest shaders{"dynamic_shaders"};
#endif
  Subject subject;
};

}  // namespace

Subject& subject() {
  // Complete only after EGL is open, hence destroyed before EGL's own exit handlers run.
  static Owned owned;
  return owned.subject;
}

}  // namespace kiln::conformance

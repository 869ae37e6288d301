// Steps of the pipelines that the tests of their schedules and chains make: layers of six numbers.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include <kiln/pipeline.hpp>

#include <string>

namespace kiln::test {

inline PipelineStep relu(const std::string& name, const std::string& from, const std::string& to) {
  ActivationSpec spec;
  spec.shape = {6};
  return {name, spec, {{from, {}}, {to, {}}}};
}

inline PipelineStep sum(const std::string& name, const std::string& a, const std::string& b, const std::string& to) {
  AddSpec spec;
  spec.shape = {6};
  return {name, spec, {{a, {}}, {b, {}}, {to, {}}}};
}

}  // namespace kiln::test

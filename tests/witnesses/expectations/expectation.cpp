#include "witnesses/expectations/expectation.hpp"

#include "witnesses/catalog/contents.hpp"

namespace kiln::witness {

Given::Given(const ShaderCase& shader) {
  for (const BufferSpec& buffer : shader.buffers) contents_[buffer.name] = initial_contents(shader, buffer);
}

const Bytes& Given::contents(std::string_view name) const {
  const auto found = contents_.find(name);
  if (found == contents_.end()) throw std::runtime_error("no buffer " + std::string(name));
  return found->second;
}

Rules rules() {
  Rules all;
  add_integer_rules(all);
  add_float_rules(all);
  add_elementary_rules(all);
  add_double_rules(all);
  add_vector_rules(all);
  add_memory_rules(all);
  add_control_rules(all);
  add_algorithm_rules(all);
  add_small_type_rules(all);
  return all;
}

}  // namespace kiln::witness

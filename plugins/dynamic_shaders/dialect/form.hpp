// Form: in what the passes of a plan are written: the language, and whether a text holds for one shape or for any.
//
// For one shape its numbers are written out. For any shape they have names, a program reads them from one more binding,
// and each pass comes with the table that this binding holds: so the same text, and the same program, serves other
// shapes with other tables. Thread-safety: values. Ownership: borrows `tables`.
#pragma once

#include <kiln/kernel.hpp>

#include <cstdint>
#include <vector>

namespace kiln::dynamic_shaders {

using NumberTable = std::vector<std::int32_t>;

struct Form {
  Form(Dialect language = Dialect::glsl, std::vector<NumberTable>* to = nullptr) : dialect(language), tables(to) {}

  bool any_shape() const noexcept { return tables != nullptr; }

  Dialect dialect;
  std::vector<NumberTable>* tables;  // table i is bound as {BindingSource::constant, i}; null: for one shape
};

}  // namespace kiln::dynamic_shaders

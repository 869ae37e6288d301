// What a case must answer, worked out on the host from the words of the specification and not from the shader's text:
// a third opinion beside the two drivers' compilers. A buffer may have several right answers; each element is then one
// of them.
// Thread-safety: pure functions; rules() may be called from any thread. Ownership: values.
#pragma once

#include "witnesses/catalog/shader_case.hpp"

#include <cstring>
#include <functional>
#include <map>
#include <stdexcept>

namespace kiln::witness {

// A case before its first dispatch.
class Given {
 public:
  explicit Given(const ShaderCase& shader);

  // The contents of the buffer, as numbers of type T. REQUIRES: the case has it.
  template <class T>
  std::vector<T> read(std::string_view name) const {
    const Bytes& bytes = contents(name);
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
    return values;
  }

 private:
  const Bytes& contents(std::string_view name) const;

  std::map<std::string, Bytes, std::less<>> contents_;
};

// Buffer name: its right answers.
class Expected {
 public:
  template <class T>
  void add(const std::string& name, const std::vector<T>& values) {
    Bytes bytes(values.size() * sizeof(T));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    answers_[name].push_back(std::move(bytes));
  }
  // No answers: the rule says nothing of that buffer.
  std::vector<Bytes> of(const std::string& name) const {
    const auto found = answers_.find(name);
    return found == answers_.end() ? std::vector<Bytes>{} : found->second;
  }

 private:
  std::map<std::string, std::vector<Bytes>> answers_;
};

using Rule = std::function<void(const Given&, Expected&)>;
using Rules = std::map<std::string, Rule, std::less<>>;

// By the case's name. Every rule is of a case; not every case has a rule.
Rules rules();

void add_integer_rules(Rules& rules);
void add_float_rules(Rules& rules);
void add_elementary_rules(Rules& rules);
void add_double_rules(Rules& rules);
void add_vector_rules(Rules& rules);
void add_memory_rules(Rules& rules);
void add_control_rules(Rules& rules);
void add_algorithm_rules(Rules& rules);
void add_small_type_rules(Rules& rules);

// `width` values for each of `count` elements: fill(i, pointer to the first of the i-th).
template <class T, class Fill>
std::vector<T> rows(std::size_t count, std::size_t width, Fill&& fill) {
  std::vector<T> values(count * width);
  for (std::size_t i = 0; i < count; ++i) fill(i, values.data() + i * width);
  return values;
}

}  // namespace kiln::witness

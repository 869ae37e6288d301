// FieldReader: one object of a JSON document, read field by field, each checked for its type.
//
// The first thing that is not as expected is kept as the document's problem, with its place and both sides
// ("jobs[3].ms.device: expected a number of at least 0, found a text"); from then on every answer is empty, and who
// reads asks once, at the end. Thread-safety: one thread at a time. Ownership: borrows the document and the problem.
#pragma once

#include "base/json.hpp"

#include <kiln/status.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kiln::host::page {

class FieldReader {
 public:
  // place: where the object stands, as "jobs[3]"; empty: it is the document.
  FieldReader(const Json& object, std::string place, Status& problem);

  bool has(const char* name) const;
  // What is absent is a problem; with `or_null` it is nullopt, as null is.
  double number(const char* name);  // of either sign
  double amount(const char* name);  // a number of at least 0
  std::optional<double> amount_or_null(const char* name);
  std::uint64_t count(const char* name);  // a whole number of at least 0
  std::string text(const char* name);
  std::string text_or_null(const char* name);  // empty
  bool truth(const char* name);
  std::optional<bool> truth_or_null(const char* name);
  FieldReader object(const char* name);
  std::optional<FieldReader> object_or_null(const char* name);
  std::vector<FieldReader> objects(const char* name);  // of an array
  const Json& json() const noexcept { return *object_; }

  // Where the document is wrong in a way that no single field shows.
  void refuse(const std::string& why);

 private:
  const Json* at(const char* name, const char* expected);  // nullptr: absent, and told
  const Json* at_or_null(const char* name) const;
  void expected(const char* name, const char* what, const Json& found);
  std::string place_of(const std::string& name) const;

  const Json* object_;
  std::string place_;
  Status* problem_;
};

}  // namespace kiln::host::page

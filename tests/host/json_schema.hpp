// JSON Schema, as far as docs/json-output.schema.json uses it: type, const, enum, minimum, properties, required,
// additionalProperties, items, anyOf and $ref within the file. A word that it does not know is a failure, so that no
// rule of the file goes unchecked; so is a member that the schema does not describe.
//
// Thread-safety: pure function. Ownership: values.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace kiln::test {

// What of `value` breaks the rules of `schema`, each with its path ("/jobs/0/name: found 3, expected string"); empty:
// it is valid. `file`: what "$ref" points into.
std::vector<std::string> schema_failures(const nlohmann::json& value, const nlohmann::json& schema,
                                         const nlohmann::json& file);

}  // namespace kiln::test

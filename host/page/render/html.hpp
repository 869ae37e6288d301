// Text as HTML and as what stands inside a script element: nothing of it is markup, whoever wrote it.
//
// Thread-safety: pure. Ownership: values.
#pragma once

#include "base/json.hpp"

#include <string>
#include <string_view>

namespace kiln::host::page {

// For text and for attribute values between double quotes. Control characters and what is no UTF-8 are written as
// U+FFFD.
std::string escaped(std::string_view text);
// JSON in which no "<", ">" or "&" stands, and no line separator that older scripts end a line at: no "</script>" can.
std::string script_json(const Json& json);
// 'sha256-…' of a content security policy: what allows one inline script or style and no other.
std::string policy_hash(std::string_view content);

}  // namespace kiln::host::page

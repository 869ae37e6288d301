// Json: documents for tools, people and other processes. The library's parser and writer take longer to compile than
// most of our sources: they are compiled once, here.
//
// Thread-safety: pure. Ownership: values. Members keep the order in which they were put.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace kiln {

using Json = nlohmann::ordered_json;

// is_discarded() where the text is no JSON.
Json parse_json(std::string_view text);

// Over several lines with `indent` spaces a level; on one line without. What is no UTF-8, in a driver's name or a path,
// is written as U+FFFD, and characters that a terminal obeys as escapes.
std::string json_text(const Json& json, int indent = -1);

}  // namespace kiln

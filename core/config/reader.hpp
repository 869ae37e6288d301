// read_config_text: read_config with the file's text in hand; what tests and the fuzzer call.
//
// Thread-safety: pure but for the job tables the text names. Ownership: values.
#pragma once

#include <kiln/config_reader.hpp>

#include <string>
#include <string_view>

namespace kiln::config {

// name: how places name the text; its folder is where relative paths start. sources.file is not looked at.
ConfigReading read_config_text(std::string_view text, const std::string& name, const ConfigSources& sources);

}  // namespace kiln::config

// The words of a GLSL compiler's errors: the user's file names in the driver's log, and what a text written for Vulkan
// must change.
//
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace kiln::opengl {

// The log with "FILE:LINE:COLUMN: " for each "SOURCE:LINE(COLUMN): " (Mesa), "SOURCE(LINE) : " (NVIDIA) or
// "ERROR: SOURCE:LINE: " (others) that begins a line. files[n] is the name of source string n; one without a name stays
// as it is.
std::string with_file_names(std::string_view log, std::span<const std::string> files);

// One sentence and a line for each construct of Vulkan's GLSL in the text, with its places and what to write instead;
// empty: there is none. text: as the compiler had it.
std::string vulkan_advice(std::string_view text, std::span<const std::string> files);

}  // namespace kiln::opengl

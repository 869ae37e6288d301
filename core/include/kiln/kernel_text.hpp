// read_kernel_text: reads the source of a user kernel from a file and replaces every #include by the included file.
//
// Thread-safety: functions from any thread. Ownership: values.
//
//   auto read = kiln::read_kernel_text({.folder = "shaders", .file = "blur.comp", .include = {"lib"}}, kiln::Dialect::glsl);
//   if (!read) return read.error();  // "blur.comp:3: #include "noise.glsl": no such file (…)"
//   kiln::UserKernelSpec spec;
//   spec.dialect = kiln::Dialect::glsl;
//   spec.text = read->text;
//   spec.path = "blur.comp";
//   spec.includes = read->includes;  // names for the compiler's errors
#pragma once

#include <kiln/kernel.hpp>
#include <kiln/status.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace [[gnu::visibility("default")]] kiln {

struct KernelFile {
  std::filesystem::path folder;      // base of `file` and `include`
  std::string file;                  // also the name in messages
  std::vector<std::string> include;  // searched after the folder of the including file
};

struct KernelText {
  std::string text;                   // LF line ends, no byte-order mark, no NUL
  std::vector<std::string> includes;  // UserKernelSpec::includes
};

// The result contains the text of all included files, so the text is part of the program's key. The file names are not.
// #pragma once and include guards work. The function does not evaluate conditions: a missing file between #if and #endif
// becomes an #error line. In GLSL, it removes the #extension lines of the include extensions.
// io: the source cannot be read. invalid_argument with FILE:LINE: an included file is missing (lists the searched
// places), a circular include without guard (lists the chain), UTF-16 or UTF-32, a NUL byte, or more than 16 MiB.
Result<KernelText> read_kernel_text(const KernelFile& file, Dialect dialect);

// Returns the name of source string `number` in the #line directives that read_kernel_text() writes for OpenCL C.
std::string line_marker(std::size_t number);

}  // namespace kiln

// read_kernel_text(): the source of a user's kernel, read from its file, with every #include replaced by the file.
//
// Thread-safety: reads files, else pure. Ownership: values.
//
//   auto read = kiln::read_kernel_text({.folder = "shaders", .file = "blur.comp", .include = {"lib"}}, Dialect::glsl);
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

namespace kiln {

struct KernelFile {
  std::filesystem::path folder;      // `file` and `include` are relative to it
  std::string file;                  // also its name in messages
  std::vector<std::string> include;  // folders that are searched after that of the including file
};

struct KernelText {
  std::string text;                   // LF line ends, no byte-order mark, no NUL
  std::vector<std::string> includes;  // UserKernelSpec::includes
};

// Included files are part of the text, hence of the program's key; their names are not. #pragma once and include guards
// are honoured. Conditions are not evaluated: a file that is missing between #if and #endif becomes an #error line,
// which the compiler reports if it reaches it. GLSL: #extension lines of the include extensions are removed.
// io_error: the source cannot be read. invalid_argument with FILE:LINE: an included file is missing (with the places
// that were searched), files include each other without a guard (with the chain), UTF-16 or UTF-32, a NUL byte, more
// than 16 MiB.
Result<KernelText> read_kernel_text(const KernelFile& file, Dialect dialect);

// The name of source string `number` in #line directives of `text`, as read_kernel_text() writes them for OpenCL C.
std::string line_marker(std::size_t number);

}  // namespace kiln

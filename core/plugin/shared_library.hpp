// SharedLibrary: a library opened with every symbol bound at once and visible to nobody else. The only user of
// Boost.DLL.
//
// Thread-safety: as dlopen and dlsym. Ownership: a handle; the library itself stays loaded until the process exits,
// because threads, static objects and objects that it made may still use its code.
#pragma once

#include <kiln/status.hpp>

#include <filesystem>
#include <memory>

namespace kiln {

class SharedLibrary {
 public:
  // unavailable, with the dynamic linker's own words. REQUIRES: path is absolute.
  static Result<SharedLibrary> open(const std::filesystem::path& path);

  SharedLibrary(SharedLibrary&&) noexcept;
  ~SharedLibrary();

  // Null where the library does not export it.
  const void* symbol(const char* name) const noexcept;

 private:
  struct Handle;
  explicit SharedLibrary(std::unique_ptr<Handle> handle) noexcept;
  std::unique_ptr<Handle> handle_;
};

}  // namespace kiln

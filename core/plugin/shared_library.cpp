#include "plugin/shared_library.hpp"

#define BOOST_DLL_USE_STD_FS  // otherwise a Boost library would be linked
#include <dlfcn.h>
#include <boost/dll/shared_library.hpp>

#include <string>

namespace kiln {
namespace {

// Boost has no name for RTLD_NODELETE, and passes on bits that it does not know.
constexpr auto load_mode =
    static_cast<boost::dll::load_mode::type>(static_cast<int>(boost::dll::load_mode::rtld_now) |
                                             static_cast<int>(boost::dll::load_mode::rtld_local) | RTLD_NODELETE);

// Boost wraps what dlerror said in words of its own; a person needs the part inside.
std::string linker_words(const std::string& thrown) {
  constexpr std::string_view before = "dlerror system message: ";
  const std::size_t at = thrown.find(before);
  if (at == std::string::npos) return thrown;
  const std::size_t begin = at + before.size();
  return thrown.substr(begin, thrown.rfind(')') - begin);
}

}  // namespace

struct SharedLibrary::Handle {
  boost::dll::shared_library library;
};

SharedLibrary::SharedLibrary(std::unique_ptr<Handle> handle) noexcept : handle_(std::move(handle)) {}
SharedLibrary::SharedLibrary(SharedLibrary&&) noexcept = default;
SharedLibrary::~SharedLibrary() = default;

Result<SharedLibrary> SharedLibrary::open(const std::filesystem::path& path) {
  if (!path.is_absolute()) return invalid_argument("library " + path.string() + ": not an absolute path");
  try {
    return SharedLibrary(std::unique_ptr<Handle>(new Handle{boost::dll::shared_library(path, load_mode)}));
  } catch (const std::exception& error) {
    return unavailable("the dynamic linker refuses it: " + linker_words(error.what()));
  }
}

const void* SharedLibrary::symbol(const char* name) const noexcept { return dlsym(handle_->library.native(), name); }

}  // namespace kiln

#include "plugin/loaded_plugin.hpp"

#include "plugin/plugin_note.hpp"

#include <exception>

namespace kiln {
namespace {

Status call_register(const PluginEntry& entry, Registry& registry, Log log) {
  try {
    return entry.register_fn(registry, {entry.note.name, log}).within("it could not register");
  } catch (const std::exception& error) {
    return internal_error(std::string("it threw while registering: ") + error.what());
  } catch (...) {
    return internal_error("it threw while registering: something that is no std::exception");
  }
}

}  // namespace

std::string plugin_name(const std::filesystem::path& path) { return path.stem().string(); }

Result<PluginNote> inspect_plugin(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  auto note = parse_plugin_note(bytes);
  if (!note) return note;
  if (Status status = check_note(*note, plugin_name(path)); !status.ok()) return status;
  return note;
}

Result<LoadedPlugin> LoadedPlugin::open(const std::filesystem::path& path, const PluginNote& note, Log log) {
  auto library = SharedLibrary::open(path);
  if (!library) return std::move(library).error();
  const auto* entry = static_cast<const PluginEntry*>(library->symbol(plugin_entry_symbol));
  if (entry == nullptr) {
    return corrupt(std::string("it has a note of Kiln but does not export the object ") + plugin_entry_symbol);
  }
  if (Status status = compare_notes(note, entry->note); !status.ok()) return status;
  if (entry->register_fn == nullptr) return corrupt("its object has no register function");
  LoadedPlugin plugin{std::move(library).value(), {}};
  if (Status status = call_register(*entry, plugin.registered, log); !status.ok()) return status;
  return plugin;
}

}  // namespace kiln

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

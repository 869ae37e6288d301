#include "plugin/loaded_plugin.hpp"

#include "plugin/file/plugin_note.hpp"

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

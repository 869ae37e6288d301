// Plugin: the entry point of a shared library that extends Kiln.
//
// A plugin uses KILN_PLUGIN(name, version, register_fn) once, at namespace scope. The macro defines an ELF note (section
// .note.kiln, owner "Kiln", type 1) and the exported object kiln_plugin_entry. The loader reads the note before dlopen. The
// object has the same note and the register function. docs/plugin-contract.md has the rules.
// Thread-safety: the loader calls register_fn once, on the loading thread. Ownership: the registry owns the registered
// factories.
//
//   kiln::Status register_mine(kiln::Registry& registry, const kiln::PluginContext& context) {
//     return registry.add_driver(context.name, "mine", make_driver);
//   }
//   KILN_PLUGIN("mine", "1.0.0", register_mine);
#pragma once

#include <kiln/registry.hpp>
#include <kiln/status.hpp>

#include <cstdint>

namespace [[gnu::visibility("default")]] kiln {

// Increases with every change of a public header that affects plugins. The loader rejects a plugin with another value.
inline constexpr std::uint32_t plugin_abi = 21;

// Properties of the build that must be equal in host and plugin.
#define KILN_STRINGIZE_(x) #x
#define KILN_STRINGIZE(x) KILN_STRINGIZE_(x)
#if defined(__clang__)
#define KILN_COMPILER_ "clang"
#elif defined(__GNUC__)
#define KILN_COMPILER_ "gcc"
#else
#error "Kiln is built with GCC or Clang"
#endif
#if defined(__clang__)
#define KILN_CLANG_WATCHES_(sanitizer) __has_feature(sanitizer)
// The sanitizer adds padding bytes after objects, but readers of notes read the whole section.
#define KILN_NOTE_ATTRIBUTE_ __attribute__((no_sanitize("address")))
#else
#define KILN_CLANG_WATCHES_(sanitizer) 0
#define KILN_NOTE_ATTRIBUTE_
#endif
#if defined(__SANITIZE_ADDRESS__) || KILN_CLANG_WATCHES_(address_sanitizer)
#define KILN_SANITIZER_ "address"
#elif defined(__SANITIZE_THREAD__) || KILN_CLANG_WATCHES_(thread_sanitizer)
#define KILN_SANITIZER_ "thread"
#else
#define KILN_SANITIZER_ "none"
#endif
#define KILN_BUILD_FINGERPRINT                                                           \
  KILN_COMPILER_ " cxxabi=" KILN_STRINGIZE(__GXX_ABI_VERSION) " stdlib=" KILN_STRINGIZE( \
      _GLIBCXX_USE_CXX11_ABI) " std=" KILN_STRINGIZE(__cplusplus) " sanitizer=" KILN_SANITIZER_

inline constexpr const char* build_fingerprint = KILN_BUILD_FINGERPRINT;

// Arguments of the register function. Pass `name` to every add_* function.
struct PluginContext {
  const char* name = nullptr;
  Log log;
};

// Not noexcept: the loader reports a plugin that throws an exception here as broken.
using RegisterFn = Status (*)(Registry& registry, const PluginContext& context);

// The fields have fixed sizes, so that the note in the file and the object in memory have the same layout.
struct PluginNote {
  std::uint32_t abi;
  char fingerprint[124];
  char name[64];
  char version[32];
};
static_assert(sizeof(PluginNote) == 224);

struct PluginEntry {
  PluginNote note;
  RegisterFn register_fn;
};

struct PluginElfNote {  // the layout of an ELF note: Elf64_Nhdr, owner padded to four bytes, descriptor
  std::uint32_t owner_bytes;
  std::uint32_t note_bytes;
  std::uint32_t type;
  char owner[8];
  PluginNote note;
};
static_assert(sizeof(PluginElfNote) == 12 + 8 + sizeof(PluginNote));

inline constexpr const char* plugin_entry_symbol = "kiln_plugin_entry";

}  // namespace kiln

#define KILN_PLUGIN(plugin_name, plugin_version, register_function)                                                    \
  extern "C" __attribute__((visibility("default"), used)) const ::kiln::PluginEntry kiln_plugin_entry = {              \
      {::kiln::plugin_abi, KILN_BUILD_FINGERPRINT, plugin_name, plugin_version}, register_function};                   \
  __attribute__((section(".note.kiln"), used, aligned(4))) KILN_NOTE_ATTRIBUTE_                                        \
      static const ::kiln::PluginElfNote kiln_plugin_elf_note = {                                                      \
      5,                                                                                                               \
      sizeof(::kiln::PluginNote),                                                                                      \
      1,                                                                                                               \
      "Kiln",                                                                                                          \
      {::kiln::plugin_abi, KILN_BUILD_FINGERPRINT, plugin_name, plugin_version}}

// Plugin: how a shared library enters Kiln.
//
// A plugin writes KILN_PLUGIN(name, version, register_fn) once, at namespace scope, in one source file. That gives
//  - an ELF note (section .note.kiln, owner "Kiln", type 1) which the loader reads from the file before dlopen;
//  - one exported object, kiln_plugin_entry, which repeats the note and holds the register function.
// Thread-safety: register_fn is called once, on the loading thread. Ownership: the registry owns what it is given.
// Numbered rules with a test each: docs/plugin-contract.md.
#pragma once

#include <kiln/registry.hpp>
#include <kiln/status.hpp>

#include <cstdint>

namespace kiln {

// Raised with every change of a header in include/kiln that a plugin can see. A plugin that was built for another value
// is refused.
inline constexpr std::uint32_t plugin_abi = 10;

// What must agree between the host and a plugin for C++ to cross the line.
#define KILN_STRINGIZE_(x) #x
#define KILN_STRINGIZE(x) KILN_STRINGIZE_(x)
#if defined(__clang__)
#define KILN_COMPILER_ "clang"
#elif defined(__GNUC__)
#define KILN_COMPILER_ "gcc"
#else
#error "Kiln is built with GCC or Clang"
#endif
#if defined(__SANITIZE_ADDRESS__)
#define KILN_SANITIZER_ "address"
#elif defined(__SANITIZE_THREAD__)
#define KILN_SANITIZER_ "thread"
#else
#define KILN_SANITIZER_ "none"
#endif
#define KILN_BUILD_FINGERPRINT                                                           \
  KILN_COMPILER_ " cxxabi=" KILN_STRINGIZE(__GXX_ABI_VERSION) " stdlib=" KILN_STRINGIZE( \
      _GLIBCXX_USE_CXX11_ABI) " std=" KILN_STRINGIZE(__cplusplus) " sanitizer=" KILN_SANITIZER_

inline constexpr const char* build_fingerprint = KILN_BUILD_FINGERPRINT;

// What a plugin is given beside the registry. `name` is the plugin's own: pass it to every add_*.
struct PluginContext {
  const char* name = nullptr;
  Log log;
};

// Not noexcept on purpose: a plugin that throws here is reported as broken, not a crash.
using RegisterFn = Status (*)(Registry& registry, const PluginContext& context);

// Text fields are fixed so that the note in the file and the object in memory have one layout.
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
  __attribute__((section(".note.kiln"), used, aligned(4))) static const ::kiln::PluginElfNote kiln_plugin_elf_note = { \
      5,                                                                                                               \
      sizeof(::kiln::PluginNote),                                                                                      \
      1,                                                                                                               \
      "Kiln",                                                                                                          \
      {::kiln::plugin_abi, KILN_BUILD_FINGERPRINT, plugin_name, plugin_version}}

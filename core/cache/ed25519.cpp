// Opens the module of Ed25519. A build for fuzzing links the module's code instead.
#include "cache/signing_keys.hpp"

#include <dlfcn.h>

#include <filesystem>
#include <string>
#include <system_error>

#ifdef KILN_ED25519_LINKED
extern "C" const KilnEd25519 kiln_ed25519;
#endif

namespace kiln {

namespace {

#ifdef KILN_ED25519_LINKED
Result<const KilnEd25519*> open_ed25519() { return &kiln_ed25519; }
#else
std::string words_of_loader() {
  const char* words = dlerror();
  return words == nullptr ? "no reason given" : words;
}

Result<const KilnEd25519*> open_ed25519() {
  Dl_info here{};
  if (dladdr(reinterpret_cast<const void*>(&open_ed25519), &here) == 0 || here.dli_fname == nullptr) {
    return unavailable("Ed25519: cannot find the folder of libkiln_core.so");
  }
  std::error_code ignored;
  const std::filesystem::path core = std::filesystem::absolute(here.dli_fname, ignored);
  const std::string path = (core.parent_path() / "kiln" / "libkiln_ed25519.so").string();
  void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (module == nullptr) return unavailable("Ed25519: " + words_of_loader());
  const auto* functions = static_cast<const KilnEd25519*>(dlsym(module, ed25519_symbol));
  if (functions == nullptr) return unavailable("Ed25519: " + words_of_loader());
  return functions;
}
#endif

}  // namespace

Result<const KilnEd25519*> ed25519() {
  // The module stays loaded (RTLD_NODELETE), so its functions are looked up once. Never destroyed: another thread may
  // verify at exit.
  static const auto& opened = *new Result<const KilnEd25519*>(open_ed25519());
  return opened;
}

}  // namespace kiln

// An application of another C++ standard library, built by examples_check with clang++ -stdlib=libc++: its strings,
// streams and exceptions and those of libkiln.so do not meet.
#include <kiln.h>

#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#ifndef _LIBCPP_VERSION
#error "expected -stdlib=libc++"
#endif

static kiln_code build(void* user, kiln_request* request) {
  const std::string& mode = *static_cast<std::string*>(user);
  if (mode == "throws") throw std::runtime_error("a runtime_error of libc++");
  if (mode == "throws a number") throw 3;
  const std::vector<char> bytes(1000, 'x');
  return kiln_request_set_bytes(request, bytes.data(), bytes.size()) ? KILN_OK : KILN_UNAVAILABLE;
}

static std::string get(kiln_cache* cache, std::string mode) {
  const kiln_identity identity = kiln_identity_of("test", "device", "driver");
  kiln_compiler compiler = kiln_compiler_default();
  compiler.user = &mode;
  compiler.build = build;
  kiln_key_builder* builder = nullptr;
  kiln_key* key = nullptr;
  kiln_program* program = nullptr;
  kiln_status* failure = kiln_key_builder_create(cache, &identity, mode.c_str(), &builder);
  if (failure == nullptr) failure = kiln_key_builder_text(builder, "source", mode.c_str());
  if (failure == nullptr) failure = kiln_key_builder_finish(builder, &key);
  if (failure == nullptr) failure = kiln_cache_get_or_build(cache, key, &compiler, &program);
  std::string said = failure == nullptr
                         ? "tier " + std::to_string(kiln_program_tier(program))
                         : std::string(kiln_code_name(kiln_status_code(failure))) + ": " + kiln_status_message(failure);
  kiln_status_free(failure);
  kiln_program_free(program);
  kiln_key_free(key);
  kiln_key_builder_free(builder);
  return said;
}

int main() {
  kiln_cache* cache = nullptr;
  if (kiln_status* failure = kiln_cache_open(nullptr, &cache)) {
    std::fprintf(stderr, "%s\n", kiln_status_message(failure));
    return 1;
  }
  for (const char* mode : {"works", "works", "throws", "throws a number", "works"})
    std::printf("%s\n", get(cache, mode).c_str());
  kiln_cache_close(cache);
  return 0;
}

// A library to preload: the system refuses one thread, or memory for one object of Kiln's own code.
//
// KILN_TEST_REFUSE_THREADS_FROM: the number of the first pthread_create() that is refused; those after it are refused
// too. KILN_TEST_REFUSE_OBJECT: the number of the one operator new that throws std::bad_alloc, counted over calls from
// the command, libkiln_core and the plugins: code of others is not judged. KILN_TEST_COUNT_OBJECTS: the count is
// printed at _exit().
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

struct Code {
  std::uintptr_t begin, end;
};

std::array<Code, 64> codes;
std::atomic<std::size_t> code_count{0};
std::atomic<long> threads{0};
std::atomic<long> objects{0};

long number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? 0 : std::atol(text);
}

int note_code(dl_phdr_info* info, std::size_t, void*) {
  const char* const name = info->dlpi_name;
  const bool ours = *name == '\0' || std::strstr(name, "libkiln_core") != nullptr ||
                    std::strstr(name, "/kiln/plugins/") != nullptr || std::strstr(name, "libkiln_onednn") != nullptr;
  if (!ours) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    const std::uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    const std::size_t count = code_count;
    for (std::size_t known = 0; known < count; ++known) {
      if (codes[known].begin == begin) return 0;
    }
    if (count < codes.size()) {
      codes[count] = {begin, begin + segment.p_memsz};
      code_count = count + 1;
    }
  }
  return 0;
}

bool is_ours(const void* caller) {
  const auto at = reinterpret_cast<std::uintptr_t>(caller);
  const std::size_t count = code_count;
  for (std::size_t i = 0; i < count; ++i) {
    if (at >= codes[i].begin && at < codes[i].end) return true;
  }
  return false;
}

thread_local bool loading = false;  // what a static constructor throws would leave the loader's lock taken

void* allocate(std::size_t bytes, const void* caller) {
  static const long refused = [] {
    dl_iterate_phdr(note_code, nullptr);
    return number_in("KILN_TEST_REFUSE_OBJECT");
  }();
  if (!loading && is_ours(caller) && ++objects == refused) throw std::bad_alloc();
  void* const memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes, __builtin_return_address(0)); }
void* operator new[](std::size_t bytes) { return allocate(bytes, __builtin_return_address(0)); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return allocate(bytes, __builtin_return_address(0));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

extern "C" void* dlopen(const char* file, int mode) {
  static const auto real = reinterpret_cast<void* (*)(const char*, int)>(dlsym(RTLD_NEXT, "dlopen"));
  const bool outer = loading;
  loading = true;
  void* const library = real(file, mode);
  loading = outer;
  dl_iterate_phdr(note_code, nullptr);
  return library;
}

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*work)(void*), void* what) {
  static const auto real = reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  static const long first = number_in("KILN_TEST_REFUSE_THREADS_FROM");
  const long number = ++threads;
  return first != 0 && number >= first ? EAGAIN : real(thread, attributes, work, what);
}

extern "C" void _exit(int status) {
  static const auto real = reinterpret_cast<void (*)(int)>(dlsym(RTLD_NEXT, "_exit"));
  if (number_in("KILN_TEST_COUNT_OBJECTS") != 0) std::fprintf(stderr, "objects: %ld\n", objects.load());
  real(status);
  __builtin_unreachable();
}

// Store: a cache in a temporary folder, keys and compilers, through kiln.h alone.
//
// Thread-safety: as kiln.h; the counters may be read at any time. Ownership: removes its folder.
#pragma once

#include <kiln.h>
#include <stdlib.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <atomic>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace kiln::test {

// Takes a status over: its code, and its message.
class Answer {
 public:
  Answer(kiln_status* status) : code(kiln_status_code(status)), message(kiln_status_message(status)) {
    kiln_status_free(status);
  }
  bool ok() const noexcept { return code == KILN_OK; }

  kiln_code code;
  std::string message;
};

inline void must(kiln_status* status) {
  const Answer answer(status);
  if (!answer.ok()) throw std::runtime_error(answer.message);
}

struct KeyDelete {
  void operator()(kiln_key* key) const noexcept { kiln_key_free(key); }
};
struct ProgramDelete {
  void operator()(kiln_program* program) const noexcept { kiln_program_free(program); }
};
struct CacheDelete {
  void operator()(kiln_cache* cache) const noexcept { kiln_cache_close(cache); }
};
using Key = std::unique_ptr<kiln_key, KeyDelete>;
using ProgramPointer = std::unique_ptr<kiln_program, ProgramDelete>;
using CachePointer = std::unique_ptr<kiln_cache, CacheDelete>;

class StoreFolder {
 public:
  StoreFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "kiln-c-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder " + name);
    path_ = name;
    directory_ = path_ / "cache";
    key_file_ = path_ / "state" / "key";
  }
  StoreFolder(const StoreFolder&) = delete;
  StoreFolder& operator=(const StoreFolder&) = delete;
  ~StoreFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  kiln_cache_options options() const {
    kiln_cache_options options = kiln_cache_options_default();
    options.directory = directory_.c_str();
    options.key_file = key_file_.c_str();
    return options;
  }
  CachePointer open(const std::function<void(kiln_cache_options&)>& change = {}) const {
    kiln_cache_options wanted = options();
    if (change) change(wanted);
    kiln_cache* cache = nullptr;
    must(kiln_cache_open(&wanted, &cache));
    return CachePointer(cache);
  }
  std::vector<std::filesystem::path> files(const std::string& extension) const {
    std::vector<std::filesystem::path> found;
    if (!std::filesystem::exists(directory_)) return found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_)) {
      if (entry.path().extension() == extension) found.push_back(entry.path());
    }
    return found;
  }
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_, directory_, key_file_;
};

inline kiln_identity identity_of(const char* driver = "1.0") { return kiln_identity_of("test", "device one", driver); }

inline Key key_of(kiln_cache* cache, const std::string& source, const char* driver = "1.0") {
  const kiln_identity identity = identity_of(driver);
  kiln_key_builder* builder = nullptr;
  kiln_key* key = nullptr;
  must(kiln_key_builder_create(cache, &identity, ("label of " + source).c_str(), &builder));
  must(kiln_key_builder_text(builder, "source", source.c_str()));
  must(kiln_key_builder_finish(builder, &key));
  kiln_key_builder_free(builder);
  return Key(key);
}

inline std::string field_of(const kiln_request* request, const char* name) {
  const void* bytes = nullptr;
  std::size_t count = 0;
  if (kiln_request_field(request, name, &bytes, &count) == 0) return "(none)";
  return {static_cast<const char*>(bytes), count};
}

// A compiler whose programs are strings: build gives "compiled SOURCE", load makes a std::string of it.
struct TextCompiler {
  std::atomic<int> builds{0}, loads{0};
  inline static std::atomic<int> objects{0};
  std::function<kiln_code(kiln_request*)> on_build;  // empty: as above
  std::function<kiln_code(kiln_request*, std::string)> on_load;

  static void destroy(void* object) {
    --objects;
    delete static_cast<std::string*>(object);
  }
  static kiln_code give(kiln_request* request, std::string text) {
    ++objects;
    kiln_request_set_object(request, new std::string(std::move(text)), 100);
    return KILN_OK;
  }
  static kiln_code build(void* user, kiln_request* request) {
    auto& self = *static_cast<TextCompiler*>(user);
    ++self.builds;
    return self.on_build ? self.on_build(request) : compile(request);
  }
  static kiln_code compile(kiln_request* request) {
    const std::string compiled = "compiled " + field_of(request, "source");
    return kiln_request_set_bytes(request, compiled.data(), compiled.size()) ? KILN_OK : KILN_UNAVAILABLE;
  }
  static kiln_code load(void* user, kiln_request* request, const void* bytes, std::size_t count) {
    auto& self = *static_cast<TextCompiler*>(user);
    ++self.loads;
    std::string text(static_cast<const char*>(bytes), count);
    if (self.on_load) return self.on_load(request, std::move(text));
    return give(request, std::move(text));
  }
  kiln_compiler compiler() {
    kiln_compiler made = kiln_compiler_default();
    made.user = this;
    made.build = build;
    made.load = load;
    made.destroy = destroy;
    return made;
  }
  Answer get(kiln_cache* cache, const kiln_key* key, ProgramPointer& program) {
    const kiln_compiler callbacks = compiler();
    kiln_program* got = nullptr;
    Answer answer = kiln_cache_get_or_build(cache, key, &callbacks, &got);
    program.reset(got);
    return answer;
  }
  // The program's text and tier, "compiled one/3", or the error.
  std::string get(kiln_cache* cache, const kiln_key* key) {
    ProgramPointer program;
    const Answer answer = get(cache, key, program);
    if (!answer.ok()) return std::string(kiln_code_name(answer.code)) + ": " + answer.message;
    const auto* text = static_cast<const std::string*>(kiln_program_object(program.get()));
    return *text + "/" + std::to_string(kiln_program_tier(program.get()));
  }
};

inline kiln_cache_stats stats_of(kiln_cache* cache) {
  kiln_cache_stats stats;
  stats.size = sizeof stats;
  must(kiln_cache_get_stats(cache, &stats));
  return stats;
}

}  // namespace kiln::test

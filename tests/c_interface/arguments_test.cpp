// Arguments that are missing, of the wrong size or from another object: an error that names them, never a crash.
#include "c_interface/store.hpp"

#include <cstring>
#include <tuple>

namespace kiln::test {
namespace {

void check_refused(kiln_status* status, const std::string& words) {
  const Answer answer(status);
  CHECK(answer.code == KILN_INVALID_ARGUMENT);
  CHECK_THAT(answer.message, Catch::Contains(words));
}

TEST_CASE("arguments: NULL is refused with the name of the function and of the argument") {
  const StoreFolder store;
  const auto cache = store.open();
  const Key key = key_of(cache.get(), "one");
  TextCompiler text;
  const kiln_compiler compiler = text.compiler();
  const kiln_identity identity = identity_of();
  kiln_cache* opened = nullptr;
  kiln_key_builder* builder = nullptr;
  kiln_key* made = nullptr;
  kiln_program* program = nullptr;
  kiln_pending* pending = nullptr;
  char* json = nullptr;
  kiln_cache_stats stats{};
  check_refused(kiln_cache_open(nullptr, nullptr), "kiln_cache_open: cache is NULL");
  check_refused(kiln_key_builder_create(nullptr, &identity, "l", &builder), "kiln_key_builder_create: cache is NULL");
  check_refused(kiln_key_builder_create(cache.get(), nullptr, "l", &builder), "identity is NULL");
  check_refused(kiln_key_builder_create(cache.get(), &identity, nullptr, &builder), "label is NULL");
  check_refused(kiln_key_builder_create(cache.get(), &identity, "l", nullptr), "builder is NULL");
  check_refused(kiln_key_builder_text(nullptr, "a", "b"), "builder is NULL");
  check_refused(kiln_key_builder_bytes(nullptr, "a", "b", 1), "builder is NULL");
  check_refused(kiln_key_builder_number(nullptr, "a", 1), "builder is NULL");
  check_refused(kiln_key_builder_finish(nullptr, &made), "builder is NULL");
  check_refused(kiln_cache_get_or_build(nullptr, key.get(), &compiler, &program), "cache is NULL");
  check_refused(kiln_cache_get_or_build(cache.get(), nullptr, &compiler, &program), "key is NULL");
  check_refused(kiln_cache_get_or_build(cache.get(), key.get(), nullptr, &program), "compiler is NULL");
  check_refused(kiln_cache_get_or_build(cache.get(), key.get(), &compiler, nullptr), "program is NULL");
  check_refused(kiln_cache_start(cache.get(), key.get(), &compiler, nullptr), "pending is NULL");
  check_refused(kiln_cache_start(cache.get(), nullptr, &compiler, &pending), "key is NULL");
  check_refused(kiln_pending_wait(nullptr, 0, &program), "pending is NULL");
  check_refused(kiln_cache_warm(nullptr, &identity, &compiler, 1, 1, nullptr), "cache is NULL");
  check_refused(kiln_cache_warm(cache.get(), nullptr, &compiler, 1, 1, nullptr), "identity is NULL");
  check_refused(kiln_cache_get_stats(nullptr, &stats), "cache is NULL");
  check_refused(kiln_cache_get_stats(cache.get(), nullptr), "stats is NULL");
  check_refused(kiln_cache_explain(cache.get(), nullptr, &json), "which is NULL");
  check_refused(kiln_cache_explain(cache.get(), "x", nullptr), "json is NULL");
  check_refused(kiln_cache_persist(nullptr, nullptr), "cache is NULL");
  check_refused(kiln_driver_environment(nullptr, nullptr, nullptr), "each is NULL");
  CHECK(opened == nullptr);
  kiln_cache_close(nullptr);
  kiln_key_free(nullptr);
  kiln_key_builder_free(nullptr);
  kiln_program_free(nullptr);
  kiln_pending_free(nullptr);
  CHECK(kiln_pending_ended(nullptr) == 0);
  CHECK(Answer(kiln_cache_remove(nullptr, nullptr)).code == KILN_INVALID_ARGUMENT);
  CHECK(Answer(kiln_cache_drop_context(nullptr, nullptr)).code == KILN_INVALID_ARGUMENT);
  kiln_status_free(nullptr);
  kiln_text_free(nullptr);
  kiln_cache_trim_memory(nullptr);
  kiln_guard guard = kiln_cache_enter(nullptr);
  CHECK(kiln_cache_find(cache.get(), key.get(), &guard, nullptr) == 0);
  kiln_guard_leave(&guard);
  kiln_guard_leave(nullptr);
  CHECK(kiln_program_object(nullptr) == nullptr);
  CHECK(kiln_program_bytes(nullptr, nullptr) == nullptr);
  CHECK(kiln_status_code(nullptr) == KILN_OK);
  CHECK(std::string(kiln_status_message(nullptr)).empty());
  CHECK(std::string(kiln_code_name(static_cast<kiln_code>(99))) == "invalid");
  CHECK(std::string(kiln_code_name(KILN_DEVICE_LOST)) == "device_lost");
}

TEST_CASE("arguments: an identity without api, device or driver makes no key") {
  const StoreFolder store;
  const auto cache = store.open();
  kiln_key_builder* builder = nullptr;
  const auto create = [&](const char* api, const char* device, const char* driver) {
    const kiln_identity identity = kiln_identity_of(api, device, driver);
    return kiln_key_builder_create(cache.get(), &identity, "label", &builder);
  };
  check_refused(create(nullptr, "d", "v"), "identity.api is NULL");
  check_refused(create("", "d", "v"), "identity.api is empty");
  check_refused(create("a", nullptr, "v"), "identity.device is NULL");
  check_refused(create("a", "", "v"), "identity.device is empty");
  check_refused(create("a", "d", nullptr), "identity.driver is NULL");
  check_refused(create("a", "d", ""), "identity.driver is empty");
  CHECK(builder == nullptr);
}

TEST_CASE("arguments: a label that nobody could read back is refused") {
  const StoreFolder store;
  const auto cache = store.open();
  const kiln_identity identity = identity_of();
  kiln_key_builder* builder = nullptr;
  check_refused(kiln_key_builder_create(cache.get(), &identity, std::string(4097, 'x').c_str(), &builder),
                "label of 4097 bytes, expected at most 4096");
  CHECK(builder == nullptr);
  must(kiln_key_builder_create(cache.get(), &identity, std::string(4096, 'x').c_str(), &builder));
  kiln_key_builder_free(builder);
}

// Applications were compiled with these layouts, and nothing tells the library which.
static_assert(sizeof(kiln_guard) == sizeof(void*) && sizeof(kiln_found) == 3 * sizeof(void*) &&
              offsetof(kiln_found, object) == 0 && offsetof(kiln_found, bytes) == sizeof(void*) &&
              offsetof(kiln_found, count) == 2 * sizeof(void*));

TEST_CASE("arguments: a key without fields, or with one that was refused, is not made") {
  const StoreFolder store;
  const auto cache = store.open();
  const kiln_identity identity = identity_of();
  kiln_key_builder* builder = nullptr;
  kiln_key* key = nullptr;
  must(kiln_key_builder_create(cache.get(), &identity, "label", &builder));
  check_refused(kiln_key_builder_finish(builder, &key), "program 'label' has no field");
  must(kiln_key_builder_text(builder, "source", "x"));
  for (const char* name : {"", "device.x", "driver.version", "schema", "dialect", "with space", "umlaut\xc3\xa4"}) {
    check_refused(kiln_key_builder_text(builder, name, "x"), "field name '" + std::string(name));
  }
  check_refused(kiln_key_builder_text(builder, std::string(129, 'a').c_str(), "x"), "expected 1 to 128");
  check_refused(kiln_key_builder_text(builder, "options", nullptr), "value is NULL");
  check_refused(kiln_key_builder_bytes(builder, "blob", nullptr, 4), "value is NULL");
  check_refused(kiln_key_builder_bytes(builder, "blob", "x", std::size_t{64} << 20), "a key has at most");
  check_refused(kiln_key_builder_finish(builder, &key), "a field is missing: ");
  CHECK(key == nullptr);
  kiln_key_builder_free(builder);
}

TEST_CASE("arguments: a struct of the wrong size is refused, a longer one whose new members are zero is not") {
  const StoreFolder store;
  kiln_cache* cache = nullptr;
  for (const std::size_t size : {std::size_t{0}, std::size_t{8}, std::size_t{5000}, ~std::size_t{0}}) {
    kiln_cache_options options = store.options();
    options.size = size;
    check_refused(kiln_cache_open(&options, &cache), "options.size is " + std::to_string(size));
  }
  // A size that ends within a member is no version's.
  for (std::size_t size = 2 * sizeof(void*); size < sizeof(kiln_cache_options); ++size) {
    if (size % sizeof(void*) == 0) continue;
    kiln_cache_options options = store.options();
    options.size = size;
    check_refused(kiln_cache_open(&options, &cache), "a multiple of 8");
  }
  struct Later {
    kiln_cache_options known;
    std::uint64_t added[2];
  } later{store.options(), {0, 0}};
  later.known.size = sizeof later;
  must(kiln_cache_open(&later.known, &cache));
  later.added[1] = 1;
  kiln_cache* refused = nullptr;
  const Answer answer = kiln_cache_open(&later.known, &refused);
  CHECK(answer.code == KILN_UNSUPPORTED);
  CHECK_THAT(answer.message, Catch::Contains("sets a member at byte"));
  // An earlier version of the struct: what it lacks has its default, and what lies behind it is not read or written.
  kiln_cache_stats stats;
  std::memset(&stats, 0x5a, sizeof stats);
  stats.size = offsetof(kiln_cache_stats, builds);
  must(kiln_cache_get_stats(cache, &stats));
  CHECK(stats.misses == 0);
  CHECK(stats.builds == 0x5a5a5a5a5a5a5a5a);
  kiln_cache_close(cache);
}

TEST_CASE("arguments: a key of another cache, and a compiler without callbacks, are refused") {
  const StoreFolder store;
  const auto cache = store.open(), other = store.open();
  const Key key = key_of(other.get(), "one");
  TextCompiler text;
  const kiln_compiler compiler = text.compiler(), empty = kiln_compiler_default();
  kiln_program* program = nullptr;
  check_refused(kiln_cache_get_or_build(cache.get(), key.get(), &compiler, &program), "was created for another cache");
  check_refused(kiln_cache_get_or_build(other.get(), key.get(), &empty, &program), "neither a build nor a load");
}

TEST_CASE("arguments: an option with a wrong value is named, with what was found and what is expected") {
  const StoreFolder store;
  const std::tuple<void (*)(kiln_cache_options&), const char*> cases[] = {
      {[](kiln_cache_options& of) { of.log_level = static_cast<kiln_log_level>(77); },
       "options.log_level: found 77, expected a kiln_log_level, 0 to 5"},
      {[](kiln_cache_options& of) { of.log_level = static_cast<kiln_log_level>(-5); }, "options.log_level: found -5"},
      {[](kiln_cache_options& of) { of.reserved = 1; }, "options.reserved: found 1, expected 0"},
      {[](kiln_cache_options& of) { of.key_file = ""; }, "options.key_file: found an empty name, expected a file"},
      {[](kiln_cache_options& of) { of.config = ""; }, "options.config: found an empty name, expected a file"},
  };
  for (const auto& [change, words] : cases) {
    kiln_cache_options options = store.options();
    change(options);
    kiln_cache* cache = nullptr;
    kiln_runtime* runtime = nullptr;
    check_refused(kiln_cache_open(&options, &cache), std::string("kiln_cache_open: ") + words);
    check_refused(kiln_open(&options, &runtime), std::string("kiln_open: ") + words);
    check_refused(kiln_driver_environment(
                      &options, [](void*, const char*, const char*) {}, nullptr),
                  std::string("kiln_driver_environment: ") + words);
    CHECK(cache == nullptr);
    CHECK(runtime == nullptr);
  }
}

TEST_CASE("arguments: a configuration that cannot be read is an error with its place") {
  const StoreFolder store;
  const std::string file = (store.path() / "wrong.toml").string();
  FILE* written = fopen(file.c_str(), "w");
  REQUIRE(written != nullptr);
  fputs("[cache]\npolicy = 3\n", written);
  fclose(written);
  kiln_cache* cache = nullptr;
  kiln_cache_options options = kiln_cache_options_default();
  options.config = file.c_str();
  check_refused(kiln_cache_open(&options, &cache), "wrong.toml:2:");
  options.config = "/no/such/file.toml";
  CHECK_FALSE(Answer(kiln_cache_open(&options, &cache)).ok());
  CHECK(cache == nullptr);
}

TEST_CASE("arguments: the log receives what the cache has to say") {
  const StoreFolder store;
  std::vector<std::string> lines;
  {
    const auto cache = store.open([&](kiln_cache_options& options) {
      options.directory = "/proc/no/such/folder";
      options.log_user = &lines;
      options.log = [](void* user, kiln_log_level level, const char* component, const char* message) {
        static_cast<std::vector<std::string>*>(user)->push_back(std::to_string(level) + " " + component + ": " +
                                                                message);
      };
    });
    TextCompiler compiler;
    CHECK(compiler.get(cache.get(), key_of(cache.get(), "one").get()) == "compiled one/3");
  }
  REQUIRE(lines.size() == 1);
  CHECK_THAT(lines.front(), Catch::StartsWith("3 cache: programs are kept in memory only"));
}

TEST_CASE("arguments: the driver environment is given to the application and not set") {
  const StoreFolder store;
  const kiln_cache_options options = store.options();
  const char* before = getenv("MESA_SHADER_CACHE_DIR");
  std::vector<std::pair<std::string, std::string>> variables;
  must(kiln_driver_environment(
      &options,
      [](void* user, const char* name, const char* value) {
        static_cast<decltype(variables)*>(user)->emplace_back(name, value);
      },
      &variables));
  CHECK(getenv("MESA_SHADER_CACHE_DIR") == before);
  if (before == nullptr) CHECK_FALSE(variables.empty());
}

}  // namespace
}  // namespace kiln::test

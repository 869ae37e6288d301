// Programs that are removed, replaced or dropped with their context.
#include "c_interface/cache.hpp"
#include "c_interface/store.hpp"

#include <kiln_egl.h>
#include <malloc.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <thread>

namespace kiln::test {
namespace {

TEST_CASE("program removal: a removed program is built again, here and by the next process; who holds it keeps it") {
  const StoreFolder store;
  TextCompiler compiler;
  const auto cache = store.open();
  const Key key = key_of(cache.get(), "one"), other = key_of(cache.get(), "other");
  must(kiln_cache_remove(cache.get(), key.get()));  // not there: no error
  ProgramPointer held;
  REQUIRE(compiler.get(cache.get(), key.get(), held).ok());
  REQUIRE(compiler.get(cache.get(), other.get()) == "compiled other/3");
  must(kiln_cache_remove(cache.get(), key.get()));
  CHECK(store.files(".bin").size() == 1);
  CHECK(stats_of(cache.get()).programs_in_memory == 1);
  CHECK(stats_of(cache.get()).evictions == 0);
  CHECK(*static_cast<std::string*>(kiln_program_object(held.get())) == "compiled one");
  compiler.on_build = [](kiln_request* request) {
    return kiln_request_set_bytes(request, "newer", 5) ? KILN_OK : KILN_UNAVAILABLE;
  };
  CHECK(compiler.get(cache.get(), key.get()) == "newer/3");
  CHECK(compiler.get(cache.get(), other.get()) == "compiled other/1");
  const auto next = store.open();
  CHECK(compiler.get(next.get(), key_of(next.get(), "one").get()) == "newer/2");

  const auto reader = store.open([](kiln_cache_options& options) { options.read_only = 1; });
  const Key read = key_of(reader.get(), "one");
  CHECK(compiler.get(reader.get(), read.get()) == "newer/2");
  const Answer refused = kiln_cache_remove(reader.get(), read.get());
  CHECK(refused.code == KILN_UNAVAILABLE);
  CHECK_THAT(refused.message, Catch::Contains("label of one") && Catch::Contains("read-only"));
  CHECK(compiler.get(reader.get(), read.get()) == "newer/2");
  CHECK(Answer(kiln_cache_remove(reader.get(), key.get())).code == KILN_INVALID_ARGUMENT);  // a key of another cache
}

TEST_CASE("program removal: a removed program that was pending is not stored later") {
  const StoreFolder store;
  const std::string config = (store.path() / "kiln.toml").string();
  std::ofstream(config) << "[cache]\nauto_save = false\n";
  TextCompiler compiler;
  const auto cache = store.open([&](kiln_cache_options& options) { options.config = config.c_str(); });
  const Key key = key_of(cache.get(), "one"), other = key_of(cache.get(), "other");
  REQUIRE(compiler.get(cache.get(), key.get()) == "compiled one/3");
  REQUIRE(compiler.get(cache.get(), other.get()) == "compiled other/3");
  must(kiln_cache_remove(cache.get(), key.get()));
  std::uint64_t stored = 0;
  must(kiln_cache_persist(cache.get(), &stored));
  CHECK(stored == 1);
  const auto next = store.open();
  CHECK(compiler.get(next.get(), key_of(next.get(), "one").get()) == "compiled one/3");
  CHECK(compiler.get(next.get(), key_of(next.get(), "other").get()) == "compiled other/2");
}

TEST_CASE(
    "program removal: the objects of a context are destroyed with it, and a later one at its address gets its own") {
  const StoreFolder store;
  TextCompiler compiler;
  const auto cache = store.open();
  int first = 0, second = 0;  // contexts
  const auto key_in = [&](const void* context) {
    kiln_identity identity = identity_of();
    identity.context = context;
    kiln_key_builder* builder = nullptr;
    kiln_key* key = nullptr;
    must(kiln_key_builder_create(cache.get(), &identity, "in a context", &builder));
    must(kiln_key_builder_text(builder, "source", "one"));
    must(kiln_key_builder_finish(builder, &key));
    kiln_key_builder_free(builder);
    return Key(key);
  };
  const Key in_first = key_in(&first), in_second = key_in(&second);
  const int before = TextCompiler::objects;
  REQUIRE(compiler.get(cache.get(), in_first.get()) == "compiled one/3");
  REQUIRE(compiler.get(cache.get(), in_second.get()) == "compiled one/2");
  REQUIRE(TextCompiler::objects == before + 2);
  must(kiln_cache_drop_context(cache.get(), &first));
  CHECK(TextCompiler::objects == before + 1);
  CHECK(compiler.get(cache.get(), in_second.get()) == "compiled one/1");
  CHECK(compiler.get(cache.get(), in_first.get()) == "compiled one/2");  // loaded for the new context

  ProgramPointer held;
  REQUIRE(compiler.get(cache.get(), in_first.get(), held).ok());
  const Answer in_use = kiln_cache_drop_context(cache.get(), &first);
  CHECK(in_use.code == KILN_UNAVAILABLE);
  CHECK_THAT(in_use.message, Catch::Contains("of the context that are in use: 1"));
  held.reset();
  must(kiln_cache_drop_context(cache.get(), &first));
  CHECK(TextCompiler::objects == before + 1);

  kiln_guard guard = kiln_cache_enter(cache.get());
  kiln_found found;
  REQUIRE(kiln_cache_find(cache.get(), in_second.get(), &guard, &found) == 1);
  CHECK(Answer(kiln_cache_drop_context(cache.get(), &second)).code == KILN_UNAVAILABLE);
  CHECK(*static_cast<std::string*>(found.object) == "compiled one");
  kiln_guard_leave(&guard);
  must(kiln_cache_drop_context(cache.get(), &second));
  CHECK(TextCompiler::objects == before);
}

// In use on the heap of the main thread; 0 where a sanitizer has its own.
std::size_t heap() { return mallinfo2().uordblks; }

TEST_CASE("program removal: identities and contexts that are gone take no memory") {
  const auto cache = StoreFolder().open([](kiln_cache_options& options) { options.directory = ""; });
  TextCompiler compiler;
  const auto key_in = [&](const char* driver, std::uintptr_t context) {
    kiln_identity identity = identity_of(driver);
    identity.context = reinterpret_cast<const void*>(context);
    kiln_key_builder* builder = nullptr;
    kiln_key* key = nullptr;
    must(kiln_key_builder_create(cache.get(), &identity, "label", &builder));
    must(kiln_key_builder_text(builder, "source", "one"));
    must(kiln_key_builder_finish(builder, &key));
    kiln_key_builder_free(builder);
    return Key(key);
  };
  const Key kept = key_in("kept", 8), other = key_in("kept", 16);
  REQUIRE(compiler.get(cache.get(), kept.get()) == "compiled one/3");
  std::size_t before = heap();
  for (int at = 0; at < 5000; ++at) key_in(std::to_string(at).c_str(), 0);
  CHECK(heap() < before + (1u << 20));

  const auto in_context = [&](std::uintptr_t context) {
    {
      const Key key = key_in("kept", context);
      const std::string got = compiler.get(cache.get(), key.get());
      if (got != "compiled one/3") FAIL_CHECK("context " << context << ": " << got);
    }
    must(kiln_cache_drop_context(cache.get(), reinterpret_cast<const void*>(context)));
  };
  for (std::uintptr_t context = 100; context < 500; ++context) in_context(context);
  before = heap();
  for (std::uintptr_t context = 500; context < 4000; ++context) in_context(context);
  CHECK(heap() < before + (1u << 20));

  // Those that a key or a program refers to are the same as before.
  CHECK(compiler.get(cache.get(), kept.get()) == "compiled one/1");
  CHECK(compiler.get(cache.get(), key_in("kept", 8).get()) == "compiled one/1");
  CHECK(compiler.get(cache.get(), other.get()) == "compiled one/3");
  CHECK(compiler.get(cache.get(), key_in("kept", 4000).get()) == "compiled one/3");
  must(kiln_cache_drop_context(cache.get(), reinterpret_cast<const void*>(std::uintptr_t{16})));
  CHECK(compiler.get(cache.get(), kept.get()) == "compiled one/1");
  CHECK(compiler.get(cache.get(), other.get()) == "compiled one/3");
}

TEST_CASE("program removal: identities that were used once take no memory when their programs are gone") {
  const auto cache = StoreFolder().open([](kiln_cache_options& options) {
    options.directory = "";
    options.max_programs = 64;
  });
  TextCompiler compiler;
  const auto use = [&](int driver) {
    const Key key = key_of(cache.get(), "one", std::to_string(driver).c_str());
    const std::string got = compiler.get(cache.get(), key.get());
    if (got != "compiled one/3") FAIL_CHECK("driver " << driver << ": " << got);
  };
  const Key kept = key_of(cache.get(), "one", "kept");
  ProgramPointer program;
  REQUIRE(compiler.get(cache.get(), kept.get(), program).ok());
  for (int driver = 0; driver < 1000; ++driver) use(driver);
  const std::size_t before = heap();
  for (int driver = 1000; driver < 10000; ++driver) use(driver);
  // A device takes 1 KiB. The cache remembers which programs it held, about 100 bytes each and at most 65,536.
  CHECK(heap() < before + (3u << 20));
  CHECK(cache->devices.size() <= 200);
  CHECK(cache->spare_devices.empty());
  // A new object may have the address of one that is gone: the programs are those of its identity. A program whose build
  // took long may be in memory still.
  for (int driver = 0; driver < 200; ++driver) {
    const Key key = key_of(cache.get(), "one", std::to_string(driver).c_str());
    const std::string got = compiler.get(cache.get(), key.get());
    if (got != "compiled one/3" && got != "compiled one/1") FAIL_CHECK("driver " << driver << ": " << got);
  }
  CHECK(compiler.get(cache.get(), kept.get()) == "compiled one/1");
}

TEST_CASE("program removal: a blob that EGL's driver sets again replaces the one that it refused") {
  const StoreFolder store;
  kiln_egl_state state{};
  state.identity = kiln_identity_of("egl", "device", "driver");
  *kiln_egl_state_of_process() = &state;
  const auto get = [] {
    char bytes[16] = {};
    const auto count = kiln_egl_on_get("name", 4, bytes, sizeof bytes);
    return std::string(bytes, static_cast<std::size_t>(count));
  };
  {
    const auto cache = store.open();
    state.cache = cache.get();
    CHECK(get().empty());
    kiln_egl_on_set("name", 4, "first", 5);
    CHECK(get() == "first");
    kiln_egl_on_set("name", 4, "first", 5);
    CHECK(stats_of(cache.get()).builds == 1);
    kiln_egl_on_set("name", 4, "another", 7);
    CHECK(get() == "another");
    kiln_egl_on_set("name", 4, "anothes", 7);
    CHECK(get() == "anothes");
  }
  const auto next = store.open();
  state.cache = next.get();
  CHECK(get() == "anothes");
  *kiln_egl_state_of_process() = nullptr;
}

TEST_CASE("program removal: a blob that EGL's driver sets while another thread looks it up is not lost") {
  const StoreFolder store;
  const auto cache = store.open();
  kiln_egl_state state{};
  state.cache = cache.get();
  state.identity = kiln_identity_of("egl", "device", "driver");
  kiln_key_builder* builder = nullptr;
  kiln_key* key = nullptr;
  must(kiln_key_builder_create(cache.get(), &state.identity, "EGL blob", &builder));
  must(kiln_key_builder_bytes(builder, "name", "name", 4));
  must(kiln_key_builder_finish(builder, &key));
  kiln_key_builder_free(builder);
  const Key of_name(key);
  struct Lookup {
    std::atomic<bool> begun{false}, end{false};
  } lookup;
  kiln_compiler slow = kiln_compiler_default();  // as kiln_egl_on_get()
  slow.user = &lookup;
  slow.build = [](void* user, kiln_request*) {
    auto& of = *static_cast<Lookup*>(user);
    of.begun = true;
    while (!of.end) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return KILN_NOT_FOUND;
  };
  kiln_code code = KILN_OK;
  std::thread looks([&] {
    kiln_program* none = nullptr;
    code = Answer(kiln_cache_get_or_build(cache.get(), of_name.get(), &slow, &none)).code;
  });
  while (!lookup.begun) std::this_thread::yield();
  *kiln_egl_state_of_process() = &state;
  std::thread sets([] { kiln_egl_on_set("name", 4, "first", 5); });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // until it waits
  lookup.end = true;
  looks.join();
  sets.join();
  CHECK(code == KILN_NOT_FOUND);
  char bytes[16] = {};
  CHECK(kiln_egl_on_get("name", 4, bytes, sizeof bytes) == 5);
  CHECK(std::string(bytes) == "first");
  *kiln_egl_state_of_process() = nullptr;
}

}  // namespace
}  // namespace kiln::test

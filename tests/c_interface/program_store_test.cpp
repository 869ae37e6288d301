// The program store: what is built once, what is found where, by threads and by processes.
#include "c_interface/store.hpp"
#include "support/in_child.hpp"
#include "support/test_length.hpp"

#include <kiln/host_processor.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

namespace kiln::test {
namespace {

TEST_CASE("program store: built once, then found in memory, and by a later cache on disk") {
  const StoreFolder store;
  TextCompiler compiler;
  {
    const auto cache = store.open();
    const Key key = key_of(cache.get(), "one");
    CHECK(compiler.get(cache.get(), key.get()) == "compiled one/3");
    CHECK(compiler.get(cache.get(), key.get()) == "compiled one/1");
    CHECK(compiler.get(cache.get(), key_of(cache.get(), "one").get()) == "compiled one/1");  // an equal key
    CHECK(compiler.builds == 1);
    CHECK(stats_of(cache.get()).memory_hits == 2);
  }
  CHECK(TextCompiler::objects == 0);
  const auto cache = store.open();
  CHECK(compiler.get(cache.get(), key_of(cache.get(), "one").get()) == "compiled one/2");
  CHECK(compiler.get(cache.get(), key_of(cache.get(), "two").get()) == "compiled two/3");
  CHECK(compiler.builds == 2);
  CHECK(stats_of(cache.get()).disk_hits == 1);
  CHECK(stats_of(cache.get()).bytes_on_disk > 0);
}

TEST_CASE("program store: a program outlives its cache, and its object is destroyed once") {
  const StoreFolder store;
  TextCompiler compiler;
  ProgramPointer program;
  {
    const auto cache = store.open();
    REQUIRE(compiler.get(cache.get(), key_of(cache.get(), "kept").get(), program).ok());
  }
  CHECK(*static_cast<std::string*>(kiln_program_object(program.get())) == "compiled kept");
  CHECK(TextCompiler::objects == 1);
  program.reset();
  CHECK(TextCompiler::objects == 0);
}

TEST_CASE("program store: another driver, device, api or field is another program") {
  const StoreFolder store;
  TextCompiler compiler;
  const auto cache = store.open();
  const auto key = [&](kiln_identity identity, const char* name, std::uint64_t value) {
    kiln_key_builder* builder = nullptr;
    kiln_key* made = nullptr;
    must(kiln_key_builder_create(cache.get(), &identity, "many", &builder));
    must(kiln_key_builder_text(builder, "source", "same"));
    must(kiln_key_builder_number(builder, name, value));
    must(kiln_key_builder_finish(builder, &made));
    kiln_key_builder_free(builder);
    return Key(made);
  };
  const std::vector<Key> keys = [&] {
    std::vector<Key> made;
    made.push_back(key(kiln_identity_of("a", "b", "c"), "tile", 1));
    made.push_back(key(kiln_identity_of("a", "b", "d"), "tile", 1));
    made.push_back(key(kiln_identity_of("a", "bc", "c"), "tile", 1));
    made.push_back(key(kiln_identity_of("ab", "b", "c"), "tile", 1));
    made.push_back(key(kiln_identity_of("a", "b", "c"), "tile", 2));
    made.push_back(key(kiln_identity_of("a", "b", "c"), "tilf", 1));
    return made;
  }();
  std::vector<std::string> digests;
  for (const Key& one : keys) {
    CHECK(compiler.get(cache.get(), one.get()) == "compiled same/3");
    char hex[65];
    kiln_key_hex(one.get(), hex);
    digests.emplace_back(hex);
  }
  CHECK(compiler.builds == 6);
  std::sort(digests.begin(), digests.end());
  CHECK(std::unique(digests.begin(), digests.end()) == digests.end());
  CHECK(digests.front().size() == 64);
}

TEST_CASE("program store: each context has its own object, from the same stored bytes") {
  const StoreFolder store;
  TextCompiler compiler;
  const auto cache = store.open();
  const int contexts[2] = {};
  const auto get = [&](const void* context) {
    kiln_identity identity = identity_of();
    identity.context = context;
    kiln_key_builder* builder = nullptr;
    kiln_key* key = nullptr;
    must(kiln_key_builder_create(cache.get(), &identity, "of a context", &builder));
    must(kiln_key_builder_text(builder, "source", "one"));
    must(kiln_key_builder_finish(builder, &key));
    kiln_key_builder_free(builder);
    const Key owned(key);
    ProgramPointer program;
    REQUIRE(compiler.get(cache.get(), key, program).ok());
    return std::pair(kiln_program_object(program.get()), kiln_program_tier(program.get()));
  };
  const auto first = get(&contexts[0]), second = get(&contexts[1]);
  CHECK(first.second == KILN_TIER_BUILT);
  CHECK(second.second == KILN_TIER_DISK);
  CHECK(first.first != second.first);
  CHECK(get(&contexts[0]) == std::pair(first.first, KILN_TIER_MEMORY));
  CHECK(get(&contexts[1]) == std::pair(second.first, KILN_TIER_MEMORY));
  CHECK(compiler.builds == 1);
}

TEST_CASE("program store: a program without a load callback is its bytes") {
  const auto binary = GENERATE(std::string("\0SPIR-V\xff", 8), std::string());
  const StoreFolder store;
  kiln_compiler compiler = kiln_compiler_default();
  compiler.user = const_cast<std::string*>(&binary);
  compiler.build = [](void* user, kiln_request* request) {
    const auto& bytes = *static_cast<const std::string*>(user);
    return kiln_request_set_bytes(request, bytes.data(), bytes.size()) ? KILN_OK : KILN_UNAVAILABLE;
  };
  for (const kiln_tier tier : {KILN_TIER_BUILT, KILN_TIER_DISK}) {
    const auto cache = store.open();
    const Key key = key_of(cache.get(), "spirv");
    for (const kiln_tier expected : {tier, KILN_TIER_MEMORY}) {
      kiln_program* program = nullptr;
      must(kiln_cache_get_or_build(cache.get(), key.get(), &compiler, &program));
      std::size_t count = 100;
      const void* bytes = kiln_program_bytes(program, &count);
      REQUIRE(bytes != nullptr);
      CHECK(std::string(static_cast<const char*>(bytes), count) == binary);
      CHECK(kiln_program_tier(program) == expected);
      CHECK(kiln_program_object(program) == nullptr);
      kiln_program_free(program);
    }
  }
}

TEST_CASE("program store: a lookup under a guard finds what is in memory, and nothing else") {
  const StoreFolder store;
  TextCompiler compiler;
  const auto cache = store.open();
  const Key key = key_of(cache.get(), "hot");
  kiln_found found{};
  kiln_guard guard = kiln_cache_enter(cache.get());
  CHECK(kiln_cache_find(cache.get(), key.get(), &guard, &found) == 0);
  kiln_guard_leave(&guard);
  REQUIRE(compiler.get(cache.get(), key.get()) == "compiled hot/3");
  guard = kiln_cache_enter(cache.get());
  REQUIRE(kiln_cache_find(cache.get(), key.get(), &guard, &found) == 1);
  CHECK(*static_cast<std::string*>(found.object) == "compiled hot");
  CHECK(found.bytes == nullptr);
  kiln_guard_leave(&guard);
  kiln_guard_leave(&guard);  // a second time: nothing
  const auto other = store.open();
  guard = kiln_cache_enter(other.get());
  CHECK(kiln_cache_find(other.get(), key.get(), &guard, &found) == 0);  // the key of another cache
  kiln_guard_leave(&guard);
}

TEST_CASE("program store: requests run on threads of the cache, and are handed over once") {
  const StoreFolder store;
  TextCompiler compiler;
  const kiln_compiler callbacks = compiler.compiler();
  const auto cache = store.open();
  std::vector<Key> keys;
  std::vector<kiln_pending*> pending(40);
  for (std::size_t at = 0; at < pending.size(); ++at) {
    keys.push_back(key_of(cache.get(), std::to_string(at % 20)));
    must(kiln_cache_start(cache.get(), keys.back().get(), &callbacks, &pending[at]));
  }
  for (std::size_t at = 0; at < pending.size(); ++at) {
    kiln_program* program = nullptr;
    must(kiln_pending_wait(pending[at], 60000, &program));
    CHECK(kiln_pending_ended(pending[at]) == 1);
    CHECK(*static_cast<std::string*>(kiln_program_object(program)) == "compiled " + std::to_string(at % 20));
    kiln_program_free(program);
    CHECK(Answer(kiln_pending_wait(pending[at], 0, &program)).code == KILN_INVALID_ARGUMENT);
    kiln_pending_free(pending[at]);
  }
  CHECK(compiler.builds == 20);
}

TEST_CASE("program store: callbacks on all threads of a cache may wait for requests that they start") {
  const StoreFolder store;
  const int threads = std::clamp(static_cast<int>(host_cores()), 2, 16);  // as many as the cache starts
  TextCompiler inner, outer;
  const kiln_compiler of_inner = inner.compiler(), of_outer = outer.compiler();
  std::vector<Key> inner_keys, outer_keys;
  std::atomic<int> inside{0};
  const auto cache = store.open();
  outer.on_build = [&](kiln_request* request) {
    const auto own = static_cast<std::size_t>(inside++);
    while (inside < threads) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    kiln_pending* started = nullptr;
    kiln_program* program = nullptr;
    must(kiln_cache_start(cache.get(), inner_keys[own].get(), &of_inner, &started));
    const Answer answer = kiln_pending_wait(started, 10'000, &program);
    kiln_program_free(program);
    kiln_pending_free(started);
    return answer.ok() ? TextCompiler::compile(request) : answer.code;
  };
  for (int at = 0; at < threads; ++at) {
    inner_keys.push_back(key_of(cache.get(), "inner" + std::to_string(at)));
    outer_keys.push_back(key_of(cache.get(), "outer" + std::to_string(at)));
  }
  std::vector<kiln_pending*> pending(outer_keys.size());
  for (std::size_t at = 0; at < pending.size(); ++at) {
    must(kiln_cache_start(cache.get(), outer_keys[at].get(), &of_outer, &pending[at]));
  }
  for (kiln_pending* one : pending) {
    kiln_program* program = nullptr;
    CHECK(Answer(kiln_pending_wait(one, 60'000, &program)).message == "");
    kiln_program_free(program);
    kiln_pending_free(one);
  }
  CHECK(inner.builds == threads);
  CHECK(outer.builds == threads);
}

TEST_CASE("program store: closing the cache waits for a running request and cancels those that wait") {
  const StoreFolder store;
  TextCompiler compiler;
  std::atomic<bool> go{false};
  compiler.on_build = [&](kiln_request* request) {
    while (!go) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return kiln_request_set_bytes(request, "x", 1) ? KILN_OK : KILN_UNAVAILABLE;
  };
  const kiln_compiler callbacks = compiler.compiler();
  std::vector<kiln_pending*> pending(40);
  auto cache = store.open();
  std::vector<Key> keys;
  for (std::size_t at = 0; at < pending.size(); ++at) {
    keys.push_back(key_of(cache.get(), std::to_string(at)));
    must(kiln_cache_start(cache.get(), keys.back().get(), &callbacks, &pending[at]));
  }
  kiln_program* program = nullptr;
  CHECK(Answer(kiln_pending_wait(pending[0], 1, &program)).code == KILN_TIMEOUT);
  CHECK(kiln_pending_ended(pending[0]) == 0);
  while (compiler.builds < 2) std::this_thread::yield();
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    go = true;
  });
  cache.reset();
  opener.join();
  int built = 0, cancelled = 0;
  for (kiln_pending* one : pending) {
    const Answer answer = kiln_pending_wait(one, 0, &program);
    built += answer.ok();
    cancelled += answer.code == KILN_CANCELLED;
    kiln_program_free(program);
    kiln_pending_free(one);
  }
  CHECK(built >= 2);
  CHECK(cancelled >= 1);
  CHECK(built + cancelled == 40);
}

TEST_CASE("program store: 64 threads in each of 8 processes call one slow callback once") {
  const StoreFolder store;
  const std::string log = (store.path() / "builds").string();
  const auto work = [&]() -> std::string {
    TextCompiler compiler;
    compiler.on_build = [&](kiln_request* request) {
      std::ofstream(log, std::ios::app) << getpid() << std::endl;
      std::this_thread::sleep_for(std::chrono::milliseconds(400));
      return kiln_request_set_bytes(request, "slow", 4) ? KILN_OK : KILN_UNAVAILABLE;
    };
    const auto cache = store.open([](kiln_cache_options& options) {
      options.process_wait_ms = 120000;
      options.thread_wait_ms = 120000;
    });
    const Key key = key_of(cache.get(), "slow");
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 64; ++thread) {
      threads.emplace_back([&] { wrong += compiler.get(cache.get(), key.get()).starts_with("slow/") ? 0 : 1; });
    }
    for (std::thread& thread : threads) thread.join();
    return wrong == 0 ? "" : std::to_string(wrong) + " threads got something else";
  };
  std::vector<std::unique_ptr<Child>> children;
  for (int process = 0; process < 8; ++process) children.push_back(std::make_unique<Child>(work));
  for (const auto& child : children) {
    const ChildEnd end = child->wait();
    CHECK(end.said == "");
    CHECK(end.signal == 0);
  }
  std::ifstream builds(log);
  CHECK(std::count(std::istreambuf_iterator<char>(builds), {}, '\n') == 1);
}

TEST_CASE("program store: the build of a killed process is taken over") {
  const StoreFolder store;
  const std::string begun = (store.path() / "begun").string();
  Child builder([&]() -> std::string {
    TextCompiler compiler;
    compiler.on_build = [&](kiln_request*) {
      std::ofstream(begun) << "begun" << std::endl;
      std::this_thread::sleep_for(std::chrono::seconds(60));
      return KILN_UNAVAILABLE;
    };
    const auto cache = store.open();
    return compiler.get(cache.get(), key_of(cache.get(), "one").get());
  });
  while (!std::filesystem::exists(begun)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  TextCompiler compiler;
  const auto cache = store.open([](kiln_cache_options& options) { options.process_wait_ms = 60000; });
  std::thread killer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    builder.kill(9);
  });
  CHECK(compiler.get(cache.get(), key_of(cache.get(), "one").get()) == "compiled one/3");
  killer.join();
  CHECK(stats_of(cache.get()).lease_takeovers == 1);
  CHECK(builder.wait().signal == 9);
}

TEST_CASE("program store: warming loads stored programs by their fields, and builds nothing") {
  const StoreFolder store;
  TextCompiler compiler;
  {
    const auto cache = store.open();
    for (int one = 0; one < 10; ++one) compiler.get(cache.get(), key_of(cache.get(), std::to_string(one)).get());
    compiler.get(cache.get(), key_of(cache.get(), "of another driver", "2.0").get());
  }
  TextCompiler loader;
  std::atomic<int> as_stored{0};
  loader.on_load = [&](kiln_request* request, std::string text) {  // in threads of the cache's own too
    const std::string source = field_of(request, "source");
    as_stored += text == "compiled " + source && kiln_request_label(request) == "label of " + source ? 1 : 0;
    return text.ends_with("7") ? KILN_UNAVAILABLE : TextCompiler::give(request, std::move(text));
  };
  const auto cache = store.open();
  const kiln_identity identity = identity_of();
  const kiln_compiler callbacks = loader.compiler();
  std::size_t loaded = 0;
  must(kiln_cache_warm(cache.get(), &identity, &callbacks, 100, 2, &loaded));
  CHECK(loaded == 9);
  CHECK(as_stored == 10);
  CHECK(loader.builds == 0);
  CHECK(loader.get(cache.get(), key_of(cache.get(), "3").get()) == "compiled 3/1");
}

TEST_CASE("program store: explain names the fields that differ from the nearest stored program") {
  const StoreFolder store;
  TextCompiler compiler;
  const auto run = [&](const char* source, const char* driver) {
    const auto cache = store.open();
    compiler.get(cache.get(), key_of(cache.get(), source, driver).get());
  };
  run("line one\nline two", "1.0");
  run("line one\nline 2", "1.0");
  run("line one\nline two", "1.1");
  const auto cache = store.open();
  char* text = nullptr;
  must(kiln_cache_explain(cache.get(), "label of line one\nline 2", &text));
  const auto changed = nlohmann::json::parse(text);
  kiln_text_free(text);
  REQUIRE(changed["misses"].size() == 1);
  CHECK(changed["misses"][0]["reason"] == "absent");
  CHECK(changed["misses"][0]["differences"][0]["field"] == "source");
  CHECK(changed["misses"][0]["differences"][0]["asked"] == "line 2");
  CHECK(changed["misses"][0]["differences"][0]["stored"] == "line two");
  CHECK(changed["misses"][0]["differences"][0]["line"] == 2);
  must(kiln_cache_explain(cache.get(), "label of line one\nline two", &text));
  const auto driver = nlohmann::json::parse(text);
  kiln_text_free(text);
  CHECK(driver["misses"][0]["reason"] == "driver_changed");
  CHECK(driver["misses"][0]["differences"][0]["field"] == "driver.version");
  CHECK(Answer(kiln_cache_explain(cache.get(), "no such label", &text)).code == KILN_NOT_FOUND);
  CHECK(text == nullptr);
}

TEST_CASE("program store: a damaged or altered entry is rejected and built again") {
  const StoreFolder store;
  TextCompiler compiler;
  for (const std::size_t at : {std::size_t{0}, std::size_t{70}, std::size_t{150}}) {
    {
      const auto cache = store.open();
      compiler.get(cache.get(), key_of(cache.get(), "one").get());
    }
    REQUIRE(store.files(".bin").size() == 1);
    std::fstream file(store.files(".bin").front(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(at));
    file.put('\x7f');
    file.close();
    const auto cache = store.open();
    CHECK(compiler.get(cache.get(), key_of(cache.get(), "one").get()) == "compiled one/3");
    CHECK(stats_of(cache.get()).corrupt == 1);
  }
}

TEST_CASE("program store: an empty folder name means memory only, a read-only cache stores nothing") {
  const StoreFolder store;
  TextCompiler compiler;
  for (int time = 0; time < 2; ++time) {
    const auto cache = store.open([](kiln_cache_options& options) { options.directory = ""; });
    CHECK(compiler.get(cache.get(), key_of(cache.get(), "one").get()) == "compiled one/3");
    CHECK(compiler.get(cache.get(), key_of(cache.get(), "one").get()) == "compiled one/1");
  }
  CHECK(store.files(".bin").empty());
  const auto cache = store.open([](kiln_cache_options& options) { options.read_only = 1; });
  CHECK(compiler.get(cache.get(), key_of(cache.get(), "one").get()) == "compiled one/3");
  CHECK(store.files(".bin").empty());
}

TEST_CASE("program store: bounds hold in memory and on disk") {
  const StoreFolder store;
  TextCompiler compiler;
  const auto cache = store.open([](kiln_cache_options& options) {
    options.max_programs = 4;
    options.max_disk = 16 << 10;
  });
  for (int one = 0; one < 64; ++one) {
    compiler.get(cache.get(), key_of(cache.get(), std::to_string(one) + std::string(2000, 'x')).get());
  }
  const kiln_cache_stats stats = stats_of(cache.get());
  CHECK(stats.programs_in_memory <= 4);
  CHECK(stats.evictions > 0);
  CHECK(stats.bytes_on_disk <= 16 << 10);
  CHECK(stats.disk_evictions > 0);
  CHECK(TextCompiler::objects <= 4);
}

TEST_CASE("program store: machines share programs through a remote, each with a cache of its own") {
  const StoreFolder writer;
  const std::filesystem::path share = writer.path() / "share", config_home = writer.path() / "config";
  std::filesystem::create_directories(share);
  const auto config_of = [&](const std::string& url, bool writes) {
    const std::filesystem::path file = writer.path() / (writes ? "writer.toml" : "reader.toml");
    std::ofstream(file) << "[[cache.remote]]\nurl = \"" << url << "\"\nwriters = [\"ci\"]\n"
                        << (writes ? "mode = \"read_write\"\nsign_with = \"ci\"\n" : "");
    return file.string();
  };
  // In a child: the environment of this process stays as it is. Both machines have the same keys.
  const auto at_home = [&](const std::function<std::string()>& work) {
    return in_child([&] {
             setenv("XDG_CONFIG_HOME", config_home.c_str(), 1);
             return work();
           })
        .said;
  };
  const std::string create_key = "\"" KILN_BINARY_DIR "/bin/kiln\" cache key create ci >/dev/null";
  REQUIRE(at_home([&] { return std::system(create_key.c_str()) == 0 ? "" : "no key"; }) == "");
  const auto request = [&](const StoreFolder& folder, const std::string& config, const std::string& source) {
    return at_home([&]() -> std::string {
      TextCompiler text;
      const bool is_writer = config.find("writer") != std::string::npos;
      text.on_build = [is_writer](kiln_request* asked) {
        // Readers ask only for what takes longer to build than three round trips, and wait a tenth of it.
        if (is_writer) std::this_thread::sleep_for(std::chrono::seconds(1));
        return TextCompiler::compile(asked);
      };
      const CachePointer cache = folder.open([&](kiln_cache_options& options) { options.config = config.c_str(); });
      if (!is_writer) {  // a program that the remote lacks; meanwhile the index arrives, with the build times
        ProgramPointer absent;
        if (const Answer got = text.get(cache.get(), key_of(cache.get(), "absent").get(), absent); !got.ok())
          return got.message;
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
      }
      const int before = text.builds;
      const Key key = key_of(cache.get(), source);
      const kiln_compiler compiler = text.compiler();
      kiln_program* program = nullptr;
      const Answer answer(kiln_cache_get_or_build(cache.get(), key.get(), &compiler, &program));
      const ProgramPointer held(program);
      if (!answer.ok()) return answer.message;
      if (*static_cast<std::string*>(kiln_program_object(program)) != "compiled " + source) return "another program";
      // Programs are written in the background; a busy machine needs longer than the 200 ms of closing.
      for (int i = 0; i < 1000 && text.builds != before && is_writer; ++i) {
        std::size_t objects = 0;  // the program and the index
        for (const auto& entry : std::filesystem::recursive_directory_iterator(share))
          objects += entry.is_regular_file();
        if (objects >= 2) break;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
      return text.builds == before ? "loaded" : "built";
    });
  };
  const std::string url = "file://" + share.string();
  CHECK(request(writer, config_of(url, true), "shared") == "built");
  // On a busy machine the first answer may come too late, and costs a build.
  std::unique_ptr<StoreFolder> reader;
  std::string answer;
  for (int attempt = 0; attempt < 20 && answer != "loaded"; ++attempt) {
    reader = std::make_unique<StoreFolder>();
    answer = request(*reader, config_of(url, false), "shared");
  }
  CHECK(answer == "loaded");
  std::filesystem::remove_all(share);
  CHECK(request(*reader, config_of(url, false), "shared") == "loaded");
  // A server that is not there costs a build and no failure.
  CHECK(request(*reader, config_of("http://127.0.0.1:1/kiln", false), "other") == "built");
}

}  // namespace
}  // namespace kiln::test

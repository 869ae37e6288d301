// Callbacks that fail, throw, hang, ask for their own program, return garbage or crash.
#include "c_interface/store.hpp"
#include "support/in_child.hpp"

#include <fcntl.h>

#include <csignal>
#include <thread>

namespace kiln::test {
namespace {

// The callback's fault is answered with the code and the words, and no other key is affected.
void check_fault(const std::function<kiln_code(kiln_request*)>& build, kiln_code code, const std::string& words) {
  const StoreFolder store;
  const auto cache = store.open();
  TextCompiler faulty, sound;
  faulty.on_build = build;
  ProgramPointer program;
  const Answer answer = faulty.get(cache.get(), key_of(cache.get(), "faulty").get(), program);
  CHECK(answer.code == code);
  CHECK_THAT(answer.message, Catch::Contains(words) && Catch::Contains("label of faulty"));
  CHECK(program == nullptr);
  CHECK(sound.get(cache.get(), key_of(cache.get(), "sound").get()) == "compiled sound/3");
}

TEST_CASE("program faults: the code and the message of a build callback reach the caller") {
  for (int code = KILN_INVALID_ARGUMENT; code <= KILN_WRONG_RESULT; ++code) {
    check_fault(
        [&](kiln_request* request) {
          kiln_request_set_message(request, "line 3: expected ';'");
          return static_cast<kiln_code>(code);
        },
        static_cast<kiln_code>(code), "the build callback failed: line 3: expected ';'");
  }
}

TEST_CASE("program faults: a callback that throws is an internal error") {
  check_fault([](kiln_request*) -> kiln_code { throw std::runtime_error("out of registers"); }, KILN_INTERNAL,
              "threw an exception: out of registers");
  check_fault([](kiln_request*) -> kiln_code { throw 3; }, KILN_INTERNAL,
              "an exception of a type other than std::exception");
}

TEST_CASE("program faults: garbage that a callback returns is an internal error") {
  for (const int code : {-1, KILN_WRONG_RESULT + 1, 4711, -2147483647}) {
    check_fault([&](kiln_request*) { return static_cast<kiln_code>(code); }, KILN_INTERNAL,
                "returned " + std::to_string(code) + ", expected a kiln_code");
  }
  check_fault([](kiln_request*) { return KILN_OK; }, KILN_INTERNAL, "without bytes and without an object");
  check_fault(
      [](kiln_request* request) {
        CHECK(kiln_request_set_bytes(request, "", std::size_t{1} << 40) == 0);
        return KILN_OK;
      },
      KILN_INTERNAL, "the build callback set 1099511627776 bytes, expected at most 268435456");
}

TEST_CASE("program faults: an object that a failing callback gave is destroyed") {
  const int before = TextCompiler::objects;
  check_fault(
      [](kiln_request* request) {
        TextCompiler::give(request, "first");
        TextCompiler::give(request, "second");
        return KILN_UNAVAILABLE;
      },
      KILN_UNAVAILABLE, "the callback set no message");
  CHECK(TextCompiler::objects == before);
}

TEST_CASE("program faults: a destroy callback that throws ends nothing") {
  const StoreFolder store;
  auto cache = store.open();
  TextCompiler compiler;
  kiln_compiler throwing = compiler.compiler();
  throwing.destroy = [](void* object) {
    TextCompiler::destroy(object);
    throw std::runtime_error("destroyed badly");
  };
  const int before = TextCompiler::objects;
  kiln_program* program = nullptr;
  must(kiln_cache_get_or_build(cache.get(), key_of(cache.get(), "one").get(), &throwing, &program));
  kiln_program_free(program);
  cache.reset();
  CHECK(TextCompiler::objects == before);
}

TEST_CASE("program faults: closing waits for the requests of other threads") {
  const StoreFolder store;
  auto cache = store.open();
  const Key key = key_of(cache.get(), "slow");
  TextCompiler compiler;
  std::atomic<bool> builds{false}, closes{false}, built{false}, ended{false};
  compiler.on_build = [&](kiln_request* request) {
    builds = true;
    while (!closes) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    built = true;
    return TextCompiler::give(request, "slow");
  };
  std::thread requests([&, raw = cache.get()] {
    const std::string got = compiler.get(raw, key.get());
    ended = got == "slow/3";
  });
  while (!builds) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  closes = true;
  cache.reset();
  CHECK(built);
  requests.join();
  CHECK(ended);
}

TEST_CASE("program faults: a forked child is told to open its own cache, and may close that of its parent") {
  const StoreFolder store;
  auto cache = store.open();
  const Key key = key_of(cache.get(), "one");
  TextCompiler compiler;
  const kiln_compiler callbacks = compiler.compiler();
  kiln_pending* pending = nullptr;
  kiln_program* program = nullptr;
  must(kiln_cache_start(cache.get(), key.get(), &callbacks, &pending));
  must(kiln_pending_wait(pending, 60'000, &program));  // its thread exists, and does not in the child
  kiln_pending_free(pending);
  kiln_program_free(program);
  kiln_pending* kept = nullptr;
  must(kiln_cache_start(cache.get(), key.get(), &callbacks, &kept));
  while (!kiln_pending_ended(kept)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const kiln_identity of = identity_of();
  kiln_key_builder* begun = nullptr;
  must(kiln_key_builder_create(cache.get(), &of, "begun", &begun));
  must(kiln_key_builder_text(begun, "source", "begun"));
  kiln_guard entered = kiln_cache_enter(cache.get());
  const ChildEnd end = in_child([&]() -> std::string {
    kiln_pending* never = nullptr;
    const Answer started = kiln_cache_start(cache.get(), key.get(), &callbacks, &never);
    if (started.code != KILN_UNAVAILABLE) return "kiln_cache_start: " + started.message;
    ProgramPointer none;
    const Answer got = compiler.get(cache.get(), key.get(), none);
    if (got.code != KILN_UNAVAILABLE || got.message.find("opened before fork()") == std::string::npos) {
      return "kiln_cache_get_or_build: " + got.message;
    }
    const kiln_identity identity = identity_of();
    kiln_key_builder* builder = nullptr;
    kiln_key* made = nullptr;
    char* json = nullptr;
    kiln_cache_stats stats;
    stats.size = sizeof stats;
    const std::pair<const char*, Answer> all[] = {
        {"kiln_key_builder_create", kiln_key_builder_create(cache.get(), &identity, "l", &builder)},
        {"kiln_key_builder_finish", kiln_key_builder_finish(begun, &made)},
        {"kiln_pending_wait", kiln_pending_wait(kept, 60'000, &program)},
        {"kiln_cache_warm", kiln_cache_warm(cache.get(), &identity, &callbacks, 1, 1, nullptr)},
        {"kiln_cache_remove", kiln_cache_remove(cache.get(), key.get())},
        {"kiln_cache_drop_context", kiln_cache_drop_context(cache.get(), nullptr)},
        {"kiln_cache_get_stats", kiln_cache_get_stats(cache.get(), &stats)},
        {"kiln_cache_explain", kiln_cache_explain(cache.get(), "l", &json)},
        {"kiln_cache_persist", kiln_cache_persist(cache.get(), nullptr)}};
    for (const auto& [function, answer] : all) {
      if (answer.code != KILN_UNAVAILABLE || answer.message.find(function) != 0 ||
          answer.message.find("opened before fork()") == std::string::npos) {
        return function + (": " + answer.message);
      }
    }
    kiln_cache_trim_memory(cache.get());
    kiln_guard guard = kiln_cache_enter(cache.get());
    kiln_found found;
    if (guard.slot != nullptr || kiln_cache_find(cache.get(), key.get(), &entered, &found) != 0) return "it finds";
    kiln_guard_leave(&guard);
    if (kiln_pending_ended(kept) != 0) return "a pending request ended";
    kiln_pending_free(kept);
    cache.reset();
    auto own = store.open();
    const std::string answer = compiler.get(own.get(), key_of(own.get(), "one").get());
    return answer == "compiled one/2" ? "" : answer;
  });
  CHECK(end.said == "");
  CHECK(end.signal == 0);
  kiln_guard_leave(&entered);
  kiln_key_builder_free(begun);
  kiln_pending_free(kept);
}

TEST_CASE("program faults: a forked child that frees a program of its parent destroys no object") {
  const StoreFolder store;
  TextCompiler compiler;
  ProgramPointer program;
  {
    const auto cache = store.open();
    REQUIRE(compiler.get(cache.get(), key_of(cache.get(), "one").get(), program).ok());
  }
  const int before = TextCompiler::objects;
  const ChildEnd end = in_child([&]() -> std::string {
    program.reset();
    return TextCompiler::objects == before ? "" : "an object was destroyed";
  });
  CHECK(end.said == "");
  CHECK(end.signal == 0);
  program.reset();
  CHECK(TextCompiler::objects == before - 1);
}

TEST_CASE("program faults: an error of the source is not compiled again, a passing error is") {
  const StoreFolder store;
  const auto cache = store.open();
  const Key key = key_of(cache.get(), "one");
  for (const auto& [code, builds] : {std::pair(KILN_INVALID_ARGUMENT, 1), std::pair(KILN_UNAVAILABLE, 3)}) {
    const Key own = key_of(cache.get(), kiln_code_name(code));
    TextCompiler compiler;
    compiler.on_build = [code = code](kiln_request*) { return code; };
    ProgramPointer program;
    for (int time = 0; time < 3; ++time) CHECK(compiler.get(cache.get(), own.get(), program).code == code);
    CHECK(compiler.builds == builds);
  }
  CHECK(stats_of(cache.get()).negative_hits == 2);
}

TEST_CASE("program faults: a log function that closes its cache does nothing, and gets no line of its own for it") {
  const StoreFolder store;
  struct Closing {
    kiln_cache* cache = nullptr;
    int calls = 0;
  } closing;
  kiln_cache_options options = store.options();
  options.log_level = KILN_LOG_DEBUG;
  options.log_user = &closing;
  options.log = [](void* user, kiln_log_level, const char*, const char*) {
    auto& self = *static_cast<Closing*>(user);
    ++self.calls;
    kiln_cache_close(self.cache);
  };
  must(kiln_cache_open(&options, &closing.cache));
  TextCompiler compiler;
  CHECK(compiler.get(closing.cache, key_of(closing.cache, "one").get()) == "compiled one/3");
  CHECK(compiler.get(closing.cache, key_of(closing.cache, "two").get()) == "compiled two/3");
  CHECK(closing.calls >= 2);
  CHECK(closing.calls < 100);
  kiln_cache_close(closing.cache);
}

TEST_CASE("program faults: a log function that uses its own cache is refused at once, another cache serves it") {
  const StoreFolder store;
  struct Using {
    kiln_cache *cache = nullptr, *other = nullptr;
    const kiln_key *key = nullptr, *key_of_other = nullptr;
    kiln_pending* pending = nullptr;
    std::vector<std::string> said;
    bool inside = false;
    TextCompiler compiler;

    void note(const std::string& what) { said.push_back(what); }
    void note(kiln_status* status) {
      const Answer answer(status);
      note(std::string(kiln_code_name(answer.code)) + ": " + answer.message);
    }
  } user;
  kiln_cache_options options = store.options();
  options.log_level = KILN_LOG_DEBUG;
  options.log_user = &user;
  options.log = [](void* of, kiln_log_level, const char*, const char*) {
    auto& self = *static_cast<Using*>(of);
    if (self.cache == nullptr || self.inside || !self.said.empty()) return;
    self.inside = true;
    kiln_program* program = nullptr;
    kiln_cache_stats stats;
    stats.size = sizeof stats;
    self.note(kiln_cache_get_stats(self.cache, &stats));
    self.note(kiln_cache_remove(self.cache, self.key));
    self.note(kiln_pending_wait(self.pending, 60000, &program));
    self.note(self.compiler.get(self.cache, self.key));
    self.note(self.compiler.get(self.other, self.key_of_other));
    kiln_cache_trim_memory(self.cache);
    self.inside = false;
  };
  must(kiln_cache_open(&options, &user.cache));
  kiln_cache* cache = user.cache;
  user.cache = nullptr;
  const auto other = StoreFolder().open();
  {
    const Key key = key_of(cache, "one"), waiting = key_of(cache, "waiting"), of_other = key_of(other.get(), "one");
    std::atomic<bool> go{false};
    TextCompiler slow;
    slow.on_build = [&](kiln_request* request) {
      while (!go) std::this_thread::yield();
      return TextCompiler::compile(request);
    };
    const kiln_compiler callbacks = slow.compiler();
    must(kiln_cache_start(cache, waiting.get(), &callbacks, &user.pending));
    user.key = key.get(), user.key_of_other = of_other.get(), user.other = other.get(), user.cache = cache;
    TextCompiler compiler;
    CHECK(compiler.get(cache, key.get()) == "compiled one/3");
    user.cache = nullptr;
    go = true;
    kiln_program* program = nullptr;
    must(kiln_pending_wait(user.pending, 60000, &program));
    kiln_program_free(program);
    kiln_pending_free(user.pending);
    REQUIRE(user.said.size() == 5);
    for (std::size_t at = 0; at < 4; ++at) {
      CHECK_THAT(user.said[at], Catch::StartsWith("unavailable: kiln_") && Catch::Contains("called by `log`"));
    }
    CHECK(user.said[4] == "compiled one/3");
  }
  kiln_cache_close(cache);
}

TEST_CASE("program faults: a program that is in memory as the other kind is refused, with both sides") {
  const StoreFolder store;
  TextCompiler text;
  const kiln_compiler objects = text.compiler();
  kiln_compiler bytes = objects;
  bytes.load = nullptr;
  const auto check = [&](const kiln_compiler& first, const kiln_compiler& second, const std::string& words) {
    const auto cache = store.open();
    const Key key = key_of(cache.get(), "one");
    kiln_program* program = nullptr;
    must(kiln_cache_get_or_build(cache.get(), key.get(), &first, &program));
    kiln_program_free(program);
    program = nullptr;
    const Answer answer = kiln_cache_get_or_build(cache.get(), key.get(), &second, &program);
    CHECK(answer.code == KILN_INVALID_ARGUMENT);
    CHECK(program == nullptr);
    CHECK_THAT(answer.message, Catch::Contains("program 'label of one'") && Catch::Contains(words));
    const kiln_identity identity = identity_of();
    std::size_t loaded = 1;
    must(kiln_cache_warm(cache.get(), &identity, &second, 10, 1, &loaded));
    CHECK(loaded == 0);
    must(kiln_cache_get_or_build(cache.get(), key.get(), &first, &program));  // as before
    CHECK(kiln_program_tier(program) == KILN_TIER_MEMORY);
    kiln_program_free(program);
  };
  check(objects, bytes, "in memory as an object: an earlier request had a load callback, but this one has none");
  check(bytes, objects, "in memory as bytes: an earlier request had no load callback, but this request has one");
}

TEST_CASE("program faults: a callback that asks for its own program is refused, for another one it is served") {
  const StoreFolder store;
  const auto cache = store.open();
  const Key own = key_of(cache.get(), "own"), other = key_of(cache.get(), "other");
  TextCompiler inner, outer;
  std::string of_own, of_other;
  outer.on_build = [&](kiln_request* request) {
    of_own = inner.get(cache.get(), own.get());
    of_other = inner.get(cache.get(), other.get());
    kiln_cache_close(cache.get());  // refused: it stays open
    return kiln_request_set_bytes(request, "outer", 5) ? KILN_OK : KILN_UNAVAILABLE;
  };
  CHECK(outer.get(cache.get(), own.get()) == "outer/3");
  CHECK_THAT(of_own, Catch::StartsWith("invalid_argument: ") && Catch::Contains("the request would wait for itself"));
  CHECK(of_other == "compiled other/3");
  CHECK(inner.builds == 1);
}

TEST_CASE("program faults: a caller that waited for another's request is not answered with that one's own failure") {
  for (const kiln_code code : {KILN_NOT_FOUND, KILN_UNAVAILABLE}) {
    const StoreFolder store;
    const auto cache = store.open();
    const Key key = key_of(cache.get(), "one");
    std::atomic<bool> begun{false}, end{false};
    TextCompiler failing, sound;
    failing.on_build = [&](kiln_request*) {
      begun = true;
      while (!end) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return code;
    };
    std::string failed, got;
    std::thread first([&] { failed = failing.get(cache.get(), key.get()); });
    while (!begun) std::this_thread::yield();
    std::thread second([&] { got = sound.get(cache.get(), key.get()); });
    std::this_thread::sleep_for(std::chrono::milliseconds(200));  // until it waits
    end = true;
    first.join();
    second.join();
    CHECK_THAT(failed, Catch::StartsWith(kiln_code_name(code)));
    CHECK(got == "compiled one/3");
    CHECK(failing.builds == 1);
    CHECK(sound.builds == 1);
  }
}

TEST_CASE("program faults: those who wait for a callback that hangs get a timeout, others are served") {
  const StoreFolder store;
  const auto cache = store.open([](kiln_cache_options& options) { options.thread_wait_ms = 50; });
  const Key hanging = key_of(cache.get(), "hanging"), other = key_of(cache.get(), "other");
  std::atomic<bool> begun{false}, end{false};
  TextCompiler compiler, second;
  compiler.on_build = [&](kiln_request* request) {
    begun = true;
    while (!end) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return kiln_request_set_bytes(request, "late", 4) ? KILN_OK : KILN_UNAVAILABLE;
  };
  std::string late;
  std::thread builder([&] { late = compiler.get(cache.get(), hanging.get()); });
  while (!begun) std::this_thread::yield();
  ProgramPointer program;
  CHECK(second.get(cache.get(), hanging.get(), program).code == KILN_TIMEOUT);
  CHECK(second.get(cache.get(), other.get()) == "compiled other/3");
  end = true;
  builder.join();
  CHECK(late == "late/3");  // the callback itself was not stopped
  CHECK(second.get(cache.get(), hanging.get()) == "late/1");
  CHECK(second.builds == 1);
}

TEST_CASE("program faults: another process does not wait for ever for a callback that hangs") {
  const StoreFolder store;
  const std::string begun = (store.path() / "begun").string();
  Child hanging([&]() -> std::string {
    TextCompiler compiler;
    compiler.on_build = [&](kiln_request*) {
      close(creat(begun.c_str(), 0600));
      std::this_thread::sleep_for(std::chrono::seconds(60));
      return KILN_UNAVAILABLE;
    };
    const auto cache = store.open();
    return compiler.get(cache.get(), key_of(cache.get(), "one").get());
  });
  while (!std::filesystem::exists(begun)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  TextCompiler compiler;
  const auto cache = store.open([](kiln_cache_options& options) { options.process_wait_ms = 50; });
  CHECK(compiler.get(cache.get(), key_of(cache.get(), "one").get()) == "compiled one/3");
  CHECK(stats_of(cache.get()).lease_timeouts == 1);
  hanging.kill(SIGKILL);
}

TEST_CASE("program faults: bytes that load refuses are removed and built again") {
  for (const kiln_code code : {KILN_CORRUPT, KILN_UNSUPPORTED}) {
    const StoreFolder store;
    TextCompiler compiler;
    {
      const auto cache = store.open();
      compiler.get(cache.get(), key_of(cache.get(), "one").get());
    }
    const auto cache = store.open();
    TextCompiler refusing;
    refusing.on_load = [&](kiln_request* request, std::string text) {
      return refusing.builds == 0 ? code : TextCompiler::give(request, std::move(text));
    };
    CHECK(refusing.get(cache.get(), key_of(cache.get(), "one").get()) == "compiled one/3");
    CHECK(stats_of(cache.get()).refused == 1);
  }
}

TEST_CASE("program faults: a load that throws or gives no object leads to a build") {
  const StoreFolder store;
  TextCompiler compiler;
  {
    const auto cache = store.open();
    compiler.get(cache.get(), key_of(cache.get(), "one").get());
  }
  for (const bool throws : {false, true}) {
    const auto cache = store.open();
    TextCompiler faulty;
    faulty.on_load = [&](kiln_request* request, std::string text) -> kiln_code {
      if (faulty.builds != 0) return TextCompiler::give(request, std::move(text));
      if (throws) throw std::runtime_error("no");
      return KILN_OK;
    };
    CHECK(faulty.get(cache.get(), key_of(cache.get(), "one").get()) == "compiled one/3");
  }
}

TEST_CASE("program faults: bytes that the same compiler cannot load are an error that says so") {
  const StoreFolder store;
  const auto cache = store.open();
  TextCompiler compiler;
  compiler.on_load = [](kiln_request* request, const std::string&) {
    kiln_request_set_message(request, "bad magic");
    return KILN_CORRUPT;
  };
  ProgramPointer program;
  const Answer answer = compiler.get(cache.get(), key_of(cache.get(), "one").get(), program);
  CHECK(answer.code == KILN_INTERNAL);
  CHECK_THAT(answer.message,
             Catch::Contains("the load callback failed: bad magic (with the bytes that build just gave)"));
  CHECK(store.files(".bin").empty());
}

// The end of a process that loads a stored program, whose driver dies of it.
ChildEnd crash_in_load(const StoreFolder& store, std::string* said) {
  const ChildEnd end = in_child([&]() -> std::string {
    TextCompiler compiler;
    compiler.on_build = [](kiln_request* request) {  // the object with the bytes: load is for stored bytes
      if (!kiln_request_set_bytes(request, "crashing", 8)) return KILN_UNAVAILABLE;
      return TextCompiler::give(request, "built");
    };
    compiler.on_load = [](kiln_request*, const std::string&) -> kiln_code {
      std::signal(SIGSEGV, SIG_DFL);  // not the test framework's
      raise(SIGSEGV);
      return KILN_OK;
    };
    const auto cache = store.open();
    const std::string got = compiler.get(cache.get(), key_of(cache.get(), "one").get());
    return got + (stats_of(cache.get()).quarantined == 0 ? "" : ", quarantined");
  });
  if (said != nullptr) *said = end.said;
  return end;
}

TEST_CASE("program faults: a crash in load makes an entry suspect, a second one quarantines it") {
  const StoreFolder store;
  std::string said;
  CHECK(crash_in_load(store, &said).signal == 0);
  CHECK(said == "built/3");
  CHECK(crash_in_load(store, nullptr).signal == SIGSEGV);
  CHECK(crash_in_load(store, &said).signal == 0);  // suspect: not loaded, built again
  CHECK(said == "built/3");
  CHECK(store.files(".suspect").size() == 1);
  CHECK(store.files(".bin").size() == 1);
  CHECK(crash_in_load(store, nullptr).signal == SIGSEGV);
  for (int time = 0; time < 3; ++time) {
    CHECK(crash_in_load(store, &said).signal == 0);
    CHECK(said == "built/3, quarantined");
  }
  CHECK(store.files(".quarantined").size() == 1);
  CHECK(store.files(".bin").empty());
}

}  // namespace
}  // namespace kiln::test

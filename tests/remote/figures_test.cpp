// Whole caches that share programs over real servers: how long a hit takes, how many builds a stampede makes. The long
// form prints the figures of docs/measurements/sharing.md; bounds are wide, because test machines are busy.
#include "core/cache/shared/sharing.hpp"
#include "http_store.hpp"
#include "redis_store.hpp"
#include "remote/servers.hpp"
#include "support/test_length.hpp"

#include <catch2/catch.hpp>

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cstdio>
#include <map>
#include <mutex>
#include <random>

namespace kiln::test {
namespace {

using namespace std::chrono_literals;

std::string s3_endpoint;  // of the running MemoryS3

// Buckets in memory: GET and PUT over kept connections. It checks no signature; http_store_test.cpp does.
class MemoryS3 {
 public:
  MemoryS3() : server_([this](int connection, const std::atomic<bool>& stop) { serve(connection, stop); }) {
    s3_endpoint = "http://127.0.0.1:" + std::to_string(server_.port());
  }

 private:
  void serve(int connection, const std::atomic<bool>& stop) {
    while (!stop) {
      std::string text = read_request(connection, stop);
      const std::size_t head = text.find("\r\n\r\n");
      if (head == std::string::npos) return;
      const bool is_put = text.starts_with("PUT ");
      const std::string path = text.substr(4, text.find(' ', 4) - 4);
      if (is_put) {
        const std::size_t length = text.find("Content-Length: ");
        const std::size_t size = length == std::string::npos ? 0 : std::stoul(text.substr(length + 16));
        std::string body = text.substr(head + 4);
        char bytes[65536];
        while (body.size() < size) {
          const ssize_t count = recv(connection, bytes, sizeof bytes, 0);
          if (count <= 0) return;
          body.append(bytes, static_cast<std::size_t>(count));
        }
        const std::lock_guard lock(mutex_);
        objects_[path] = std::move(body);
      }
      std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
      if (!is_put) {
        const std::lock_guard lock(mutex_);
        const auto at = objects_.find(path);
        answer = at == objects_.end() ? "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
                                      : "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(at->second.size()) +
                                            "\r\n\r\n" + at->second;
      }
      send_text(connection, answer);
    }
  }

  std::mutex mutex_;
  std::map<std::string, std::string> objects_;  // guarded by mutex_
  RawServer server_;                            // last: its threads use the others
};

// With the stores of the plugins.
struct RemoteMachine : SharingMachine {
  RemoteMachine() {
    stores["http"] = remote_http::open_http_store;
    stores["s3"] = [](RemoteContext context) {
      context.credentials = {{"access_key", "AK"}, {"secret_key", "SK"}, {"region", "eu-1"}, {"endpoint", s3_endpoint}};
      return remote_http::open_http_store(context);
    };
    stores["redis"] = remote_redis::open_redis_store;
    device.on_build = [](const KernelSource&) { std::this_thread::sleep_for(20ms); };  // worth a request
  }
  // Every machine of a test has the keys of the first.
  void join(const RemoteMachine& first) {
    config.trust_folders = first.config.trust_folders;
    config.remotes = first.config.remotes;
  }
};

// Texts that do not compress, so that an object has about `bytes` bytes: it holds the source and the binary.
std::vector<std::string> texts_of(std::size_t programs, std::size_t bytes) {
  std::mt19937 random(7);
  std::vector<std::string> texts(programs);
  for (std::string& text : texts) {
    for (std::size_t i = 0; i < bytes / 2; ++i) text += static_cast<char>(33 + random() % 90);
  }
  return texts;
}

double ms_of(Clock::duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

// Of all threads of this process: what a hit costs, whoever else uses the processors.
double cpu_ms() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto ms = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
  };
  return ms(used.ru_utime) + ms(used.ru_stime);
}

void print(const std::string& what, double value, const char* unit) {
  if (is_long()) std::printf("%-58s %9.3f %s\n", what.c_str(), value, unit);
}

// Pushes the programs, then times each hit of a machine with an empty cache.
void time_hits(const std::string& name, const std::string& url) {
  RemoteMachine writer, reader;
  writer.write_to(url);
  const auto texts = texts_of(is_long() ? 300 : 20, 16 << 10);
  writer.build(texts);
  REQUIRE(writer.push().failure.text() == "ok");
  reader.join(writer);
  const auto cache = reader.open();
  // Connects, and reads the index.
  static_cast<void>(acquire(*cache, "none", reader.device));
  std::this_thread::sleep_for(300ms);
  std::vector<double> ms;
  std::size_t remote = 0;
  const double cpu_before = cpu_ms();
  for (const std::string& text : texts) {
    const auto start = Clock::now();
    const auto acquired = acquire(*cache, text, reader.device);
    ms.push_back(ms_of(Clock::now() - start));
    remote += acquired && acquired->tier == Tier::remote;
  }
  const double cpu_of_hits = cpu_ms() - cpu_before;
  // A late answer on a busy machine costs a build, so that only the long form bounds them.
  if (is_long()) CHECK(remote >= texts.size() / 2);
  CHECK(reader.device.false_bytes == 0);
  // By hand there is no hurry: every program arrives.
  RemoteMachine puller;
  puller.join(writer);
  CHECK(puller.pull().stored.programs == texts.size());
  std::ranges::sort(ms);
  print(name + ": hit of 16 KiB, verified and stored, p50", ms[ms.size() / 2], "ms");
  print(name + ": hit of 16 KiB, verified and stored, p99", ms[ms.size() * 99 / 100], "ms");
  print(name + ": processor time of a hit", cpu_of_hits / static_cast<double>(texts.size()), "ms");
}

// A machine with an empty cache gets a batch, over a round trip.
void time_batch(const std::string& name, const std::string& url, const std::string& slow_url) {
  RemoteMachine writer, reader;
  writer.write_to(url);
  const auto texts = texts_of(100, 16 << 10);
  writer.build(texts);
  REQUIRE(writer.push().failure.text() == "ok");
  reader.join(writer);
  reader.config.remotes[0].url = slow_url;
  std::vector<KernelSource> sources;
  std::vector<ProgramKey> keys;
  for (const std::string& text : texts) {
    sources.push_back(source_of(text));
    keys.push_back(key_for(text, reader.device));
  }
  std::vector<ProgramRequest> requests;
  for (std::size_t i = 0; i < texts.size(); ++i) requests.push_back({&keys[i], &sources[i], &reader.device});
  const auto start = Clock::now();
  const auto cache = reader.open();
  std::size_t remote = 0;
  cache->get_or_build_all(requests, 2, [&](std::size_t, Result<Acquired> answer) {
    remote += answer && answer->tier == Tier::remote;
    return true;
  });
  print(name + ": 100 programs ready", ms_of(Clock::now() - start), "ms");
  print(name + ": of these built", reader.device.builds, "");
  const SharedCounts shared = cache->stats().shared;
  print(name + ": requests that failed", static_cast<double>(shared.failed), "");
  print(name + ": late", static_cast<double>(shared.late), "");
  print(name + ": closed", static_cast<double>(shared.closed), "");
  print(name + ": asked", static_cast<double>(shared.asked), "");
  CHECK(remote + static_cast<std::size_t>(reader.device.builds) == 100);
  // On a busy machine some builds begin before the answer; the programs that arrive meanwhile are taken.
  if (is_long()) CHECK(remote >= 50);
}

TEST_CASE("remote figures: a hit over Redis, nginx, a folder and S3") {
  const RedisServer redis;
  const NginxServer nginx;
  const ServerFolder folder;
  time_hits("redis", redis.url());
  time_hits("nginx", nginx.url());
  time_hits("file", "file://" + folder.path().string());
  const MemoryS3 s3;
  time_hits("s3", "s3://bucket/kiln");
}

TEST_CASE("remote figures: 100 programs on a fresh machine, over a round trip of 0.5 and of 50 ms") {
  for (const auto& [round_trip, text] : {std::pair(500us, "0.5 ms"), std::pair(50'000us, "50 ms")}) {
    const RedisServer redis;
    const DelayProxy redis_proxy(redis.port(), round_trip);
    time_batch(std::string("redis, ") + text, redis.url(), "redis://127.0.0.1:" + std::to_string(redis_proxy.port()));
    const NginxServer nginx;
    const DelayProxy nginx_proxy(nginx.port(), round_trip);
    time_batch(std::string("nginx, ") + text, nginx.url(),
               "http://127.0.0.1:" + std::to_string(nginx_proxy.port()) + "/kiln");
  }
}

TEST_CASE("remote figures: hits in memory and on disk do not ask the remote, and take as long as without one") {
  const RedisServer redis;
  RemoteMachine machine;
  machine.write_to(redis.url());
  const auto remotes = machine.config.remotes;
  const auto texts = texts_of(is_long() ? 300 : 10, 16 << 10);
  machine.config.max_memory = 1 << 30;
  machine.config.max_programs = 1 << 10;
  machine.build(texts);
  std::vector<KernelSource> sources;
  std::vector<ProgramKey> keys;
  for (const std::string& text : texts) {
    sources.push_back(source_of(text));
    keys.push_back(key_for(text, machine.device));
  }
  std::map<bool, std::vector<double>> disk_us, memory_ns;  // by whether a remote is configured
  for (int round = 0; round < (is_long() ? 11 : 1); ++round) {
    for (const bool with : {false, true}) {
      machine.config.remotes = with ? remotes : decltype(remotes){};
      const auto cache = machine.open();
      static_cast<void>(acquire(*cache, "none" + std::to_string(2 * round + with), machine.device));
      std::this_thread::sleep_for(300ms);  // until the index is there, which is read once
      const std::uint64_t asked = cache->stats().shared.asked;
      const auto get = [&](std::size_t i) { return cache->get_or_build(keys[i], sources[i], machine.device); };
      for (std::size_t i = 0; i < keys.size(); ++i) {
        const auto start = Clock::now();
        const auto found = get(i);
        disk_us[with].push_back(ms_of(Clock::now() - start) * 1e3);
        REQUIRE(found);
        CHECK(found->tier == Tier::disk);
      }
      constexpr int again = 200;
      for (std::size_t i = 0; i < keys.size(); ++i) {
        const auto start = Clock::now();
        int from_memory = 0;
        for (int call = 0; call < again; ++call) from_memory += get(i)->tier == Tier::memory;
        memory_ns[with].push_back(ms_of(Clock::now() - start) * 1e6 / again);
        CHECK(from_memory == again);
      }
      CHECK(cache->stats().shared.asked == asked);
    }
  }
  for (const bool with : {false, true}) {
    const std::string where = with ? ", a remote is configured" : ", no remote";
    for (auto [name, of, unit] : {std::tuple("disk hit of 16 KiB, p50", &disk_us, "us"),
                                  std::tuple("memory hit into a handle, p50", &memory_ns, "ns")}) {
      std::vector<double>& values = (*of)[with];
      std::ranges::sort(values);
      print(name + where, values[values.size() / 2], unit);
    }
  }
}

TEST_CASE("remote figures: clients that start together on Redis build each program about once") {
  const RedisServer redis;
  RemoteMachine first;
  first.write_to(redis.url());
  // As many at a time as two processors carry, beside the server, without answers that come too late; each begins with
  // an empty cache.
  const std::size_t clients = is_long() ? 1000 : 6, at_a_time = is_long() ? 4 : 6, programs = is_long() ? 100 : 10;
  std::atomic<int> failed{0}, builds{0}, unleased{0}, timeouts{0}, late{0};
  std::atomic<std::size_t> next{0};
  const auto serve = [&] {
    for (std::size_t client = next++; client < clients; client = next++) {
      RemoteMachine machine;
      machine.join(first);
      machine.device.on_build = [](const KernelSource&) { std::this_thread::sleep_for(40ms); };
      {
        const auto cache = machine.open();
        for (std::size_t program = 0; program < programs; ++program) {
          try {
            machine.build_and_run(*cache, "program " + std::to_string((program + client * 7) % programs));
          } catch (const std::exception&) {
            ++failed;
          }
        }
        const SharedCounts shared = cache->stats().shared;
        unleased += static_cast<int>(shared.unleased_builds);
        timeouts += static_cast<int>(shared.lease_timeouts);
        late += static_cast<int>(shared.late);
      }
      builds += machine.device.builds;
    }
  };
  const auto start = Clock::now();
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < at_a_time; ++i) threads.emplace_back(serve);
  for (std::thread& thread : threads) thread.join();
  CHECK(failed == 0);
  print("redis: builds per program, " + std::to_string(clients) + " clients",
        static_cast<double>(builds) / static_cast<double>(programs), "");
  print("redis: of these without a lease", unleased, "");
  print("redis: waits for a lease that took too long", timeouts, "");
  print("redis: late answers", late, "");
  print("redis: all clients", ms_of(Clock::now() - start) / 1000, "s");
  CHECK(static_cast<std::size_t>(builds) >= programs);
  // Waits time out on a machine that is busy enough; without leases there would be `clients` builds of each program.
  if (is_long()) CHECK(static_cast<std::size_t>(builds) <= programs * 2);
}

TEST_CASE("remote figures: what a bad server costs a cold start of 50 programs") {
  const auto texts = texts_of(50, 2 << 10);
  const auto cold_ms = [&](const std::string& url) {
    RemoteMachine machine, writer;
    writer.write_to("file:///nowhere");
    machine.join(writer);
    machine.config.remotes[0].url = url;
    machine.config.remotes[0].writes = false;
    if (url.empty()) machine.config.remotes.clear();
    const auto start = Clock::now();
    {
      const auto cache = machine.open();
      for (const std::string& text : texts) CHECK(acquire(*cache, text, machine.device)->tier == Tier::built);
    }
    return ms_of(Clock::now() - start);
  };
  const auto cost = [&](const std::string& what, const std::string& url) {
    // The median of pairs: a busy machine changes by more than a server costs.
    std::vector<double> added;
    for (int pair = 0; pair < (is_long() ? 5 : 1); ++pair) {
      const double alone_ms = cold_ms("");
      added.push_back(cold_ms(url) - alone_ms);
    }
    std::ranges::sort(added);
    const double ms = added[added.size() / 2];
    print(what + ": added to a cold start of 50 programs", ms, "ms");
    if (is_long()) CHECK(ms < 1000);
  };
  cost("refuses", "http://127.0.0.1:1/kiln");
  RawServer hangs([](int, const std::atomic<bool>& stop) {
    while (!stop) std::this_thread::sleep_for(5ms);
  });
  cost("hangs", "http://127.0.0.1:" + std::to_string(hangs.port()) + "/kiln");
  cost("hangs (Redis)", "redis://127.0.0.1:" + std::to_string(hangs.port()));
  RawServer drips([](int connection, const std::atomic<bool>& stop) {
    read_request(connection, stop);
    drip(connection, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", 1000ms, stop);
  });
  cost("drips one byte a second", "http://127.0.0.1:" + std::to_string(drips.port()) + "/kiln");
  RawServer garbage([](int connection, const std::atomic<bool>& stop) {
    while (!stop && !read_request(connection, stop).empty()) {
      send_text(connection, "HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n" + std::string(2000, 'x'));
    }
  });
  cost("answers garbage", "http://127.0.0.1:" + std::to_string(garbage.port()) + "/kiln");
  RawServer large([](int connection, const std::atomic<bool>& stop) {
    read_request(connection, stop);
    send_text(connection, "HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n");
    while (!stop) std::this_thread::sleep_for(5ms);
  });
  cost("declares 10 GB", "http://127.0.0.1:" + std::to_string(large.port()) + "/kiln");
}

}  // namespace
}  // namespace kiln::test

// record_run: a run of the four layer tables on an OpenGL device, as a trace of what it asked the program cache for.
//
// usage: record_run tables ROUNDS | record_run service INFERENCES THREADS  > benchmarks/traces/NAME.trace
// tables: every layer of every table, one table after another, ROUNDS times over. service: each of THREADS threads
// takes the next of INFERENCES requests, whose networks are drawn by the shares below with a fixed seed, and runs the
// layers of that table in order; what meets in the cache is what met in time. Every job goes through a Runtime with the
// generator's own choice of kernel, and is run and read back; the cache under it is the tiered one, wrapped in a log.
// Afterwards each program that was asked for is built from nothing again, ROUNDS_OF_COSTS times, without the driver's
// own cache: its cost is build + first dispatch − second dispatch over nothing, the least of the rounds.
#include <kiln/plugin_loader.hpp>
#include <kiln/runtime.hpp>

#include "layer_table.hpp"
#include "support/forwarding_cache.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <stdexcept>
#include <thread>
#include <unordered_map>

namespace {

using namespace kiln;
using bench::Layer;

constexpr const char* device_id = "opengl:0";
constexpr int rounds_of_costs = 3;
constexpr std::size_t widest_line = 110;

// Shares in percent, as of the composed traces.
constexpr std::array<std::pair<const char*, int>, 4> networks{
    {{"resnet50", 70}, {"mobilenet_v2", 20}, {"vgg16", 8}, {"prior_system", 2}}};

template <class T>
T need(Result<T> result, const std::string& what) {
  if (!result) throw std::runtime_error(what + ": " + result.error().text());
  return std::move(result).value();
}

void need(const Status& status, const std::string& what) {
  if (!status.ok()) throw std::runtime_error(what + ": " + status.text());
}

struct Asked {
  std::string name;
  KernelSource source;
  std::uint64_t bytes = 0;  // as the memory tier charges them
  std::uint64_t build_ns = 0;
};

// What was asked for, by number, and who each number is.
class RequestLog {
 public:
  void ask(const ProgramKey& key, const KernelSource& source, const ProgramHandle& program) {
    const std::lock_guard lock(mutex_);
    const auto [at, fresh] = numbers_.try_emplace(key.digest, programs_.size());
    if (fresh) programs_.push_back({key.label, source, (*program).charge(), 0});
    requests_.push_back(at->second);
  }
  std::vector<Asked>& programs() { return programs_; }
  const std::vector<std::size_t>& requests() const { return requests_; }

 private:
  std::mutex mutex_;
  std::unordered_map<Digest, std::size_t, DigestHash> numbers_;
  std::vector<Asked> programs_;
  std::vector<std::size_t> requests_;
};

class LoggedCache final : public test::ForwardingCache {
 public:
  LoggedCache(std::unique_ptr<ProgramCache> cache, RequestLog& log) : ForwardingCache(std::move(cache)), log_(log) {}
  Result<Acquired> get_or_build(const ProgramKey& key, const KernelSource& source, Device& device) noexcept override {
    auto acquired = ForwardingCache::get_or_build(key, source, device);
    if (acquired) log_.ask(key, source, acquired->program);
    return acquired;
  }

 private:
  RequestLog& log_;
};

// One layer with its tensors; run by one thread at a time.
struct Job {
  std::mutex mutex;
  RunRequest request;

  Job(const std::string& network, const Layer& layer) {
    const Conv2dSpec& spec = layer.spec;
    const auto tensor = [&](const Shape& shape) {
      auto made = need(HostTensor::create(DType::f32, shape), layer.name);
      std::ranges::fill(made->as<float>(), 0.5f);
      return made;
    };
    request.name = network + "/" + layer.name;
    request.spec = spec;
    request.device = device_id;
    request.tensors = {{tensor({spec.n, spec.c, spec.h, spec.w}), nullptr},
                       {nullptr, Constant::create(tensor({spec.k, spec.c / spec.groups, spec.r, spec.s}))},
                       {tensor({spec.n, spec.k, spec.out_h(), spec.out_w()}), nullptr}};
  }
};

class Service {
 public:
  Service(Runtime& runtime) : runtime_(runtime) {
    for (const auto& [network, share] : networks) {
      const std::string path = KILN_SOURCE_DIR "/tests/data/workloads/" + std::string(network) + ".csv";
      for (const Layer& layer : bench::read_layer_table(path)) {
        jobs_[network].push_back(std::make_unique<Job>(network, layer));
      }
    }
  }

  void run(const std::string& network) {
    for (const auto& job : jobs_.at(network)) {
      const std::lock_guard lock(job->mutex);
      need(runtime_.run(job->request).status, job->request.name);
    }
  }

 private:
  Runtime& runtime_;
  std::map<std::string, std::vector<std::unique_ptr<Job>>> jobs_;
};

void run_tables(Service& service, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    for (const auto& [network, share] : networks) service.run(network);
    std::fprintf(stderr, "record_run: round %d of %d\n", round + 1, rounds);
  }
}

void serve(Service& service, int inferences, int threads) {
  std::vector<int> shares;
  for (const auto& [network, share] : networks) shares.push_back(share);
  std::mt19937_64 dice(15);
  std::discrete_distribution<std::size_t> draw(shares.begin(), shares.end());
  std::vector<std::string> wanted;
  for (int i = 0; i < inferences; ++i) wanted.emplace_back(networks[draw(dice)].first);
  std::atomic<std::size_t> next{0};
  std::mutex failed;
  std::exception_ptr failure;
  const auto work = [&] {
    try {
      for (std::size_t mine = next++; mine < wanted.size(); mine = next++) {
        service.run(wanted[mine]);
        if (mine % 20 == 0) std::fprintf(stderr, "record_run: inference %zu of %d\n", mine, inferences);
      }
    } catch (...) {
      const std::lock_guard lock(failed);
      failure = std::current_exception();
      next = wanted.size();
    }
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  if (failure) std::rethrow_exception(failure);
}

std::uint64_t dispatch_nothing_ns(Device& device, const Program& program, const std::string& what) {
  const PassLaunch launch{&program, {}, PassLaunch::nothing};
  const std::uint64_t start = now_ns();
  const std::uint64_t value = need(device.submit({std::span(&launch, 1)}), what);
  (void)need(device.wait(value, Deadline::after(std::chrono::seconds(60))), what);
  return now_ns() - start;
}

void measure_costs(Device& device, std::vector<Asked>& programs) {
  for (int round = 0; round < rounds_of_costs; ++round) {
    for (Asked& asked : programs) {
      const std::uint64_t start = now_ns();
      const auto program = need(device.build(asked.source), asked.name);
      const std::uint64_t built_ns = now_ns() - start;
      const std::uint64_t first_ns = dispatch_nothing_ns(device, *program, asked.name);
      const std::uint64_t second_ns = dispatch_nothing_ns(device, *program, asked.name);
      const std::uint64_t cost_ns = built_ns + first_ns - std::min(first_ns, second_ns);
      asked.build_ns = round == 0 ? cost_ns : std::min(asked.build_ns, cost_ns);
    }
    std::fprintf(stderr, "record_run: costs, round %d of %d\n", round + 1, rounds_of_costs);
  }
}

void print(const RequestLog& log, const std::vector<Asked>& programs, const DeviceInfo& device,
           const std::string& command) {
  std::printf("# recorded by record_run %s, on %s, %s\n", command.c_str(), device.name.c_str(), device.driver.c_str());
  for (const Asked& asked : programs) {
    std::string name = asked.name;
    std::ranges::replace(name, ' ', '_');
    std::printf("key %s %llu %llu\n", name.c_str(), static_cast<unsigned long long>(asked.bytes),
                static_cast<unsigned long long>(asked.build_ns));
  }
  std::string line = "ask";
  for (const std::size_t request : log.requests()) {
    const std::string word = " " + std::to_string(request);
    if (line.size() + word.size() > widest_line) {
      std::printf("%s\n", line.c_str());
      line = "ask";
    }
    line += word;
  }
  std::printf("%s\n", line.c_str());
}

int number(const char* word) {
  const int value = std::atoi(word);
  if (value < 1) throw std::runtime_error(std::string(word) + ": expected a number from 1 on");
  return value;
}

void record(int count, char** words) {
  const std::string mode = count > 1 ? words[1] : "";
  const bool tables = mode == "tables" && count == 3;
  if (!tables && !(mode == "service" && count == 4)) {
    throw std::runtime_error("usage: record_run tables ROUNDS | record_run service INFERENCES THREADS");
  }
  Registry registry;
  PluginLoader loader;
  need(register_core(registry), "core");
  const std::vector<std::string> plugins{"opengl", "dynamic_shaders"};
  for (const PluginReport& report : loader.load(plugins, plugins, registry, {})) {
    if (!report.loaded) throw std::runtime_error("plugin '" + report.name + "': " + report.why_not.text());
  }
  RequestLog log;
  const CacheFactory tiered = need(registry.cache("tiered"), "tiered");
  need(registry.add_cache("record_run", "logged",
                          [&](const CacheContext& context) -> Result<std::unique_ptr<ProgramCache>> {
                            auto cache = tiered(context);
                            if (!cache) return cache.error();
                            return std::unique_ptr<ProgramCache>(std::make_unique<LoggedCache>(std::move(*cache), log));
                          }),
       "logged");
  Config config;
  config.cache.directory.clear();
  config.cache.name = "logged";
  config.cache.max_programs = 100'000;
  config.cache.max_memory = std::uint64_t{1} << 30;
  {
    const auto runtime = need(Runtime::create(config, registry, {}), "runtime");
    Service service(*runtime);
    if (tables) {
      run_tables(service, number(words[2]));
    } else {
      serve(service, number(words[2]), number(words[3]));
    }
  }
  WorkCounters counters;
  const auto driver = need(registry.drivers().at("opengl").make({{}, &counters, {}, nullptr, {}}), "opengl");
  const auto device = need(driver->open(device_id), device_id);
  measure_costs(*device, log.programs());
  std::string command = mode;
  for (int i = 2; i < count; ++i) command += std::string(" ") + words[i];
  print(log, log.programs(), device->info(), command);
}

}  // namespace

int main(int count, char** words) {
  try {
    // A folder that cannot be: the driver keeps nothing, so that every round of costs pays again.
    setenv("MESA_SHADER_CACHE_DIR", "/proc/nope", 1);
    record(count, words);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "record_run: %s\n", error.what());
    return 1;
  }
}

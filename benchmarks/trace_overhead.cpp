// What a trace costs while jobs run: `kiln run --trace`'s sink beside none, on the cpu device.
//
// usage: trace_overhead [PAIRS] [JOBS]
// Each pair is JOBS jobs of a convolution in a runtime without a trace and as many in one with a trace, in an
// order that alternates: as one request that is repeated, and as so many requests of one run. A small one takes some
// 10 us, where what threads wait for each other decides, so that it jumps; a layer of a network takes ten times that
// and more. After a sixth of the pairs both runtimes are made anew, since the cpu device finds its layouts by timing.
// A figure is wall ÷ jobs; the ratio is of a pair's two sides, so that what slows the machine slows both; median and
// quartiles over the pairs, and the ratio of the fastest tenths, which what else runs on the machine disturbs least.
// At the end of each: what it takes to write a trace, which is after the jobs. Last of all: what a job's spans take on
// the thread that tells them.
#include "executor_bench.hpp"

#include <kiln/chrome_trace.hpp>
#include <kiln/runtime.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

namespace {

using namespace kiln;
using namespace kiln::bench;

struct Side {
  std::unique_ptr<ChromeTrace> trace;  // outlives the runtime
  std::unique_ptr<Runtime> runtime;

  Side(const Registry& registry, bool traced) {
    if (traced) trace = std::make_unique<ChromeTrace>();
    Config config;
    config.cache.directory.clear();
    config.generator.name = "library";
    config.device.prefer = "cpu";
    runtime = need(Runtime::create(config, registry, {}, trace.get()), "runtime");
  }
};

RunRequest request_of(const Conv2dSpec& spec) {
  RunRequest request;
  request.name = "small";
  request.spec = spec;
  request.device = "cpu";
  for (const TensorDecl& declared : tensors_of(request.spec)) {
    const auto elements = static_cast<std::int64_t>(declared.bytes / sizeof(float));
    auto filled = tensor({elements}, -1, 0.37f);
    TensorArgument argument;
    if (declared.role == TensorRole::constant) {
      argument.constant = Constant::create(filled);
    } else {
      argument.host = filled;
    }
    request.tensors.push_back(std::move(argument));
  }
  return request;
}

enum class Requests { repeated, single };

// Of one job.
double us_of(Runtime& runtime, RunRequest& request, std::uint32_t jobs, Requests requests) {
  request.repeat = requests == Requests::repeated ? jobs : 1;
  const std::uint64_t begin = now_ns();
  for (std::uint32_t done = 0; done < jobs; done += request.repeat) {
    const RunReport report = runtime.run(request);
    if (!report.status.ok()) throw std::runtime_error(report.status.text());
  }
  return static_cast<double>(now_ns() - begin) / 1e3 / jobs;
}

double at_share(std::vector<double> values, double share) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

void compare(const Registry& registry, const char* name, RunRequest request, int pairs, std::uint32_t jobs,
             Requests requests) {
  constexpr int remade = 6;
  constexpr std::uint32_t warm_up = 500;
  std::vector<double> plain_us, traced_us, ratios;
  double written_us = 0;
  for (int made = 0; made < remade; ++made) {
    Side plain(registry, false), traced(registry, true);
    for (Side* side : {&plain, &traced}) us_of(*side->runtime, request, warm_up, requests);
    const int of_these = std::max(pairs / remade, 1);
    for (int pair = 0; pair < of_these; ++pair) {
      double us[2];
      for (const int turn : {pair % 2, 1 - pair % 2}) {
        us[turn] = us_of(turn == 0 ? *plain.runtime : *traced.runtime, request, jobs, requests);
      }
      plain_us.push_back(us[0]);
      traced_us.push_back(us[1]);
      ratios.push_back(us[1] / us[0]);
    }
    traced.runtime.reset();
    const std::uint64_t begin = now_ns();
    if (traced.trace->json().size() < jobs) throw std::runtime_error("the trace is empty");
    written_us = static_cast<double>(now_ns() - begin) / 1e3 / (warm_up + static_cast<double>(of_these) * jobs);
  }
  const double plain_least = at_share(plain_us, 0.1), traced_least = at_share(traced_us, 0.1);
  std::printf(
      "%-26s %7.2f us plain %7.2f us traced  ratio %.4f (%.4f to %.4f)  fastest tenths %7.2f %7.2f ratio %.4f  "
      "written in %.2f us a job\n",
      name, median(plain_us), median(traced_us), median(ratios), at_share(ratios, 0.25), at_share(ratios, 0.75),
      plain_least, traced_least, traced_least / plain_least, written_us);
}

// Of a job, by median over rounds.
double us_to_tell() {
  constexpr int rounds = 51, jobs = 10000;
  std::vector<double> us;
  for (int round = 0; round < rounds; ++round) {
    ChromeTrace trace;
    const std::uint64_t begin = now_ns();
    for (std::uint64_t job = 1; job <= jobs; ++job) {
      std::array<StageSpan, 7> spans;
      for (std::size_t i = 0; i < spans.size(); ++i) {
        const auto stage = static_cast<Stage>(static_cast<std::size_t>(Stage::job) + i);
        spans[i] = {"cpu", "direct/plain", 0, job, stage, job, job + 1};
      }
      trace.add_job(spans);
    }
    us.push_back(static_cast<double>(now_ns() - begin) / 1e3 / jobs);
  }
  return median(us);
}

Conv2dSpec conv(std::int64_t c, std::int64_t side, std::int64_t k) {
  Conv2dSpec spec;
  spec.n = 1, spec.c = c, spec.h = spec.w = side, spec.k = k, spec.r = spec.s = 3, spec.pad_y = spec.pad_x = 1;
  return spec;
}

}  // namespace

int main(int argc, char** argv) try {
  const int pairs = argc > 1 ? std::atoi(argv[1]) : 600;
  const auto jobs = static_cast<std::uint32_t>(argc > 2 ? std::atoi(argv[2]) : 100);
  Registry registry;
  if (const Status status = register_core(registry); !status.ok()) throw std::runtime_error(status.text());
  const std::string path = bench::plugins_folder() / "cpu.so";
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  const auto* const entry = static_cast<const PluginEntry*>(dlsym(library, plugin_entry_symbol));
  if (entry == nullptr) throw std::runtime_error(path + ": no " + plugin_entry_symbol);
  if (const Status status = entry->register_fn(registry, {entry->note.name, {}}); !status.ok()) {
    throw std::runtime_error(status.text());
  }
  const RunRequest small = request_of(conv(3, 32, 16)), layer = request_of(conv(64, 28, 64));
  compare(registry, "small: one request", small, pairs, jobs, Requests::repeated);
  compare(registry, "small: requests of one run", small, pairs, jobs, Requests::single);
  compare(registry, "layer: one request", layer, pairs, jobs, Requests::repeated);
  compare(registry, "layer: requests of one run", layer, pairs, jobs, Requests::single);
  std::printf("a job's spans are told in %.3f us\n", us_to_tell());
  return EXIT_SUCCESS;
} catch (const std::exception& error) {
  std::fprintf(stderr, "trace_overhead: %s\n", error.what());
  return EXIT_FAILURE;
}

// What overlapping and recording bring on real devices, every output compared outside the clock.
//
// usage: executor_overlap [overlap|tiny|busy] …  (all where none is named)
// overlap: on llvmpipe with one thread, jobs whose host stage, done by the submitting thread, takes as long as their
//   dispatch. Speed-up = wall of the synchronous loop (host stage, submit, wait, one job after the other) ÷ wall of the
//   same jobs three in flight, all outputs back; five pairs in turns.
// tiny: 1,000 dispatches of 64 floats, each submitted and waited for, against one recording of all; on llvmpipe.
// busy: a convolution on the cpu device while another process takes a core, against without; pairs in turns. Run it
//   with GOMP_SPINCOUNT=1000, as `kiln` does, and with libgomp's own setting.
#include "executor_bench.hpp"

#include "reference/compare.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern char** environ;

namespace {

using namespace kiln;
using namespace kiln::bench;

constexpr std::size_t rounds = 5;

// Work of the host, by count and not by time: what holds it up is seen.
float host_stage(std::uint64_t steps) {
  float value = 1;
  for (std::uint64_t i = 0; i < steps; ++i) value = value * 0.999f + 0.5f;
  return value;
}

volatile float sink = 0;

std::uint64_t steps_for(std::uint64_t ns) {
  constexpr std::uint64_t probe = 4'000'000;
  std::vector<double> times;
  for (int i = 0; i < 7; ++i) {
    const std::uint64_t begin = now_ns();
    sink = host_stage(probe);
    times.push_back(static_cast<double>(now_ns() - begin));
  }
  return static_cast<std::uint64_t>(static_cast<double>(ns) / median(times) * probe);
}

struct ConvJob {
  Submission submission;
  std::shared_ptr<HostTensor> input, output;
};

Conv2dSpec conv(std::int64_t channels, std::int64_t pixels) {
  Conv2dSpec spec;
  spec.c = spec.k = channels;
  spec.h = spec.w = pixels;
  spec.r = spec.s = 3;
  spec.pad_y = spec.pad_x = 1;
  return spec;
}

std::vector<ConvJob> conv_jobs(const Planned& planned, const Conv2dSpec& spec,
                               const std::shared_ptr<const Constant>& weights, std::size_t count) {
  std::vector<ConvJob> jobs;
  for (std::size_t i = 0; i < count; ++i) {
    ConvJob job;
    job.input = tensor({spec.n, spec.c, spec.h, spec.w}, -0.9f, 0.013f + 0.001f * static_cast<float>(i));
    job.output = tensor({spec.n, spec.k, spec.out_h(), spec.out_w()}, 0, 0);
    job.submission = planned.submission({{job.input, nullptr}, {nullptr, weights}, {job.output, nullptr}});
    jobs.push_back(std::move(job));
  }
  return jobs;
}

void poison(const std::vector<ConvJob>& jobs) {
  for (const ConvJob& job : jobs) std::memset(job.output->bytes().data(), 0xff, job.output->bytes().size());
}

void check(const std::vector<ConvJob>& jobs, const Conv2dSpec& spec, const HostTensor& weights, const char* what) {
  for (const ConvJob& job : jobs) {
    const auto compared = need(
        reference::compare_conv2d(spec, *job.input, weights, nullptr, std::as_const(*job.output).as<float>()), what);
    if (!compared.within) throw std::runtime_error(std::string(what) + ": an output is wrong");
  }
}

void run_overlap() {
  setenv("LP_NUM_THREADS", "1", 1);
  Bench bench({"opengl", "dynamic_shaders"});
  const auto device = bench.open("opengl", "opengl:0");
  const Conv2dSpec spec = conv(32, 28);
  const Planned planned = bench.plan(device, spec);
  const auto weights = Constant::create(tensor({spec.k, spec.c, spec.r, spec.s}, -0.7f, 0.0311f));
  const std::vector<ConvJob> jobs = conv_jobs(planned, spec, weights, 24);

  const auto single = bench.executor(1);
  const auto ring = bench.executor(3);
  std::vector<double> device_ns;
  for (int i = 0; i < 6; ++i) {
    const auto measured =
        need(single->wait(need(single->submit(jobs[0].submission), "submit"), Deadline::never()), "wait");
    need(ring->wait(need(ring->submit(jobs[0].submission), "submit"), Deadline::never()), "wait");
    if (i > 1) device_ns.push_back(static_cast<double>(measured.device_ns));
  }
  const std::uint64_t steps = steps_for(static_cast<std::uint64_t>(median(device_ns)));
  std::printf("overlap: %s, dispatch %.2f ms, host stage likewise, %zu jobs\n", device->info().name.c_str(),
              median(device_ns) / 1e6, jobs.size());
  std::vector<double> ratios;
  for (std::size_t round = 0; round < rounds; ++round) {
    poison(jobs);
    std::uint64_t begin = now_ns();
    for (const ConvJob& job : jobs) {
      sink = host_stage(steps);
      need(single->wait(need(single->submit(job.submission), "submit"), Deadline::never()), "wait");
    }
    const double synchronous = static_cast<double>(now_ns() - begin);
    check(jobs, spec, weights->tensor(), "synchronous");
    poison(jobs);
    std::vector<Fence> fences;
    begin = now_ns();
    for (const ConvJob& job : jobs) {
      sink = host_stage(steps);
      fences.push_back(need(ring->submit(job.submission), "submit"));
    }
    for (const Fence fence : fences) need(ring->wait(fence, Deadline::never()), "wait");
    const double pipelined = static_cast<double>(now_ns() - begin);
    check(jobs, spec, weights->tensor(), "pipelined");
    ratios.push_back(synchronous / pipelined);
    std::printf("  synchronous %.1f ms, three in flight %.1f ms: %.2fx\n", synchronous / 1e6, pipelined / 1e6,
                ratios.back());
  }
  std::printf("  median %.2fx (target 1.5); %zu outputs compared\n", median(ratios), 2 * rounds * jobs.size());
}

void run_tiny() {
  constexpr std::size_t count = 1000;
  Bench bench({"opengl", "dynamic_shaders"});
  const auto device = bench.open("opengl", "opengl:0");
  UserKernelSpec spec;
  spec.path = "saxpy";
  spec.dialect = Dialect::glsl;
  spec.text =
      "layout(local_size_x = 64) in;\n"
      "layout(std430, binding = 0) readonly buffer X { float x[]; };\n"
      "layout(std430, binding = 1) buffer Y { float y[]; };\n"
      "void main() { uint i = gl_GlobalInvocationID.x; y[i] = 2.5 * x[i] + 1.0; }\n";
  spec.bindings = {{Access::read, 256}, {Access::read_write, 256}};
  const Planned planned = bench.plan(device, spec);
  std::vector<Submission> jobs;
  for (std::size_t i = 0; i < count; ++i) {
    jobs.push_back(planned.submission(
        {{tensor({64}, static_cast<float>(i % 100) / 100, 0.001f), nullptr}, {tensor({64}, 0, 0), nullptr}}));
  }
  const auto executor = bench.executor(3);
  const auto recording = need(executor->record(jobs), "record");
  const auto check_all = [&](const char* what) {
    for (const Submission& job : jobs) {
      const auto x = job.tensors[0].host->as<float>();
      const auto y = job.tensors[1].host->as<float>();
      for (std::size_t i = 0; i < 64; ++i) {
        if (std::abs(y[i] - (2.5f * x[i] + 1)) > 1e-5f)
          throw std::runtime_error(std::string(what) + ": an output is wrong");
      }
      std::memset(job.tensors[1].host->bytes().data(), 0xff, 256);
    }
  };
  std::vector<double> ratios, naive, recorded;
  for (std::size_t round = 0; round <= rounds; ++round) {
    std::uint64_t begin = now_ns();
    for (const Submission& job : jobs)
      need(executor->wait(need(executor->submit(job), "submit"), Deadline::never()), "wait");
    const double each = static_cast<double>(now_ns() - begin) / count;
    check_all("naive");
    begin = now_ns();
    need(executor->wait(need(executor->replay(recording, Deadline::never()), "replay"), Deadline::never()), "wait");
    const double all = static_cast<double>(now_ns() - begin) / count;
    check_all("recorded");
    if (round == 0) continue;  // code is generated, and the recording bound
    naive.push_back(each);
    recorded.push_back(all);
    ratios.push_back(each / all);
  }
  std::printf("tiny: %zu dispatches on %s: naive %.2f us each, recorded %.2f us each, median ratio %.2fx\n", count,
              device->info().name.c_str(), median(naive) / 1e3, median(recorded) / 1e3, median(ratios));
}

class BusyProcess {
 public:
  explicit BusyProcess(const char* self) {
    std::string program(self), word("--spin");
    char* const words[] = {program.data(), word.data(), nullptr};
    if (posix_spawn(&pid_, "/proc/self/exe", nullptr, nullptr, words, environ) != 0) throw std::runtime_error("spawn");
  }
  ~BusyProcess() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_ = 0;
};

void run_busy(const char* self) {
  Bench bench({"cpu"});
  const auto device = bench.open("cpu", "cpu");
  const Conv2dSpec spec = conv(64, 56);
  const Planned planned = bench.plan(device, spec);
  const auto weights = Constant::create(tensor({spec.k, spec.c, spec.r, spec.s}, -0.7f, 0.0311f));
  const std::vector<ConvJob> jobs = conv_jobs(planned, spec, weights, 1);
  const auto executor = bench.executor(1);
  const auto median_of = [&](int runs) {
    std::vector<double> walls;
    for (int i = 0; i < runs; ++i) {
      walls.push_back(static_cast<double>(
          need(executor->wait(need(executor->submit(jobs[0].submission), "submit"), Deadline::never()), "wait")
              .wall_ns));
    }
    return median(walls);
  };
  median_of(20);
  std::vector<double> alone, shared, ratios;
  for (std::size_t round = 0; round < rounds; ++round) {
    alone.push_back(median_of(60));
    {
      const BusyProcess busy(self);
      median_of(5);
      shared.push_back(median_of(60));
    }
    ratios.push_back(shared.back() / alone.back());
  }
  check(jobs, spec, weights->tensor(), "busy");
  const char* spin = std::getenv("GOMP_SPINCOUNT");
  std::printf(
      "busy: conv 64x56x56 3x3 on the cpu, GOMP_SPINCOUNT %s: alone %.2f ms, a core taken %.2f ms, median %.2fx\n",
      spin != nullptr ? spin : "not set", median(alone) / 1e6, median(shared) / 1e6, median(ratios));
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc > 1 && std::strcmp(argv[1], "--spin") == 0) {
    for (;;) sink = host_stage(1'000'000);
  }
  const auto wanted = [&](const char* part) {
    if (argc == 1) return true;
    return std::any_of(argv + 1, argv + argc, [&](const char* word) { return std::strcmp(word, part) == 0; });
  };
  if (wanted("overlap")) run_overlap();
  if (wanted("tiny")) run_tiny();
  if (wanted("busy")) run_busy(argv[0]);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "executor_overlap: %s\n", error.what());
  return 1;
}

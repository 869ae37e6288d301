// What overlapping and recording bring on real devices, every output compared outside the clock.
//
// usage: executor_overlap [--figures FILE] [overlap|tiny|busy] …  (all where none is named)
// overlap: on llvmpipe with one thread, jobs whose host stage, done by the submitting thread, takes as long as their
//   dispatch. Speed-up = wall of the synchronous loop (host stage, submit, wait, one job after the other) ÷ wall of the
//   same jobs three in flight, all outputs back; five pairs in turns.
// tiny: 1,000 dispatches of 64 floats, each submitted and waited for, against one recording of all; on llvmpipe.
// busy: a convolution on the cpu device while another process takes a core, against without; pairs in turns.
//   cpu_contention has more shapes, and oneDNN on OpenMP's threads beside them.
#include "executor_bench.hpp"
#include "figures.hpp"

#include "reference/compare.hpp"
#include "support/taken_core.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

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

struct FloatJob {
  Submission submission;
  std::shared_ptr<HostTensor> input, output;
};

void poison(const std::vector<FloatJob>& jobs) {
  for (const FloatJob& job : jobs) std::memset(job.output->bytes().data(), 0xff, job.output->bytes().size());
}

// y[i] = x[i] after so many steps v = v * 0.5 + x[i].
KernelSource iterated(std::uint32_t steps) {
  KernelSource source;
  source.dialect = Dialect::glsl;
  source.text =
      "layout(local_size_x = 64) in;\n"
      "layout(std430, binding = 0) readonly buffer X { float x[]; };\n"
      "layout(std430, binding = 1) writeonly buffer Y { float y[]; };\n"
      "void main() {\n"
      "  uint i = gl_GlobalInvocationID.x;\n"
      "  float v = x[i];\n"
      "  for (int n = 0; n < STEPS; ++n) v = v * 0.5 + x[i];\n"
      "  y[i] = v;\n"
      "}\n";
  source.constants = {{"STEPS", std::to_string(steps)}};
  source.workgroup = {64, 1, 1};
  return source;
}

void check_iterated(const std::vector<FloatJob>& jobs, std::uint32_t steps, const char* what) {
  for (const FloatJob& job : jobs) {
    const auto x = job.input->as<float>();
    const auto y = job.output->as<float>();
    for (std::size_t i = 0; i < x.size(); ++i) {
      double v = static_cast<double>(x[i]);
      // The value settles: what more steps change lies below a float's last bit.
      for (std::uint32_t n = 0; n < std::min(steps, 60u); ++n) v = v * 0.5 + static_cast<double>(x[i]);
      if (!(std::abs(static_cast<double>(y[i]) - v) <= 4e-7 * std::max(std::abs(v), 1e-3))) {
        throw std::runtime_error(std::string(what) + ": an output is wrong");
      }
    }
  }
}

std::vector<FloatJob> float_jobs(const Planned& planned, std::int64_t floats, std::size_t count) {
  std::vector<FloatJob> jobs;
  for (std::size_t i = 0; i < count; ++i) {
    FloatJob job;
    job.input = tensor({floats}, -0.9f, 0.013f + 0.0001f * static_cast<float>(i));
    job.output = tensor({floats}, 0, 0);
    job.submission = planned.submission({{job.input, nullptr}, {job.output, nullptr}});
    jobs.push_back(std::move(job));
  }
  return jobs;
}

Planned plan_iterated(const std::shared_ptr<Device>& device, std::int64_t floats, std::uint32_t steps) {
  const auto bytes = static_cast<std::uint64_t>(floats) * sizeof(float);
  return plan(device, {{"x", TensorRole::input, bytes}, {"y", TensorRole::output, bytes}}, iterated(steps),
              {static_cast<std::uint32_t>(floats / 64), 1, 1});
}

// Milliseconds, or as the unit says, of the pairs of a part.
void tell(FigureFile& file, const std::string& id, const std::string& name, const char* unit, std::vector<double> kiln,
          const char* peer, std::vector<double> theirs, double goal, const char* device) {
  Figure figure;
  figure.id = id;
  figure.name = name;
  figure.unit = unit;
  figure.kiln = std::move(kiln);
  figure.peer = Peer{peer, std::move(theirs)};
  if (goal > 0) figure.target = Target{Target::Of::ratio, goal};
  figure.verified = true;  // or the program has ended
  figure.device = device;
  file.add(std::move(figure));
}

Measurement run(Executor& executor, const Submission& submission) {
  return need(executor.wait(need(executor.submit(submission), "submit"), Deadline::never()), "wait");
}

void run_overlap(FigureFile& file) {
  setenv("LP_NUM_THREADS", "1", 1);
  constexpr std::int64_t floats = 65536;
  constexpr std::uint32_t steps = 2000;
  const PluginDevice opengl("opengl", "opengl:0");
  const Planned planned = plan_iterated(opengl.device(), floats, steps);
  const std::vector<FloatJob> jobs = float_jobs(planned, floats, 24);
  const auto single = ring(1);
  const auto three = ring(3);
  std::vector<double> device_ns;
  for (int i = 0; i < 6; ++i) {
    const Measurement measured = run(*single, jobs[0].submission);
    run(*three, jobs[0].submission);
    if (i > 1) device_ns.push_back(static_cast<double>(measured.device_ns));
  }
  const std::uint64_t host_steps = steps_for(static_cast<std::uint64_t>(median(device_ns)));
  std::printf("overlap: %s, dispatch %.2f ms, host stage likewise, %zu jobs\n", opengl.device()->info().name.c_str(),
              median(device_ns) / 1e6, jobs.size());
  std::vector<double> ratios, of_loop, of_ring;
  for (std::size_t round = 0; round < rounds; ++round) {
    poison(jobs);
    std::uint64_t begin = now_ns();
    for (const FloatJob& job : jobs) {
      sink = host_stage(host_steps);
      run(*single, job.submission);
    }
    const double synchronous = static_cast<double>(now_ns() - begin);
    check_iterated(jobs, steps, "synchronous");
    poison(jobs);
    std::vector<Fence> fences;
    begin = now_ns();
    for (const FloatJob& job : jobs) {
      sink = host_stage(host_steps);
      fences.push_back(need(three->submit(job.submission), "submit"));
    }
    for (const Fence fence : fences) need(three->wait(fence, Deadline::never()), "wait");
    const double pipelined = static_cast<double>(now_ns() - begin);
    check_iterated(jobs, steps, "pipelined");
    ratios.push_back(synchronous / pipelined);
    of_loop.push_back(synchronous / 1e6);
    of_ring.push_back(pipelined / 1e6);
    std::printf("  synchronous %.1f ms, three in flight %.1f ms: %.2fx\n", synchronous / 1e6, pipelined / 1e6,
                ratios.back());
  }
  std::printf("  median %.2fx (target 1.5); %zu outputs compared\n", median(ratios), 2 * rounds * jobs.size());
  tell(file, "executor.overlap/loop", "24 jobs, host stages as long as dispatches, three in flight", "ms", of_ring,
       "one after another", of_loop, 1.5, "opengl:0");
}

void run_tiny(FigureFile& file) {
  constexpr std::size_t count = 1000;
  const PluginDevice opengl("opengl", "opengl:0");
  const Planned planned = plan_iterated(opengl.device(), 64, 2);
  const std::vector<FloatJob> jobs = float_jobs(planned, 64, count);
  const auto executor = ring(3);
  std::vector<Submission> submissions;
  for (const FloatJob& job : jobs) submissions.push_back(job.submission);
  const auto recording = need(executor->record(submissions), "record");
  std::vector<double> ratios, naive, recorded;
  for (std::size_t round = 0; round <= rounds; ++round) {
    poison(jobs);
    std::uint64_t begin = now_ns();
    for (const FloatJob& job : jobs) run(*executor, job.submission);
    const double each = static_cast<double>(now_ns() - begin) / count;
    check_iterated(jobs, 2, "naive");
    poison(jobs);
    begin = now_ns();
    need(executor->wait(need(executor->replay(recording, Deadline::never()), "replay"), Deadline::never()), "wait");
    const double all = static_cast<double>(now_ns() - begin) / count;
    check_iterated(jobs, 2, "recorded");
    if (round == 0) continue;  // code is generated, and the recording bound
    naive.push_back(each);
    recorded.push_back(all);
    ratios.push_back(each / all);
  }
  std::printf("tiny: %zu dispatches on %s: naive %.2f us each, recorded %.2f us each, median ratio %.2fx\n", count,
              opengl.device()->info().name.c_str(), median(naive) / 1e3, median(recorded) / 1e3, median(ratios));
  for (double& each : naive) each /= 1e3;
  for (double& each : recorded) each /= 1e3;
  tell(file, "executor.tiny/each", "a tiny dispatch of a recording of 1,000", "us", recorded,
       "submitted and waited for one by one", naive, 0, "opengl:0");
}

void run_busy() {
  const PluginDevice cpu("cpu", "cpu");
  Conv2dSpec spec;
  spec.c = spec.k = 64;
  spec.h = spec.w = 56;
  spec.r = spec.s = 3;
  spec.pad_y = spec.pad_x = 1;
  KernelSource source;
  source.dialect = Dialect::library;
  source.spec = spec;
  source.text = canonical_text(spec);
  const Planned planned = plan(cpu.device(), tensors_of(spec), source, {1, 1, 1});
  const auto weights = Constant::create(tensor({spec.k, spec.c, spec.r, spec.s}, -0.7f, 0.0311f));
  FloatJob job;
  job.input = tensor({spec.n, spec.c, spec.h, spec.w}, -0.9f, 0.013f);
  job.output = tensor({spec.n, spec.k, spec.out_h(), spec.out_w()}, 0, 0);
  job.submission = planned.submission({{job.input, nullptr}, {nullptr, weights}, {job.output, nullptr}});
  const auto executor = ring(1);
  const auto median_of = [&](int runs) {
    std::vector<double> walls;
    for (int i = 0; i < runs; ++i) walls.push_back(static_cast<double>(run(*executor, job.submission).wall_ns));
    return median(walls);
  };
  median_of(20);
  std::vector<double> alone, shared, ratios;
  for (std::size_t round = 0; round < rounds; ++round) {
    alone.push_back(median_of(60));
    {
      const support::TakenCore busy(support::allowed_cores().back());
      median_of(5);
      shared.push_back(median_of(60));
    }
    ratios.push_back(shared.back() / alone.back());
  }
  const auto compared = need(
      reference::compare_conv2d(spec, *job.input, weights->tensor(), nullptr, std::as_const(*job.output).as<float>()),
      "reference");
  if (!compared.within) throw std::runtime_error("busy: the output is wrong");
  std::printf("busy: conv 64x56x56 3x3 on the cpu: alone %.2f ms, a core taken %.2f ms, median %.2fx\n",
              median(alone) / 1e6, median(shared) / 1e6, median(ratios));
}

}  // namespace

int main(int argc, char** argv) try {
  FigureFile file = FigureFile::of_words(argc, argv);
  const auto wanted = [&](const char* part) {
    if (argc == 1) return true;
    return std::any_of(argv + 1, argv + argc, [&](const char* word) { return std::strcmp(word, part) == 0; });
  };
  if (wanted("overlap")) run_overlap(file);
  if (wanted("tiny")) run_tiny(file);
  if (wanted("busy")) run_busy();
  file.write();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "executor_overlap: %s\n", error.what());
  return 1;
}

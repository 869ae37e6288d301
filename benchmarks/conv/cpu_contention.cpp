// cpu_contention: gemms and convolutions on Kiln's worker pool beside oneDNN on OpenMP's own threads, on idle cores and
// with one core taken by another process, in one run.
//
// usage: cpu_contention [TURNS] [--figures FILE]
// Each turn runs one side once, and then back to back for 20 ms, at least three times; its figure is the mean of those,
// as a thread whose core is taken away shows in few runs of many and in all of their time. The sides take turns, and
// who begins alternates. Idle first; then a process that only spins is pinned to the last core that this one may use. A
// ratio is peer ÷ Kiln of a pair of turns: above 1, Kiln is faster. A slow-down is the median of the turns with the
// core taken ÷ that without. Both outputs are poisoned first and compared with the double-precision reference outside
// the clock. Before each turn this process sleeps, until no OpenMP thread spins on a core that the other side needs.
#include <kiln/clock.hpp>

#include "conv/problem.hpp"
#include "figures.hpp"
#include "support/taken_core.hpp"

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>

namespace kiln::bench {
namespace {

struct Case {
  const char* name;
  KernelSpec spec;
};

Conv2dSpec conv(std::int64_t c, std::int64_t h, std::int64_t w, std::int64_t k, std::int64_t taps) {
  Conv2dSpec spec;
  spec.c = c, spec.h = h, spec.w = w, spec.k = k, spec.r = std::min(taps, h), spec.s = taps;
  spec.pad_y = spec.r / 2, spec.pad_x = taps / 2;
  return spec;
}

Conv2dSpec grouped(Conv2dSpec spec, std::int64_t groups) {
  spec.groups = groups;
  return spec;
}

Conv2dSpec batch(Conv2dSpec spec, std::int64_t n) {
  spec.n = n;
  return spec;
}

std::vector<Case> cases() {
  return {{"gemm 512x512x512", GemmSpec{512, 512, 512}},
          {"gemm 128x128x128", GemmSpec{128, 128, 128}},
          {"gemm 1x1000x2048", GemmSpec{1, 1000, 2048}},
          {"gemm 8x1000x2048", GemmSpec{8, 1000, 2048}},
          {"gemm 64x4096x1024", GemmSpec{64, 4096, 1024}},
          {"gemm 4096x64x256", GemmSpec{4096, 64, 256}},
          {"gemm 197x768x768", GemmSpec{197, 768, 768}},
          {"depthwise 960 5x5", grouped(conv(960, 5, 5, 960, 3), 960)},
          {"depthwise 576 14x14", grouped(conv(576, 14, 14, 576, 3), 576)},
          {"2 groups 256 5x5", grouped(conv(256, 5, 5, 256, 3), 2)},
          {"signal 16 1x16000", conv(16, 1, 16000, 16, 9)},
          {"batch 64 of 16 5x5", batch(conv(16, 5, 5, 16, 3), 64)},
          {"3x3 512 7x7", conv(512, 7, 7, 512, 3)},
          {"3x3 64 56x56", conv(64, 56, 56, 64, 3)},
          {"1x1 256 14x14", conv(256, 14, 14, 1024, 1)}};
}

struct Measured {
  double kiln_ms = 0, peer_ms = 0, ratio = 0, lower = 0, upper = 0;
  std::vector<double> kiln, peer;  // ms, of the turns
};

constexpr double turn_ms = 20;
constexpr auto pause = std::chrono::milliseconds(20);  // longer than libgomp spins by default

template <class Call>
double turn_of(Call& call) {
  std::this_thread::sleep_for(pause);
  call.run();
  const std::uint64_t begun = now_ns();
  int runs = 0;
  while (runs < 3 || milliseconds_since(begun) < turn_ms) {
    call.run();
    ++runs;
  }
  return milliseconds_since(begun) / runs;
}

Measured measure(KilnCall& ours, DirectCall& peer, int turns) {
  std::vector<double> kiln_ms, peer_ms, ratios;
  for (int turn = -2; turn < turns; ++turn) {  // two to warm up
    double took[2] = {};
    for (int i = 0; i < 2; ++i) {
      const bool kilns = (i == 0) == (turn % 2 == 0);
      took[kilns ? 0 : 1] = kilns ? turn_of(ours) : turn_of(peer);
    }
    if (turn < 0) continue;
    kiln_ms.push_back(took[0]);
    peer_ms.push_back(took[1]);
    ratios.push_back(took[1] / took[0]);
  }
  return {quantile(kiln_ms, 0.5),
          quantile(peer_ms, 0.5),
          quantile(ratios, 0.5),
          quantile(ratios, 0.25),
          quantile(ratios, 0.75),
          kiln_ms,
          peer_ms};
}

void tell(FigureFile& file, const char* id, const char* name, const char* unit, const std::string& group,
          std::vector<double> kiln, std::vector<double> peer, bool verified) {
  Figure figure;
  figure.id = id;
  figure.name = name;
  figure.unit = unit;
  figure.kiln = std::move(kiln);
  figure.peer = Peer{"oneDNN on OpenMP's threads", std::move(peer)};
  figure.verified = verified;
  figure.group = group;
  figure.device = "cpu";
  file.add(std::move(figure));
}

int compare(int turns, FigureFile& file) {
  KilnCpu cpu;
  const char* spins = std::getenv("GOMP_SPINCOUNT");
  std::printf("%s, %s, %d threads, GOMP_SPINCOUNT %s, %d turns; ratio = peer / Kiln, quartiles beside it\n",
              cpu.device().info().name.c_str(), cpu.device().info().driver.c_str(), omp_get_max_threads(),
              spins != nullptr ? spins : "not set", turns);
  std::printf("%-20s | %9s %9s %6s %13s | %9s %9s %6s %13s | %6s %6s | %s\n", "", "Kiln ms", "peer ms", "ratio", "idle",
              "Kiln ms", "peer ms", "ratio", "core taken", "Kiln x", "peer x", "Kiln's way; peer's");
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  std::mt19937 random(4);
  double idle_logs = 0, taken_logs = 0, kiln_most = 0, peer_most = 0;
  bool right = true;
  for (const Case& of : cases()) {
    Problem problem(of.spec, random);
    DirectCall peer = DirectCall::best(engine, problem);
    KilnCall ours(cpu.device(), problem);
    cpu.forget();
    ours.run();
    const Measured idle = measure(ours, peer, turns);
    const Measured taken = [&] {
      const support::TakenCore busy(support::allowed_cores().back());
      return measure(ours, peer, turns);
    }();
    const bool verified = problem.is_right(problem.kiln_output) && problem.is_right(problem.peer_output);
    right = right && verified;
    idle_logs += std::log(idle.ratio);
    taken_logs += std::log(taken.ratio);
    kiln_most = std::max(kiln_most, taken.kiln_ms / idle.kiln_ms);
    peer_most = std::max(peer_most, taken.peer_ms / idle.peer_ms);
    std::printf("%-20s | %9.4f %9.4f %6.3f %6.2f-%6.2f | %9.4f %9.4f %6.3f %6.2f-%6.2f | %6.2f %6.2f | %s; %s%s\n",
                of.name, idle.kiln_ms, idle.peer_ms, idle.ratio, idle.lower, idle.upper, taken.kiln_ms, taken.peer_ms,
                taken.ratio, taken.lower, taken.upper, taken.kiln_ms / idle.kiln_ms, taken.peer_ms / idle.peer_ms,
                cpu.chosen().c_str(), peer.name().c_str(), verified ? "" : "  WRONG");
    std::fflush(stdout);
    tell(file, "executor.pool.idle/openmp", "idle cores", "ms", of.name, idle.kiln, idle.peer, verified);
    tell(file, "executor.pool.taken/openmp", "one core taken by another process", "ms", of.name, taken.kiln, taken.peer,
         verified);
  }
  const auto count = static_cast<double>(cases().size());
  std::printf(
      "geometric mean of ratios: idle %.3f, core taken %.3f; largest slow-down: Kiln %.2f, peer %.2f; outputs %s\n",
      std::exp(idle_logs / count), std::exp(taken_logs / count), kiln_most, peer_most, right ? "verified" : "WRONG");
  tell(file, "executor.pool.slowdown/openmp", "largest slow-down when one core is taken", "x", "", {kiln_most},
       {peer_most}, right);
  file.write();
  return right ? 0 : 1;
}

}  // namespace
}  // namespace kiln::bench

int main(int count, char** words) {
  try {
    auto file = kiln::bench::FigureFile::of_words(count, words);
    return kiln::bench::compare(count > 1 ? std::max(1, std::atoi(words[1])) : 21, file);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cpu_contention: %s\n", error.what());
    return 1;
  }
}

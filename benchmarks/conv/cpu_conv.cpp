// cpu_conv: Kiln's cpu device against the best direct call of oneDNN, layer by layer, in one run on one thread.
//
// usage: cpu_conv [TABLE.csv] [PAIRS]
// Kiln: submit() and wait() on buffers that wrap NCHW host memory, weights resident and packed. Peer: the same
// convolution by direct oneDNN calls on OpenMP's threads (cpu/problem.hpp). The two run in turns, and the order
// within a pair alternates. A ratio is peer time ÷ Kiln time of one pair: above 1, Kiln is faster. Both outputs are
// poisoned first and compared with the double-precision reference outside the clock.
// GOMP_SPINCOUNT=1000 is fair to both: otherwise the peer's threads still spin on the cores when Kiln's turn has come.
#include <kiln/clock.hpp>

#include "conv/problem.hpp"
#include "layer_table.hpp"
#include "places.hpp"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

namespace kiln::bench {
namespace {

struct Row {
  double kiln_ms = 0, peer_ms = 0, ratio = 0, lower = 0, upper = 0;
};

Row measure(KilnCall& ours, DirectCall& peer, int pairs) {
  std::vector<double> kiln_ms, peer_ms, ratios;
  for (int pair = -3; pair < pairs; ++pair) {  // three to warm up
    double took[2] = {};
    for (int turn = 0; turn < 2; ++turn) {
      const bool kilns = (turn == 0) == (pair % 2 == 0);
      const std::uint64_t begun = now_ns();
      kilns ? ours.run() : peer.run();
      took[kilns ? 0 : 1] = milliseconds_since(begun);
    }
    if (pair < 0) continue;
    kiln_ms.push_back(took[0]);
    peer_ms.push_back(took[1]);
    ratios.push_back(took[1] / took[0]);
  }
  return {quantile(kiln_ms, 0.5), quantile(peer_ms, 0.5), quantile(ratios, 0.5), quantile(ratios, 0.25),
          quantile(ratios, 0.75)};
}

int compare(const std::string& table, int pairs) {
  KilnCpu cpu;
  const DeviceInfo& info = cpu.device().info();
  std::printf("%s, %s, %d threads, %d pairs a layer; ratio = peer / Kiln\n", info.name.c_str(), info.driver.c_str(),
              omp_get_max_threads(), pairs);
  std::printf("%-12s %9s %9s %7s %15s %7s  %-44s %s\n", "layer", "Kiln ms", "peer ms", "ratio", "quartiles", "GFLOP/s",
              "Kiln's layout", "peer's");

  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  std::mt19937 random(20240607);
  double logs = 0;
  double least = std::numeric_limits<double>::infinity();
  bool right = true;
  const std::vector<Layer> layers = read_layer_table(table);
  for (const Layer& layer : layers) {
    Problem problem(layer.spec, random);
    DirectCall peer = DirectCall::best(engine, problem);
    KilnCall ours(cpu.device(), problem);
    cpu.forget();
    ours.run();
    const Row row = measure(ours, peer, pairs);
    const bool verified = problem.is_right(problem.kiln_output) && problem.is_right(problem.peer_output);
    right = right && verified;
    logs += std::log(row.ratio);
    least = std::min(least, row.ratio);
    std::printf("%-12s %9.4f %9.4f %7.3f %7.3f-%7.3f %7.1f  %-44s %s%s\n", layer.name.c_str(), row.kiln_ms, row.peer_ms,
                row.ratio, row.lower, row.upper, flops(layer.spec) / row.kiln_ms / 1e6, cpu.chosen().c_str(),
                peer.name().c_str(), verified ? "" : "  WRONG");
    std::fflush(stdout);
  }
  std::printf("geometric mean %.3f, least %.3f over %zu layers; outputs %s\n",
              std::exp(logs / static_cast<double>(layers.size())), least, layers.size(), right ? "verified" : "WRONG");
  return right ? 0 : 1;
}

}  // namespace
}  // namespace kiln::bench

int main(int count, char** words) {
  try {
    const std::string table = count > 1 ? words[1] : (kiln::bench::tables_folder() / "resnet50.csv").string();
    return kiln::bench::compare(table, count > 2 ? std::max(1, std::atoi(words[2])) : 30);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cpu_conv: %s\n", error.what());
    return 1;
  }
}

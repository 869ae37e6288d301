// networks: whole networks on Kiln's cpu device, beside the libraries that a user would take.
//
// usage: networks [--figures FILE] [--rounds N] [NETWORK…]
// NETWORK: mobilenet_v2, resnet50, vgg16, or a file with one pipeline of layers; all three where none is named. A run
// is one image in host memory to the scores in host memory, weights packed beforehand. In each round every contestant
// runs five times in a row, in an order that rotates; the median of the last three counts, because threads of the
// contestant before spin on for some time. Before the first round Kiln's scores are compared with a chain in double
// precision; before it and after the last one everybody's are poisoned, computed and compared with Kiln's.
//
// Peers: oneDNN, a chain of primitives in the layouts that each likes, with sums and activations as post-ops; XNNPACK,
// a chain of its operators, NHWC; OpenCV's dnn module. Each has as many threads as the process may use cores.
#include <kiln/clock.hpp>
#include <kiln/config_reader.hpp>
#include <kiln/data.hpp>
#include <kiln/plugin_loader.hpp>
#include <kiln/runtime.hpp>

#include "conv/network.hpp"
#include "figures.hpp"
#include "places.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <stdexcept>

namespace kiln::bench {
namespace {

constexpr std::size_t in_a_row = 5, counted = 3;
// Of the largest score: the libraries sum thousands of products in different orders, layer after layer.
constexpr float allowed = 1e-3F;

template <class T>
T need(Result<T> result, const std::string& what) {
  if (!result) throw std::runtime_error(what + ": " + result.error().text());
  return std::move(result).value();
}
void need(const Status& status, const std::string& what) {
  if (!status.ok()) throw std::runtime_error(what + ": " + status.text());
}

class Kiln final : public Contestant {
 public:
  Kiln(const Config& config, PipelineRequest request) : request_(std::move(request)) {
    need(register_core(registry_), "core");
    const std::vector<std::string> plugins{"cpu"};
    PluginLoaderOptions options;
    options.path = {plugins_folder()};
    for (const PluginReport& report : loader_.load(plugins, plugins, registry_, options)) {
      if (!report.loaded) throw std::runtime_error("plugin '" + report.name + "': " + report.why_not.text());
    }
    runtime_ = need(Runtime::create(config, registry_, {}), "runtime");
    request_.device = "cpu";
    request_.check = PipelineCheck::final;
    const RunReport report = runtime_->run(request_);
    need(report.status, request_.pipeline.name);
    if (report.verified != true) throw std::runtime_error(request_.pipeline.name + ": Kiln's scores are WRONG");
    request_.check = PipelineCheck::none;
    recorded_ = need(runtime_->record(request_), request_.pipeline.name);
  }

  void run() override { need(runtime_->replay(*recorded_).status, request_.pipeline.name); }
  void poison() override { std::ranges::fill(result(), std::numeric_limits<float>::quiet_NaN()); }
  std::vector<float> output() override { return {result().begin(), result().end()}; }

 private:
  std::span<float> result() {
    for (const PipelineTensor& tensor : request_.pipeline.tensors) {
      if (tensor.access == Access::write) return tensor.host->as<float>();
    }
    throw std::runtime_error(request_.pipeline.name + ": it has no result");
  }

  PipelineRequest request_;
  Registry registry_;
  PluginLoader loader_;
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<RecordedRequests> recorded_;
};

struct Entrant {
  std::string id, name;
  std::unique_ptr<Contestant> contestant;
  std::vector<double> ms = {};  // a round each
};

bool all_agree(std::vector<Entrant>& entrants, const std::string& network) {
  std::vector<float> ours;
  bool right = true;
  for (Entrant& each : entrants) {
    each.contestant->run();  // OpenCV has an output to poison from here on
    each.contestant->poison();
    each.contestant->run();
    const std::vector<float> scores = each.contestant->output();
    if (ours.empty()) ours = scores;
    float largest = 0, difference = scores.size() == ours.size() ? 0 : std::numeric_limits<float>::infinity();
    for (std::size_t i = 0; i < std::min(ours.size(), scores.size()); ++i) {
      largest = std::max(largest, std::abs(ours[i]));
      const float apart = std::abs(ours[i] - scores[i]);
      if (!(apart <= difference)) difference = apart;  // NaN stays
    }
    if (difference <= allowed * largest) continue;
    right = false;
    std::fprintf(stderr, "%s: %s: a score is %g off, the largest is %g\n", network.c_str(), each.name.c_str(),
                 static_cast<double>(difference), static_cast<double>(largest));
  }
  return right;
}

// Ratios to the peer that is fastest in the median, a round each; empty: there is no peer.
std::vector<double> tell(const std::string& network, std::vector<Entrant>& entrants, bool right, FigureFile& file) {
  Entrant& kiln = entrants.front();
  const auto figure = [&](const Entrant& peer, const std::string& id) {
    Figure made;
    made.id = "network.cpu/" + id;
    made.name = "Kiln on the cpu, the whole network";
    made.unit = "ms";
    made.kiln = kiln.ms;
    made.peer = Peer{peer.name, peer.ms};
    made.verified = right;
    made.group = network;
    made.device = "cpu";
    return made;
  };
  const Entrant* best = nullptr;
  for (const Entrant& each : entrants) {
    std::printf("%-14s %-12s %9.3f ms (%.3f to %.3f)\n", network.c_str(), each.name.c_str(), quantile(each.ms, 0.5),
                quantile(each.ms, 0.25), quantile(each.ms, 0.75));
    if (&each == &kiln) continue;
    file.add(figure(each, each.id));
    if (best == nullptr || quantile(each.ms, 0.5) < quantile(best->ms, 0.5)) best = &each;
  }
  std::fflush(stdout);
  std::vector<double> ratios;
  if (best == nullptr) return ratios;
  Figure made = figure(*best, "best");
  made.target = Target{Target::Of::ratio, 0.97};
  file.add(std::move(made));
  for (std::size_t round = 0; round < kiln.ms.size(); ++round) ratios.push_back(best->ms[round] / kiln.ms[round]);
  return ratios;
}

std::vector<double> run_network(const std::string& name, std::size_t rounds, FigureFile& file, bool& right) {
  ConfigSources sources;
  sources.file = name.ends_with(".toml") ? name : (tables_folder() / "pipelines" / (name + ".toml")).string();
  sources.environment = {};
  const ConfigReading reading = read_config(sources);
  if (!reading.problems.empty()) throw std::runtime_error(reading.problems.front().text());
  if (reading.config.pipelines.size() != 1) throw std::runtime_error(name + ": expected one pipeline");
  PipelineRequest request = need(data::make_request(reading.config.pipelines.front(), data::Contents::load), name);
  const Pipeline pipeline = request.pipeline;
  const Network network(pipeline);
  std::vector<Entrant> entrants;
  const auto add = [&](const char* id, const char* named, std::unique_ptr<Contestant> made) {
    if (made != nullptr) entrants.push_back({id, named, std::move(made)});
  };
  add("kiln", "Kiln", std::make_unique<Kiln>(reading.config, std::move(request)));
  add("onednn", "oneDNN", make_onednn_network(network));
  add("xnnpack", "XNNPACK", make_xnnpack_network(network));
  add("opencv", "OpenCV dnn", make_opencv_network(network));
  bool agree = all_agree(entrants, name);
  for (std::size_t round = 0; round < rounds; ++round) {
    for (std::size_t turn = 0; turn < entrants.size(); ++turn) {
      Entrant& each = entrants[(turn + round) % entrants.size()];
      std::vector<double> last;
      for (std::size_t run = 0; run < in_a_row; ++run) {
        const std::uint64_t begun = now_ns();
        each.contestant->run();
        if (run >= in_a_row - counted) last.push_back(milliseconds_since(begun));
      }
      each.ms.push_back(quantile(last, 0.5));
    }
  }
  agree = all_agree(entrants, name) && agree;
  right = right && agree;
  return tell(name, entrants, agree, file);
}

int compare(int count, char** words) {
  auto file = FigureFile::of_words(count, words);
  std::size_t rounds = 15;
  std::vector<std::string> names;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--rounds" && i + 1 < count) {
      rounds = std::max<std::size_t>(std::stoul(words[++i]), 1);
    } else if (word.starts_with("-")) {
      throw std::runtime_error(word + ": expected --figures FILE, --rounds N or networks");
    } else {
      names.push_back(word);
    }
  }
  if (names.empty()) names = {"mobilenet_v2", "resnet50", "vgg16"};
  bool right = true;
  std::vector<std::vector<double>> ratios;
  for (const std::string& name : names) ratios.push_back(run_network(name, rounds, file, right));
  if (!ratios.front().empty()) {
    Figure mean;
    mean.id = "network.mean.cpu/best";
    mean.name = "Kiln on the cpu, geometric mean of the ratios to the fastest peer of each network";
    mean.unit = "x";
    mean.better = Better::more;
    for (std::size_t round = 0; round < rounds; ++round) {
      std::vector<double> of_networks;
      for (const auto& each : ratios) of_networks.push_back(each[round]);
      mean.kiln.push_back(geometric_mean(of_networks));
    }
    mean.target = Target{Target::Of::kiln, 1.05};
    mean.verified = right;
    mean.device = "cpu";
    std::printf("%-40s %7.3f x\n", mean.id.c_str(), quantile(mean.kiln, 0.5));
    file.add(std::move(mean));
  }
  file.write();
  return right ? 0 : 1;
}

}  // namespace
}  // namespace kiln::bench

int main(int count, char** words) {
  try {
    // OpenMP reads it when it is loaded. Spinning on for milliseconds, its threads would hold the cores in other
    // contestants' turns.
    if (std::getenv("GOMP_SPINCOUNT") == nullptr) {
      setenv("GOMP_SPINCOUNT", "1000", 1);
      execv("/proc/self/exe", words);
    }
    return kiln::bench::compare(count, words);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "networks: %s\n", error.what());
    return 1;
  }
}

// conv_tables: the layers of the networks' tables on each of Kiln's devices, beside the libraries that a user would
// take.
//
// usage: conv_tables [--figures FILE] [--cache-dir DIR] [--rounds N] [--every N] [TABLE…]
// TABLE: resnet50, mobilenet_v2, vgg16, prior_system, or a file; all four where none is named. --every N: only each
// N-th layer. --cache-dir: what was tuned there serves. A run is NCHW in host memory to NCHW in host memory, weights
// packed beforehand; reorders to a library's own layout and back are part of it. In each round every contestant runs
// once, in an order that rotates, after a pause in which threads that spin come to rest. Before the first and after the
// last round every output is poisoned, computed and compared in full with the double-precision reference, outside the
// clock.
//
// Peers: oneDNN direct, in the fastest of its layouts, and Winograd where it has one for the shape; XNNPACK and
// OpenCV's dnn module where the build found them.
#include <kiln/clock.hpp>

#include "conv/contestants.hpp"
#include "conv/problem.hpp"
#include "figures.hpp"
#include "layer_table.hpp"
#include "places.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <thread>

namespace kiln::bench {
namespace {

constexpr auto pause = std::chrono::milliseconds(5);

struct Choices {
  std::vector<std::string> tables;
  std::string cache_directory;
  std::size_t rounds = 5;
  std::size_t every = 1;
};

class Onednn final : public Contestant {
 public:
  Onednn(Problem& problem, DirectCall call) : problem_(problem), call_(std::move(call)) {}
  void run() override { call_.run(); }
  void poison() override { problem_.peer_output.poison(); }
  std::vector<float> output() override {
    return {problem_.peer_output.values.begin(), problem_.peer_output.values.end()};
  }

 private:
  Problem& problem_;
  DirectCall call_;
};

enum class Side { invalid = 0, kiln, peer };

struct Entrant {
  Side side = Side::invalid;
  std::string id, name, device;
  std::unique_ptr<Contestant> contestant;
  std::vector<double> ms;  // a round each
  bool right = true;
};

// Milliseconds of whole tables, by round; only of layers that both sides of a pair have.
struct Sum {
  std::string name, device, peer;
  std::vector<double> kiln, theirs;
  std::vector<std::vector<double>> ratios;  // [layer][round]
};
using Sums = std::map<std::string, Sum>;  // by id

std::vector<Entrant> entrants_of(Problem& problem, KilnDevices& devices, const dnnl::engine& engine) {
  const Conv2dSpec& spec = std::get<Conv2dSpec>(problem.spec);
  std::vector<Entrant> all;
  const auto add = [&](Side side, const char* id, const char* name, const char* device,
                       std::unique_ptr<Contestant> made) {
    if (made != nullptr) all.push_back({side, id, name, device, std::move(made), {}, true});
  };
  add(Side::kiln, "cpu", "Kiln on the cpu", "cpu", devices.on_cpu(problem));
  add(Side::kiln, "opengl", "Kiln on OpenGL", "opengl:0", devices.on_opengl(problem, Accuracy::direct));
  if (spec.r == 3 && spec.s == 3 && spec.stride_y == 1 && spec.groups == 1) {
    add(Side::kiln, "opengl_winograd", "Kiln on OpenGL, Winograd allowed", "opengl:0",
        devices.on_opengl(problem, Accuracy::winograd));
  }
  add(Side::peer, "onednn", "oneDNN direct", "", std::make_unique<Onednn>(problem, DirectCall::best(engine, problem)));
  if (auto winograd = DirectCall::winograd(engine, problem)) {
    add(Side::peer, "onednn_winograd", "oneDNN Winograd", "", std::make_unique<Onednn>(problem, std::move(*winograd)));
  }
  add(Side::peer, "xnnpack", "XNNPACK", "", make_xnnpack(problem));
  add(Side::peer, "opencv", "OpenCV dnn", "", make_opencv(problem));
  return all;
}

void verify(std::vector<Entrant>& entrants, Judge& judge) {
  for (Entrant& each : entrants) {
    each.contestant->run();  // OpenCV has an output to poison from here on
    each.contestant->poison();
    each.contestant->run();
    each.right = judge.is_right(each.contestant->output()) && each.right;
  }
}

void measure(std::vector<Entrant>& entrants, std::size_t rounds) {
  for (std::size_t round = 0; round < rounds; ++round) {
    for (std::size_t turn = 0; turn < entrants.size(); ++turn) {
      Entrant& each = entrants[(turn + round) % entrants.size()];
      std::this_thread::sleep_for(pause);
      const std::uint64_t begun = now_ns();
      each.contestant->run();
      each.ms.push_back(milliseconds_since(begun));
    }
  }
}

std::vector<double> rates(const std::vector<double>& ms, double flops) {
  std::vector<double> gflops;
  for (const double each : ms) gflops.push_back(flops / each / 1e6);
  return gflops;
}

void tell(const std::string& table, const Layer& layer, const std::vector<Entrant>& entrants, Sums& sums,
          FigureFile& file) {
  const double operations = flops(layer.spec);
  for (const Entrant& ours : entrants) {
    if (ours.side != Side::kiln) continue;
    std::printf("%-24s %-16s %9.3f ms %7.1f GFLOP/s %s\n", (table + " " + layer.name).c_str(), ours.id.c_str(),
                quantile(ours.ms, 0.5), operations / quantile(ours.ms, 0.5) / 1e6, ours.right ? "" : "WRONG");
    for (const Entrant& theirs : entrants) {
      if (theirs.side != Side::peer) continue;
      Figure figure;
      figure.id = "conv." + ours.id + "/" + theirs.id;
      figure.name = ours.name;
      figure.unit = "GFLOP/s";
      figure.better = Better::more;
      figure.kiln = rates(ours.ms, operations);
      figure.peer = Peer{theirs.name, rates(theirs.ms, operations)};
      figure.verified = ours.right && theirs.right;
      figure.group = table + ": " + layer.name;
      figure.device = ours.device;
      Sum& sum = sums[figure.id];
      sum.name = ours.name;
      sum.device = ours.device;
      sum.peer = theirs.name;
      sum.kiln.resize(ours.ms.size());
      sum.theirs.resize(ours.ms.size());
      std::vector<double>& ratios = sum.ratios.emplace_back();
      for (std::size_t round = 0; round < ours.ms.size(); ++round) {
        sum.kiln[round] += ours.ms[round];
        sum.theirs[round] += theirs.ms[round];
        ratios.push_back(theirs.ms[round] / ours.ms[round]);
      }
      file.add(std::move(figure));
    }
  }
  std::fflush(stdout);
}

void tell_sums(const std::string& table, const Sums& sums, bool right, FigureFile& file) {
  for (const auto& [id, sum] : sums) {
    const std::string layers = std::to_string(sum.ratios.size()) + (sum.ratios.size() == 1 ? " layer" : " layers");
    Figure whole;
    whole.id = "conv.table" + id.substr(4);
    whole.name = sum.name + ", all " + layers;
    whole.unit = "ms";
    whole.kiln = sum.kiln;
    whole.peer = Peer{sum.peer, sum.theirs};
    whole.verified = right;
    whole.group = table;
    whole.device = sum.device;
    Figure mean;
    mean.id = "conv.mean" + id.substr(4);
    mean.name = sum.name + ", geometric mean of the ratios to " + sum.peer + " of " + layers;
    mean.unit = "x";
    mean.better = Better::more;
    for (std::size_t round = 0; round < sum.kiln.size(); ++round) {
      std::vector<double> of_layers;
      for (const auto& ratios : sum.ratios) of_layers.push_back(ratios[round]);
      mean.kiln.push_back(geometric_mean(of_layers));
    }
    mean.verified = right;
    mean.group = table;
    mean.device = sum.device;
    std::printf("%-14s %-40s %7.3f x %s\n", table.c_str(), mean.id.c_str(), quantile(mean.kiln, 0.5), sum.peer.c_str());
    file.add(std::move(whole));
    file.add(std::move(mean));
  }
}

bool run_table(const std::string& table, const Choices& choices, KilnDevices& devices, FigureFile& file) {
  const bool is_file = table.ends_with(".csv");
  std::vector<Layer> layers = read_layer_table(is_file ? table : (tables_folder() / (table + ".csv")).string());
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  std::mt19937 random(20240607);
  Sums sums;
  bool right = true;
  for (std::size_t at = 0; at < layers.size(); at += choices.every) {
    Problem problem(layers[at].spec, random);
    Judge judge(problem);
    std::vector<Entrant> entrants = entrants_of(problem, devices, engine);
    verify(entrants, judge);
    measure(entrants, choices.rounds);
    verify(entrants, judge);
    for (const Entrant& each : entrants) {
      if (!each.right)
        std::fprintf(stderr, "%s %s: %s is WRONG\n", table.c_str(), layers[at].name.c_str(), each.name.c_str());
      right = right && each.right;
    }
    tell(table, layers[at], entrants, sums, file);
  }
  tell_sums(table, sums, right, file);
  return right;
}

Choices choices_of(int count, char** words) {
  Choices choices;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const auto value = [&]() -> std::string {
      if (i + 1 == count) throw std::runtime_error(word + " needs a value");
      return words[++i];
    };
    const auto from_one = [&]() -> std::size_t {
      const long number = std::stol(value());
      if (number < 1) throw std::runtime_error(word + ": expected 1 or more");
      return static_cast<std::size_t>(number);
    };
    if (word == "--cache-dir") {
      choices.cache_directory = value();
    } else if (word == "--rounds") {
      choices.rounds = from_one();
    } else if (word == "--every") {
      choices.every = from_one();
    } else if (word.starts_with("-")) {
      throw std::runtime_error(word + ": expected --figures, --cache-dir, --rounds or --every");
    } else {
      choices.tables.push_back(word);
    }
  }
  if (choices.tables.empty()) choices.tables = {"resnet50", "mobilenet_v2", "vgg16", "prior_system"};
  return choices;
}

int compare(const Choices& choices, FigureFile& file) {
  KilnDevices devices(choices.cache_directory);
  std::string absent = devices.why_no_opengl().empty() ? "" : "OpenGL: " + devices.why_no_opengl();
  const auto library = [&](const char* name, const char* package, const std::optional<std::string>& version) {
    if (version) {
      file.version(name, *version);
    } else {
      absent +=
          std::string(absent.empty() ? "" : "; ") + name + ": was not there when this was built (" + package + ")";
    }
  };
  const dnnl_version_t* onednn = dnnl::version();
  file.version("onednn", std::to_string(onednn->major) + "." + std::to_string(onednn->minor) + "." +
                             std::to_string(onednn->patch));
  library("xnnpack", "libxnnpack-dev", xnnpack_version());
  library("opencv", "libopencv-dnn-dev", opencv_version());
  if (!devices.opengl_driver().empty()) file.version("opengl", devices.opengl_driver());
  bool right = true;
  for (const std::string& table : choices.tables) right = run_table(table, choices, devices, file) && right;
  if (!absent.empty()) file.skip(absent);
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
    auto file = kiln::bench::FigureFile::of_words(count, words);
    return kiln::bench::compare(kiln::bench::choices_of(count, words), file);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "conv_tables: %s\n", error.what());
    return 1;
  }
}

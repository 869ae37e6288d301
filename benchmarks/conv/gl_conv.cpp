#include "conv/gl_contender.hpp"
#include "figures.hpp"
#include "layer_table.hpp"
#include "places.hpp"
#include "reference/compare.hpp"

#include <kiln/clock.hpp>
#include <kiln/config.hpp>
#include <kiln/driver_cache.hpp>
#include <kiln/kernel_generator.hpp>
#include <kiln/plugin_loader.hpp>
#include <kiln/runtime.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <oneapi/dnnl/dnnl.hpp>

namespace kiln::benchmarks {
namespace {

using Tag = dnnl::memory::format_tag;
constexpr auto f32 = dnnl::memory::data_type::f32;

// OpenMP's threads spin for more work for a while, on the cores that whoever has the next turn needs.
constexpr std::chrono::milliseconds spinning(50);

double milliseconds_since(std::uint64_t begun) { return static_cast<double>(now_ns() - begun) / 1e6; }

dnnl::convolution_forward::primitive_desc described(const Conv2dSpec& spec, const dnnl::engine& engine) {
  const dnnl::memory::dims in{spec.n, spec.c, spec.h, spec.w}, out{spec.n, spec.k, spec.out_h(), spec.out_w()};
  const dnnl::memory::dims weights =
      spec.groups != 1 ? dnnl::memory::dims{spec.groups, spec.k / spec.groups, spec.c / spec.groups, spec.r, spec.s}
                       : dnnl::memory::dims{spec.k, spec.c, spec.r, spec.s};
  return {{dnnl::prop_kind::forward_inference,
           dnnl::algorithm::convolution_direct,
           {in, f32, Tag::any},
           {weights, f32, Tag::any},
           {out, f32, Tag::any},
           {spec.stride_y, spec.stride_x},
           {spec.dilation_y - 1, spec.dilation_x - 1},
           {spec.pad_y, spec.pad_x},
           {spec.pad_y, spec.pad_x}},
          engine};
}

}  // namespace

struct OnednnPeer::Parts {
  const Problem& problem;
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::convolution_forward::primitive_desc description;
  dnnl::convolution_forward convolution;
  std::vector<float> result;
  dnnl::memory input, source, weights, target, output;

  explicit Parts(const Problem& of) : problem(of), description(described(of.spec, engine)), convolution(description) {
    const Conv2dSpec& spec = of.spec;
    result.resize(static_cast<std::size_t>(spec.n * spec.k * spec.out_h() * spec.out_w()));
    const dnnl::memory::desc in({spec.n, spec.c, spec.h, spec.w}, f32, Tag::nchw);
    const dnnl::memory::desc out({spec.n, spec.k, spec.out_h(), spec.out_w()}, f32, Tag::nchw);
    input = {in, engine, of.input->as<float>().data()};
    output = {out, engine, result.data()};
    source = {description.src_desc(), engine};
    target = {description.dst_desc(), engine};
    weights = {description.weights_desc(), engine};
    const dnnl::memory::desc given =
        spec.groups != 1 ? dnnl::memory::desc({spec.groups, spec.k / spec.groups, spec.c / spec.groups, spec.r, spec.s},
                                              f32, Tag::goihw)
                         : dnnl::memory::desc({spec.k, spec.c, spec.r, spec.s}, f32, Tag::oihw);
    dnnl::memory plain(given, engine, of.weights->as<float>().data());
    move(plain, weights);
    move(input, source);
  }

  void move(dnnl::memory& from, dnnl::memory& to) {
    dnnl::reorder(from, to).execute(stream, from, to);
    stream.wait();
  }
  void convolve() {
    convolution.execute(stream, {{DNNL_ARG_SRC, source}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, target}});
    stream.wait();
  }
};

OnednnPeer::OnednnPeer(const Problem& problem) : parts_(std::make_unique<Parts>(problem)) {
  if (name().starts_with("oneDNN ref")) throw std::runtime_error("oneDNN has only its reference code for this shape");
}
OnednnPeer::OnednnPeer(OnednnPeer&&) noexcept = default;
OnednnPeer::~OnednnPeer() = default;

std::string OnednnPeer::name() const { return std::string("oneDNN ") + parts_->description.impl_info_str(); }

bool OnednnPeer::is_right() {
  std::ranges::fill(parts_->result, std::numeric_limits<float>::quiet_NaN());
  parts_->convolve();
  parts_->move(parts_->target, parts_->output);
  const Problem& problem = parts_->problem;
  const auto compared =
      reference::compare_conv2d(problem.spec, *problem.input, *problem.weights, nullptr, parts_->result);
  if (!compared) throw std::runtime_error(compared.error().text());
  return compared->within;
}

Times OnednnPeer::time() {
  Times times;
  std::uint64_t begun = now_ns();
  while (milliseconds_since(begun) < warming_ms) parts_->convolve();
  begun = now_ns();
  double repeats = 0;
  do {
    parts_->convolve();
    ++repeats;
  } while (milliseconds_since(begun) < least_timed_ms && repeats < most_repeats);
  times.device_ms = milliseconds_since(begun) / repeats;
  begun = now_ns();
  parts_->move(parts_->input, parts_->source);
  parts_->convolve();
  parts_->move(parts_->target, parts_->output);
  times.wall_ms = milliseconds_since(begun);
  std::this_thread::sleep_for(spinning);
  return times;
}

}  // namespace kiln::benchmarks

// gl_conv: the generator's kernels on an OpenGL device against the plain kernel with constants, a shape-generic one,
// and oneDNN's direct convolution on the host's cores.
//
// usage: gl_conv [--cache-dir DIR] [--vector-width BITS] [--winograd] [--passes] [--figures FILE] [--only ROLES]
//                [TABLE.csv] [ROUNDS] [NAMES] [VARIANT…]
// --cache-dir: what was tuned there serves, and the driver keeps its code there, in a folder for each vector width;
// else a temporary folder. --vector-width: llvmpipe's. --winograd: Winograd's error is allowed. --passes: also each
// pass of ours. --figures: the times too, a contender a line, for vector_widths.py. --only: of plain, shape-generic,
// untuned, stand-in and onednn those that ours meets, parted by commas; else all. NAMES: layers of the table, parted by
// commas, or "all". VARIANT: ids to run beside the generator's own choice. In each round every contender runs, in an
// order that rotates, and for 10 ms before it is timed. Device time: all passes but the one that packs activations, by
// the device's clock, repeated until they take 2 ms; oneDNN: the convolution alone, in its own layout, likewise. Wall:
// from the input in host memory to the output in host memory, NCHW both, with all passes, once. A ratio is the other's
// time ÷ ours within one round, medians and quartiles over the rounds; least: the shortest of the other's times ÷ the
// shortest of ours, which others on the machine disturb least. Every contender's whole output is compared with the
// double-precision reference, poisoned first, outside the clock.

namespace {

using namespace kiln;
using bench::Layer;
using bench::quantile;
using benchmarks::Contender;
using benchmarks::OnednnPeer;
using benchmarks::Problem;
using benchmarks::Times;

template <class T>
T need(Result<T> result, const std::string& what) {
  if (!result) throw std::runtime_error(what + ": " + result.error().text());
  return std::move(result).value();
}

std::vector<Layer> read_table(const std::string& path, const std::string& names) {
  std::vector<Layer> layers = bench::read_layer_table(path);
  if (names == "all") return layers;
  const std::string wanted = "," + names + ",";
  std::erase_if(layers, [&](const Layer& layer) { return wanted.find("," + layer.name + ",") == std::string::npos; });
  return layers;
}

struct Series {
  std::vector<double> device, wall;
};

double least_ratio(const std::vector<double>& other, const std::vector<double>& ours) {
  return *std::min_element(other.begin(), other.end()) / *std::min_element(ours.begin(), ours.end());
}

std::vector<double> ratios(const std::vector<double>& other, const std::vector<double>& ours) {
  std::vector<double> result;
  for (std::size_t i = 0; i < ours.size(); ++i) result.push_back(other[i] / ours[i]);
  return result;
}

void print_row(const std::string& name, const Series& series, const Series& ours, double flops, bool right) {
  for (const bool device : {true, false}) {
    const std::vector<double>& times = device ? series.device : series.wall;
    const std::vector<double>& our_times = device ? ours.device : ours.wall;
    const auto compared = ratios(times, our_times);
    std::printf("%s %9.3f %7.1f %8.2f [%6.2f %6.2f] %6.2f", device ? "  " : " |", quantile(times, 0.5),
                flops / quantile(times, 0.5) / 1e6, quantile(compared, 0.5), quantile(compared, 0.25),
                quantile(compared, 0.75), least_ratio(times, our_times));
  }
  std::printf("  %s%s\n", name.c_str(), right ? "" : "  WRONG");
}

// Logarithms of another's time ÷ ours.
struct LogSum {
  double device = 0, least_device = 0, wall = 0;
  void add(const Series& other, const Series& ours) {
    device += std::log(quantile(ratios(other.device, ours.device), 0.5));
    least_device += std::log(least_ratio(other.device, ours.device));
    wall += std::log(quantile(ratios(other.wall, ours.wall), 0.5));
  }
};
using LogSums = std::map<std::string, LogSum>;  // by role

const std::vector<std::string> known_roles{"plain", "shape-generic", "untuned", "stand-in", "onednn"};

struct Choices {
  std::string table = (bench::tables_folder() / "resnet50.csv").string();
  int rounds = 7;
  std::string names = "all";
  std::vector<std::string> variants;
  std::string cache_directory, figures;
  std::vector<std::string> roles = known_roles;  // that ours meets
  std::int64_t vector_width = 0;                 // 0: the driver's own
  bool winograd = false;
  bool passes = false;  // tell the time of each pass of ours

  bool meets(const std::string& role) const { return std::ranges::find(roles, role) != roles.end(); }
};

// layer, contender, variant, median and least device ms, median and least wall ms.
void write_figures(const std::string& path, const std::string& layer, const std::string& contender,
                   const std::string& variant, const Series& series) {
  std::ofstream file(path, std::ios::app);
  file << layer << '\t' << contender << '\t' << variant;
  for (const std::vector<double>* times : {&series.device, &series.wall}) {
    file << '\t' << quantile(*times, 0.5) << '\t' << quantile(*times, 0);
  }
  file << '\n';
  if (!file) throw std::runtime_error(path + ": cannot be written");
}

// Answers whether every contender was right.
bool compare(const Layer& layer, Device& device, KernelGenerator& generator, KernelGenerator& untuned,
             const Choices& choices, LogSums& sums) {
  const Problem problem(layer.spec, 20240607);
  const DeviceInfo& info = device.info();
  std::vector<KernelPlan> plans;
  std::vector<std::string> roles;
  const auto enter = [&](const std::string& role, KernelPlan plan) {
    roles.push_back(role);
    plans.push_back(std::move(plan));
  };
  const auto plan_of = [&](const std::string& variant) {
    return need(generator.generate_variant(layer.spec, info, Dialect::glsl, variant), layer.name);
  };
  enter("ours", need(generator.generate(layer.spec, info, Dialect::glsl), layer.name));
  if (choices.meets("plain")) enter("plain", plan_of("direct/plain"));
  if (choices.meets("shape-generic")) enter("shape-generic", benchmarks::shape_generic_plan(layer.spec));
  if (choices.meets("untuned")) enter("untuned", need(untuned.generate(layer.spec, info, Dialect::glsl), layer.name));
  if (choices.meets("stand-in")) {
    for (KernelPlan& plan : generator.generic_plans(layer.spec, info, Dialect::glsl))
      enter("stand-in", std::move(plan));
  }
  for (const std::string& variant : choices.variants) enter("variant", plan_of(variant));
  std::vector<Contender> contenders;
  contenders.reserve(plans.size());
  for (KernelPlan& plan : plans) contenders.emplace_back(device, problem, std::move(plan));
  std::optional<OnednnPeer> onednn;
  if (choices.meets("onednn")) {
    roles.emplace_back("onednn");
    onednn.emplace(problem);
  }
  std::vector<Series> series(roles.size());
  const auto add = [&](std::size_t which, const Times& times) {
    series[which].device.push_back(times.device_ms);
    series[which].wall.push_back(times.wall_ms);
  };
  for (int round = 0; round < choices.rounds; ++round) {
    for (std::size_t turn = 0; turn < series.size(); ++turn) {
      const std::size_t which = (turn + static_cast<std::size_t>(round)) % series.size();
      add(which, which < contenders.size() ? contenders[which].time() : onednn->time());
    }
  }
  std::printf("%s: %s\n", layer.name.c_str(), canonical_text(layer.spec).c_str());
  bool all_right = true;
  for (std::size_t i = 0; i < series.size(); ++i) {
    const bool peer = i == contenders.size();
    const bool right = peer ? onednn->is_right() : contenders[i].is_right();
    all_right = all_right && right;
    const std::string variant = peer ? onednn->name() : contenders[i].variant();
    print_row(roles[i] + ": " + variant, series[i], series[0], flops(layer.spec), right);
    if (!choices.figures.empty()) write_figures(choices.figures, layer.name, roles[i], variant, series[i]);
  }
  if (choices.passes) {
    std::printf("  ours, each pass, least ms:");
    for (const double ms : contenders[0].pass_ms(choices.rounds)) std::printf(" %.3f", ms);
    std::printf("\n");
  }
  std::fflush(stdout);
  for (const std::string& role : known_roles) {
    const auto first = std::ranges::find(roles, role);
    if (role == "stand-in" || first == roles.end()) continue;  // stand-ins are several, and not the same for all
    sums[role].add(series[static_cast<std::size_t>(first - roles.begin())], series[0]);
  }
  return all_right;
}

int run(const Choices& choices) {
  Registry registry;
  PluginLoader loader;
  const std::vector<std::string> plugins{"opengl", "dynamic_shaders"};
  for (const PluginReport& report : loader.load(plugins, plugins, registry, {})) {
    if (!report.loaded) throw std::runtime_error("plugin '" + report.name + "': " + report.why_not.text());
  }
  WorkCounters counters;
  const auto driver = need(registry.drivers().at("opengl").make({{}, &counters, {}, nullptr, {}}), "opengl");
  const auto device = need(driver->open("opengl:0"), "opengl:0");
  const auto generators = need(registry.generators("dynamic_shaders"), "dynamic_shaders");
  const auto generator = need(generators.front()->make({{}, choices.cache_directory, true, {}}), "dynamic_shaders");
  const auto untuned = need(generators.front()->make({{}, {}, true, {}}), "dynamic_shaders");
  std::printf("%s, %s, %d rounds\n", device->info().name.c_str(), device->info().driver.c_str(), choices.rounds);
  std::printf("  %9s %7s  %8s %15s %6s | %9s %7s  %8s %15s %6s  %s\n", "device ms", "GFLOP/s", "÷ ours", "quartiles",
              "least", "wall ms", "GFLOP/s", "÷ ours", "quartiles", "least", "variant");
  LogSums sums;
  bool right = true;
  std::vector<Layer> layers = read_table(choices.table, choices.names);
  for (Layer& layer : layers) {
    if (choices.winograd) layer.spec.accuracy = Accuracy::winograd;
    right = compare(layer, *device, *generator, *untuned, choices, sums) && right;
  }
  const auto mean = [&](double sum) {
    return std::exp(sum / static_cast<double>(std::max<std::size_t>(layers.size(), 1)));
  };
  std::printf("geometric means over %zu layers, other's time ÷ ours:\n", layers.size());
  for (const auto& [name, sum] : sums) {
    std::printf("  %-14s device %7.3f (least %7.3f), wall %7.3f\n", name.c_str(), mean(sum.device),
                mean(sum.least_device), mean(sum.wall));
  }
  std::printf("outputs %s\n", right ? "verified" : "WRONG");
  return right ? 0 : 1;
}

std::vector<std::string> read_roles(const std::string& text) {
  std::vector<std::string> roles;
  std::istringstream words(text);
  for (std::string role; std::getline(words, role, ',');) {
    if (std::ranges::find(known_roles, role) == known_roles.end()) {
      throw std::runtime_error("--only: '" + role + "': expected plain, shape-generic, untuned, stand-in or onednn");
    }
    roles.push_back(role);
  }
  return roles;
}

Choices parse(int count, char** words) {
  Choices choices;
  std::vector<std::string> rest;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--winograd") {
      choices.winograd = true;
    } else if (word == "--passes") {
      choices.passes = true;
    } else if (word == "--cache-dir" && i + 1 < count) {
      choices.cache_directory = words[++i];
    } else if (word == "--figures" && i + 1 < count) {
      choices.figures = words[++i];
    } else if (word == "--only" && i + 1 < count) {
      choices.roles = read_roles(words[++i]);
    } else if (word == "--vector-width" && i + 1 < count) {
      choices.vector_width = std::atoll(words[++i]);
    } else if (word.starts_with("--")) {
      throw std::runtime_error(
          word +
          ": expected --cache-dir DIR, --vector-width BITS, --winograd, --passes, --figures FILE or --only ROLES");
    } else {
      rest.push_back(word);
    }
  }
  if (!rest.empty()) choices.table = rest[0];
  if (rest.size() > 1) choices.rounds = std::max(1, std::atoi(rest[1].c_str()));
  if (rest.size() > 2) choices.names = rest[2];
  if (rest.size() > 3) choices.variants.assign(rest.begin() + 3, rest.end());
  return choices;
}

// The driver's settings and its own folder, before any thread or library of it exists.
void set_driver_environment(const Choices& choices, const std::filesystem::path& directory) {
  Config config;
  config.cache.directory = directory;
  if (choices.vector_width != 0) config.plugin["opengl"]["vector_width"].value = choices.vector_width;
  for (const auto& [name, value] : driver_environment(config)) {
    if (name == "MESA_SHADER_CACHE_DIR") {
      const Status status = prepare_driver_cache(value);
      if (!status.ok()) throw std::runtime_error(status.text());
    }
    setenv(name.c_str(), value.c_str(), 1);
  }
}

class TemporaryFolder {
 public:
  TemporaryFolder() : path_((std::filesystem::temp_directory_path() / "gl_conv-XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error(path_ + ": cannot be made");
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

int main(int count, char** words) {
  try {
    const Choices choices = parse(count, words);
    const TemporaryFolder temporary;
    set_driver_environment(choices, choices.cache_directory.empty() ? temporary.path() : choices.cache_directory);
    return run(choices);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gl_conv: %s\n", error.what());
    return 1;
  }
}

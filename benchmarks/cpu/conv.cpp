// cpu_conv: Kiln's cpu device against the best direct call of oneDNN, layer by layer, in one run on one thread.
//
// usage: cpu_conv [TABLE.csv] [PAIRS]
// Kiln: submit() and wait() on buffers that wrap NCHW host memory, weights resident and packed. Peer: the same
// convolution by direct oneDNN calls, weights packed beforehand, from NCHW to NCHW with the reorders that its layout
// needs; of the layouts below it takes, per layer, the one with the least median of its own. The two run in turns, and
// the order within a pair alternates. A ratio is peer time ÷ Kiln time of one pair: above 1, Kiln is faster. Both
// outputs are poisoned first and compared with the double-precision reference outside the clock.
#include <kiln/plugin.hpp>

#include "layer_table.hpp"
#include "reference/compare.hpp"

#include <dlfcn.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using kiln::Conv2dSpec;
using Tag = dnnl::memory::format_tag;
constexpr auto f32 = dnnl::memory::data_type::f32;

struct Tensor {
  explicit Tensor(std::int64_t elements)
      : held(kiln::HostTensor::create(kiln::DType::f32, {elements}).value()), values(held->as<float>()) {}
  void fill(std::mt19937& random) {
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (float& value : values) value = uniform(random);
  }
  void poison() { std::fill(values.begin(), values.end(), std::numeric_limits<float>::quiet_NaN()); }

  std::shared_ptr<kiln::HostTensor> held;
  std::span<float> values;
};

struct Problem {
  Problem(const Conv2dSpec& of, std::mt19937& random)
      : spec(of),
        input(of.n * of.c * of.h * of.w),
        weights(of.k * (of.c / of.groups) * of.r * of.s),
        kiln_output(of.n * of.k * of.out_h() * of.out_w()),
        peer_output(of.n * of.k * of.out_h() * of.out_w()) {
    input.fill(random);
    weights.fill(random);
  }
  Conv2dSpec spec;
  Tensor input, weights, kiln_output, peer_output;
};

bool is_right(const Problem& problem, const Tensor& output) {
  const auto compared =
      kiln::reference::compare_conv2d(problem.spec, *problem.input.held, *problem.weights.held, nullptr, output.values);
  if (!compared) throw std::runtime_error(compared.error().text());
  return compared->within;
}

double milliseconds_since(std::uint64_t begun) { return static_cast<double>(kiln::now_ns() - begun) / 1e6; }

double quantile(std::vector<double> of, double share) {
  std::sort(of.begin(), of.end());
  return of[static_cast<std::size_t>(share * static_cast<double>(of.size() - 1) + 0.5)];
}

// One layout of the peer: the convolution, its reorders, and the memory they work on.
class DirectCall {
 public:
  static std::optional<DirectCall> make(const dnnl::engine& engine, Problem& problem, Tag tag) {
    const Conv2dSpec& spec = problem.spec;
    const dnnl::memory::dims in{spec.n, spec.c, spec.h, spec.w};
    const dnnl::memory::dims out{spec.n, spec.k, spec.out_h(), spec.out_w()};
    const bool grouped = spec.groups != 1;
    const dnnl::memory::dims weights =
        grouped ? dnnl::memory::dims{spec.groups, spec.k / spec.groups, spec.c / spec.groups, spec.r, spec.s}
                : dnnl::memory::dims{spec.k, spec.c, spec.r, spec.s};
    try {
      const dnnl::convolution_forward::primitive_desc described({dnnl::prop_kind::forward_inference,
                                                                 dnnl::algorithm::convolution_direct,
                                                                 {in, f32, tag},
                                                                 {weights, f32, Tag::any},
                                                                 {out, f32, tag},
                                                                 {spec.stride_y, spec.stride_x},
                                                                 {spec.pad_y, spec.pad_x},
                                                                 {spec.pad_y, spec.pad_x}},
                                                                engine, true);
      if (!described) return std::nullopt;
      DirectCall call(engine);
      call.name_ = described.impl_info_str();
      call.convolution_ = dnnl::convolution_forward(described);
      const dnnl::memory given({weights, f32, grouped ? Tag::goihw : Tag::oihw}, engine, problem.weights.values.data());
      call.weights_ = call.converted(given, described.weights_desc());
      call.input_ = dnnl::memory({in, f32, Tag::nchw}, engine, problem.input.values.data());
      call.output_ = dnnl::memory({out, f32, Tag::nchw}, engine, problem.peer_output.values.data());
      call.source_ = call.input_;
      call.result_ = call.output_;
      if (described.src_desc() != call.input_.get_desc()) {
        call.source_ = dnnl::memory(described.src_desc(), engine);
        call.before_ = dnnl::reorder(call.input_, call.source_);
      }
      if (described.dst_desc() != call.output_.get_desc()) {
        call.result_ = dnnl::memory(described.dst_desc(), engine);
        call.after_ = dnnl::reorder(call.result_, call.output_);
      }
      return call;
    } catch (const dnnl::error&) {
      return std::nullopt;  // this layout does not exist for the shape
    }
  }

  void run() {
    if (before_) before_.execute(stream_, input_, source_);
    convolution_.execute(stream_, {{DNNL_ARG_SRC, source_}, {DNNL_ARG_WEIGHTS, weights_}, {DNNL_ARG_DST, result_}});
    if (after_) after_.execute(stream_, result_, output_);
    stream_.wait();
  }
  double median_ms(int runs) {
    std::vector<double> took;
    for (int i = 0; i < runs; ++i) {
      const std::uint64_t begun = kiln::now_ns();
      run();
      took.push_back(milliseconds_since(begun));
    }
    return quantile(took, 0.5);
  }
  const std::string& name() const { return name_; }

 private:
  explicit DirectCall(const dnnl::engine& engine) : engine_(engine), stream_(engine) {}
  dnnl::memory converted(dnnl::memory from, const dnnl::memory::desc& wanted) {
    dnnl::memory to(wanted, engine_);
    dnnl::reorder(from, to).execute(stream_, from, to);
    stream_.wait();
    return to;
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  std::string name_;
  dnnl::convolution_forward convolution_;
  dnnl::reorder before_, after_;
  dnnl::memory input_, source_, weights_, result_, output_;
};

DirectCall best_direct_call(const dnnl::engine& engine, Problem& problem) {
  std::optional<DirectCall> best;
  double least = 0;
  for (const Tag tag : {Tag::any, Tag::nchw, Tag::nhwc, Tag::nChw16c, Tag::nChw8c}) {
    auto call = DirectCall::make(engine, problem, tag);
    if (!call || call->name().starts_with("ref")) continue;
    call->run();
    const double took = call->median_ms(15);
    if (best && took >= least) continue;
    least = took;
    best = std::move(call);
  }
  if (!best) throw std::runtime_error("oneDNN offers the peer nothing but its reference code");
  return std::move(*best);
}

// Keeps what the device says about its choices.
class Notes : public kiln::LogSink {
 public:
  void write(kiln::LogLevel, std::string_view, std::string_view message) noexcept override { last = message; }
  std::string chosen() const {
    const auto begin = last.find("chosen ");
    const auto end = last.find(" of ", begin == std::string::npos ? 0 : begin);
    return begin == std::string::npos ? "the only one" : last.substr(begin + 7, end - begin - 7);
  }
  std::string last;
};

class KilnCall {
 public:
  KilnCall(kiln::Device& device, Problem& problem) : device_(device) {
    kiln::KernelSource source;
    source.dialect = kiln::Dialect::library;
    source.spec = problem.spec;
    source.text = kiln::canonical_text(*source.spec);
    program_ = value(device.build(source));
    wrap(problem.input, kiln::BufferUsage::upload);
    wrap(problem.weights, kiln::BufferUsage::constant);
    wrap(problem.kiln_output, kiln::BufferUsage::readback);
  }
  void run() {
    const kiln::PassLaunch pass{program_.get(), bindings_, {1, 1, 1}};
    const std::uint64_t submitted = value(device_.submit({{&pass, 1}}));
    value(device_.wait(submitted, kiln::Deadline::never()));
  }

 private:
  template <class T>
  static T value(kiln::Result<T> result) {
    if (!result) throw std::runtime_error(result.error().text());
    return std::move(result).value();
  }
  void wrap(Tensor& tensor, kiln::BufferUsage usage) {
    kiln::BufferDesc desc;
    desc.host = tensor.held->bytes();
    desc.bytes = desc.host.size();
    desc.usage = usage;
    buffers_.push_back(value(device_.create_buffer(desc)));
    bindings_.push_back(buffers_.back().get());
  }

  kiln::Device& device_;
  std::unique_ptr<kiln::Program> program_;
  std::vector<std::unique_ptr<kiln::Buffer>> buffers_;
  std::vector<kiln::Buffer*> bindings_;
};

struct Row {
  double kiln_ms = 0, peer_ms = 0, ratio = 0, lower = 0, upper = 0;
};

Row measure(KilnCall& ours, DirectCall& peer, int pairs) {
  std::vector<double> kiln_ms, peer_ms, ratios;
  for (int pair = -3; pair < pairs; ++pair) {  // three to warm up
    double took[2] = {};
    for (int turn = 0; turn < 2; ++turn) {
      const bool kilns = (turn == 0) == (pair % 2 == 0);
      const std::uint64_t begun = kiln::now_ns();
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

std::unique_ptr<kiln::Driver> load_driver(kiln::Registry& registry, kiln::Log log) {
  const char* path = KILN_PLUGIN_DIR "/cpu.so";
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  const auto* entry = static_cast<const kiln::PluginEntry*>(dlsym(library, kiln::plugin_entry_symbol));
  if (entry == nullptr) throw std::runtime_error(std::string(path) + ": no entry");
  if (const kiln::Status status = entry->register_fn(registry, {entry->note.name, log}); !status.ok()) {
    throw std::runtime_error(status.text());
  }
  auto driver = registry.drivers().at("cpu").make({log, nullptr, {}, nullptr, {}});
  if (!driver) throw std::runtime_error(driver.error().text());
  return std::move(driver).value();
}

int compare(const std::string& table, int pairs) {
  Notes notes;
  kiln::Registry registry;
  const auto driver = load_driver(registry, {&notes, kiln::LogLevel::info});
  const auto device = driver->open("cpu");
  if (!device) throw std::runtime_error(device.error().text());
  const kiln::DeviceInfo& info = (*device)->info();
  std::printf("%s, %s, %d threads, %d pairs a layer; ratio = peer / Kiln\n", info.name.c_str(), info.driver.c_str(),
              omp_get_max_threads(), pairs);
  std::printf("%-12s %9s %9s %7s %15s %7s  %-44s %s\n", "layer", "Kiln ms", "peer ms", "ratio", "quartiles", "GFLOP/s",
              "Kiln's layout", "peer's");

  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  std::mt19937 random(20240607);
  double logs = 0;
  double least = std::numeric_limits<double>::infinity();
  bool right = true;
  const std::vector<kiln::bench::Layer> layers = kiln::bench::read_layer_table(table);
  for (const kiln::bench::Layer& layer : layers) {
    Problem problem(layer.spec, random);
    problem.kiln_output.poison();
    problem.peer_output.poison();
    DirectCall peer = best_direct_call(engine, problem);
    KilnCall ours(**device, problem);
    notes.last.clear();
    ours.run();
    const Row row = measure(ours, peer, pairs);
    const bool verified = is_right(problem, problem.kiln_output) && is_right(problem, problem.peer_output);
    right = right && verified;
    logs += std::log(row.ratio);
    least = std::min(least, row.ratio);
    std::printf("%-12s %9.4f %9.4f %7.3f %7.3f-%7.3f %7.1f  %-44s %s%s\n", layer.name.c_str(), row.kiln_ms, row.peer_ms,
                row.ratio, row.lower, row.upper, kiln::flops(layer.spec) / row.kiln_ms / 1e6, notes.chosen().c_str(),
                peer.name().c_str(), verified ? "" : "  WRONG");
    std::fflush(stdout);
  }
  std::printf("geometric mean %.3f, least %.3f over %zu layers; outputs %s\n",
              std::exp(logs / static_cast<double>(layers.size())), least, layers.size(), right ? "verified" : "WRONG");
  return right ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  try {
    const std::string table = count > 1 ? words[1] : KILN_SOURCE_DIR "/tests/data/workloads/resnet50.csv";
    return compare(table, count > 2 ? std::max(1, std::atoi(words[2])) : 30);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cpu_conv: %s\n", error.what());
    return 1;
  }
}

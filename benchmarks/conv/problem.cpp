#include "conv/problem.hpp"

#include "places.hpp"
#include "reference/compare.hpp"

#include <kiln/clock.hpp>

#include <dlfcn.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <stdexcept>

namespace kiln::bench {

Tensor::Tensor(std::uint64_t bytes)
    : held(HostTensor::create(DType::f32, {static_cast<std::int64_t>(bytes / sizeof(float))}).value()),
      values(held->as<float>()) {}

void Tensor::poison() { std::ranges::fill(values, std::numeric_limits<float>::quiet_NaN()); }

Problem::Problem(const KernelSpec& of, std::mt19937& random)
    : spec(of),
      input(tensors_of(of)[0].bytes),
      weights(tensors_of(of)[1].bytes),
      kiln_output(tensors_of(of).back().bytes),
      peer_output(tensors_of(of).back().bytes) {
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (const Tensor* tensor : {&input, &weights}) {
    for (float& value : tensor->values) value = uniform(random);
  }
  kiln_output.poison();
  peer_output.poison();
}

bool Problem::is_right(const Tensor& output) const {
  const auto* conv = std::get_if<Conv2dSpec>(&spec);
  const auto compared =
      conv != nullptr
          ? reference::compare_conv2d(*conv, *input.held, *weights.held, nullptr, output.values)
          : reference::compare_gemm(std::get<GemmSpec>(spec), *input.held, *weights.held, nullptr, output.values);
  if (!compared) throw std::runtime_error(compared.error().text());
  return compared->within;
}

double milliseconds_since(std::uint64_t begun_ns) { return static_cast<double>(now_ns() - begun_ns) / 1e6; }

namespace {

using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
constexpr auto f32 = dnnl::memory::data_type::f32;

}  // namespace

DirectCall DirectCall::convolution(const dnnl::engine& engine, Problem& problem, Tag tag, dnnl::algorithm algorithm) {
  const auto& spec = std::get<Conv2dSpec>(problem.spec);
  const dnnl::memory::dims in{spec.n, spec.c, spec.h, spec.w};
  const dnnl::memory::dims out{spec.n, spec.k, spec.out_h(), spec.out_w()};
  const bool grouped = spec.groups != 1;
  const dnnl::memory::dims weights =
      grouped ? dnnl::memory::dims{spec.groups, spec.k / spec.groups, spec.c / spec.groups, spec.r, spec.s}
              : dnnl::memory::dims{spec.k, spec.c, spec.r, spec.s};
  const dnnl::convolution_forward::primitive_desc described({dnnl::prop_kind::forward_inference,
                                                             algorithm,
                                                             {in, f32, tag},
                                                             {weights, f32, Tag::any},
                                                             {out, f32, tag},
                                                             {spec.stride_y, spec.stride_x},
                                                             {spec.pad_y, spec.pad_x},
                                                             {spec.pad_y, spec.pad_x}},
                                                            engine);
  DirectCall call(engine);
  call.name_ = described.impl_info_str();
  const dnnl::memory input({in, f32, Tag::nchw}, engine, problem.input.values.data());
  const dnnl::memory output({out, f32, Tag::nchw}, engine, problem.peer_output.values.data());
  const dnnl::memory given({weights, f32, grouped ? Tag::goihw : Tag::oihw}, engine, problem.weights.values.data());
  const bool reordered = described.src_desc() != input.get_desc();
  const dnnl::memory source = reordered ? dnnl::memory(described.src_desc(), engine) : input;
  if (reordered) call.add_reorder(input, source);
  const bool returned = described.dst_desc() != output.get_desc();
  const dnnl::memory result = returned ? dnnl::memory(described.dst_desc(), engine) : output;
  call.steps_.push_back({dnnl::convolution_forward(described),
                         {{DNNL_ARG_SRC, source},
                          {DNNL_ARG_WEIGHTS, call.converted(given, described.weights_desc())},
                          {DNNL_ARG_DST, result}}});
  if (returned) call.add_reorder(result, output);
  return call;
}

DirectCall DirectCall::gemm(const dnnl::engine& engine, Problem& problem, GemmWay way) {
  const auto& spec = std::get<GemmSpec>(problem.spec);
  const Desc a({spec.m, spec.k}, f32, Tag::ab);
  const Desc c({spec.m, spec.n}, f32, Tag::ab);
  const dnnl::memory input(a, engine, problem.input.values.data());
  const dnnl::memory output(c, engine, problem.peer_output.values.data());
  DirectCall call(engine);
  const auto add = [&](const dnnl::primitive& primitive, const Desc& lies, const Desc& wanted) {
    const dnnl::memory given(lies, engine, problem.weights.values.data());
    call.steps_.push_back(
        {primitive,
         {{DNNL_ARG_SRC, input}, {DNNL_ARG_WEIGHTS, call.converted(given, wanted)}, {DNNL_ARG_DST, output}}});
  };
  if (way == GemmWay::inner_product) {
    const dnnl::inner_product_forward::primitive_desc described(
        {dnnl::prop_kind::forward_inference, a, Desc({spec.n, spec.k}, f32, Tag::any), c}, engine);
    call.name_ = std::string("inner product ") + described.impl_info_str();
    add(dnnl::inner_product_forward(described), Desc({spec.n, spec.k}, f32, Tag::ba), described.weights_desc());
  } else {
    const bool packed = way == GemmWay::packed;
    const Desc b({spec.k, spec.n}, f32, Tag::ab);
    const dnnl::matmul::primitive_desc described({a, Desc({spec.k, spec.n}, f32, packed ? Tag::any : Tag::ab), c},
                                                 engine);
    call.name_ = std::string(packed ? "packed " : "plain ") + described.impl_info_str();
    add(dnnl::matmul(described), b, described.weights_desc());
  }
  return call;
}

std::vector<DirectCall> DirectCall::all(const dnnl::engine& engine, Problem& problem) {
  std::vector<DirectCall> calls;
  const auto add = [&](const auto& make) {
    try {
      calls.push_back(make());
    } catch (const dnnl::error&) {
      // This way does not exist for the shape.
    }
  };
  if (std::holds_alternative<Conv2dSpec>(problem.spec)) {
    for (const Tag tag : {Tag::any, Tag::nchw, Tag::nhwc, Tag::nChw16c, Tag::nChw8c}) {
      add([&] { return convolution(engine, problem, tag); });
    }
  } else {
    for (const GemmWay way : {GemmWay::packed, GemmWay::plain, GemmWay::inner_product}) {
      add([&] { return gemm(engine, problem, way); });
    }
  }
  return calls;
}

DirectCall DirectCall::best(const dnnl::engine& engine, Problem& problem) {
  std::optional<DirectCall> best;
  double least = 0;
  for (DirectCall& call : all(engine, problem)) {
    if (call.name().find("ref") == 0) continue;
    call.run();
    const double took = call.median_ms(15);
    if (best && took >= least) continue;
    least = took;
    best = std::move(call);
  }
  if (!best) throw std::runtime_error("oneDNN offers the peer nothing but its reference code");
  return std::move(*best);
}

std::optional<DirectCall> DirectCall::winograd(const dnnl::engine& engine, Problem& problem) {
  try {
    DirectCall call = convolution(engine, problem, Tag::any, dnnl::algorithm::convolution_winograd);
    if (call.name().find("ref") == 0) return std::nullopt;
    return call;
  } catch (const dnnl::error&) {
    return std::nullopt;  // none for this shape
  }
}

void DirectCall::run() {
  for (const Step& step : steps_) step.primitive.execute(stream_, step.arguments);
  stream_.wait();
}

dnnl::memory DirectCall::converted(dnnl::memory from, const Desc& wanted) {
  dnnl::memory to(wanted, engine_);
  dnnl::reorder(from, to).execute(stream_, from, to);
  stream_.wait();
  return to;
}

void DirectCall::add_reorder(const dnnl::memory& from, const dnnl::memory& to) {
  steps_.push_back({dnnl::reorder(from, to), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}});
}

double DirectCall::median_ms(int runs) {
  std::vector<double> took;
  for (int i = 0; i < runs; ++i) {
    const std::uint64_t begun = now_ns();
    run();
    took.push_back(milliseconds_since(begun));
  }
  return quantile(took, 0.5);
}

namespace {

template <class T>
T need(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().text());
  return std::move(result).value();
}

}  // namespace

KilnCpu::KilnCpu() {
  const Log log{&notes_, LogLevel::info};
  const std::string path = plugins_folder() / "cpu.so";
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  const auto* entry = static_cast<const PluginEntry*>(dlsym(library, plugin_entry_symbol));
  if (entry == nullptr) throw std::runtime_error(path + ": no entry");
  if (const Status status = entry->register_fn(registry_, {entry->note.name, log}); !status.ok()) {
    throw std::runtime_error(status.text());
  }
  driver_ = need(registry_.drivers().at("cpu").make({log, nullptr, {}, nullptr, {}}));
  device_ = need(driver_->open("cpu"));
}

std::string KilnCpu::chosen() const {
  const auto begin = notes_.last.find("chosen ");
  const auto end = notes_.last.find(" of ", begin == std::string::npos ? 0 : begin);
  return begin == std::string::npos ? "the only one" : notes_.last.substr(begin + 7, end - begin - 7);
}

KilnCall::KilnCall(Device& device, Problem& problem) : device_(device) {
  KernelSource source;
  source.dialect = Dialect::library;
  source.spec = problem.spec;
  source.text = canonical_text(problem.spec);
  program_ = need(device.build(source));
  wrap(problem.input, BufferUsage::upload);
  wrap(problem.weights, BufferUsage::constant);
  wrap(problem.kiln_output, BufferUsage::readback);
}

void KilnCall::run() {
  const PassLaunch pass{program_.get(), bindings_, {1, 1, 1}};
  need(device_.wait(need(device_.submit({{&pass, 1}})), Deadline::never()));
}

void KilnCall::wrap(Tensor& tensor, BufferUsage usage) {
  BufferDesc desc;
  desc.host = tensor.held->bytes();
  desc.bytes = desc.host.size();
  desc.usage = usage;
  buffers_.push_back(need(device_.create_buffer(desc)));
  bindings_.push_back(buffers_.back().get());
}

}  // namespace kiln::bench

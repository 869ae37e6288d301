#include "conv/gl_contender.hpp"

#include <kiln/clock.hpp>

#include "reference/compare.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <random>
#include <stdexcept>

namespace kiln::benchmarks {
namespace {

template <class T>
T need(Result<T> result, const std::string& what) {
  if (!result) throw std::runtime_error(what + ": " + result.error().text());
  return std::move(result).value();
}

void need(const Status& status, const std::string& what) {
  if (!status.ok()) throw std::runtime_error(what + ": " + status.text());
}

std::unique_ptr<Buffer> make_buffer(Device& device, std::uint64_t bytes, BufferUsage usage) {
  return need(device.create_buffer({bytes, usage, {}, -1}), "buffer");
}

double milliseconds_since(std::uint64_t begun) { return static_cast<double>(now_ns() - begun) / 1e6; }

std::shared_ptr<HostTensor> random_tensor(Shape shape, std::mt19937& random) {
  auto tensor = need(HostTensor::create(DType::f32, std::move(shape)), "tensor");
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (float& value : tensor->as<float>()) value = uniform(random);
  return tensor;
}

}  // namespace

Problem::Problem(const Conv2dSpec& of, std::uint64_t seed) : spec(of) {
  std::mt19937 random(static_cast<std::uint32_t>(seed));
  input = random_tensor({of.n, of.c, of.h, of.w}, random);
  weights = random_tensor({of.k, of.c / of.groups, of.r, of.s}, random);
}

Contender::Contender(Device& device, const Problem& problem, KernelPlan plan)
    : device_(device), problem_(problem), plan_(std::move(plan)) {
  for (const TensorDecl& tensor : plan_.tensors) {
    const bool output = tensor.role == TensorRole::output;
    tensors_.push_back(make_buffer(device, tensor.bytes, output ? BufferUsage::readback : BufferUsage::upload));
  }
  need(tensors_[0]->write(0, problem.input->bytes()), "input");
  need(tensors_[1]->write(0, problem.weights->bytes()), "weights");
  output_.resize(plan_.tensors.back().bytes / sizeof(float));
  for (const ScratchDecl& each : plan_.scratch)
    scratch_.push_back(make_buffer(device, each.bytes, BufferUsage::storage));
  for (const PreparedDecl& each : plan_.prepared)
    prepared_.push_back(make_buffer(device, each.bytes, BufferUsage::storage));
  for (const auto& each : plan_.constants) {
    constants_.push_back(make_buffer(device, each->tensor().bytes().size(), BufferUsage::upload));
    need(constants_.back()->write(0, each->tensor().bytes()), "numbers of the shape");
  }
  std::vector<std::unique_ptr<Program>> once;
  if (!plan_.prepare.empty()) dispatch(launches_of(plan_.prepare, once));
  packing_ = !plan_.scratch.empty() && plan_.scratch.front().name == "packed activations" ? 1 : 0;
  bound_.clear();
  const std::uint64_t begun = now_ns();
  launches_ = launches_of(plan_.passes, programs_);
  dispatch(launches_);
  build_ms_ = milliseconds_since(begun);
  const std::span<const PassLaunch> timed = std::span(launches_).subspan(packing_);
  const auto once_ns = static_cast<double>(std::max<std::uint64_t>(dispatch(timed), 1));
  repeats_ = static_cast<std::size_t>(std::clamp(least_timed_ms * 1e6 / once_ns, 1.0, most_repeats));
  for (std::size_t i = 0; i < repeats_; ++i) timed_.insert(timed_.end(), timed.begin(), timed.end());
}

std::vector<PassLaunch> Contender::launches_of(const std::vector<Pass>& passes,
                                               std::vector<std::unique_ptr<Program>>& programs) {
  for (const Pass& pass : passes) {
    programs.push_back(need(device_.build(pass.source), plan_.variant));
    std::vector<Buffer*>& buffers = bound_.emplace_back();
    for (const Binding& binding : pass.bindings) {
      const auto& from = binding.source == BindingSource::tensor     ? tensors_
                         : binding.source == BindingSource::scratch  ? scratch_
                         : binding.source == BindingSource::prepared ? prepared_
                                                                     : constants_;
      buffers.push_back(from[binding.index].get());
    }
  }
  std::vector<PassLaunch> launches;
  for (std::size_t i = 0; i < passes.size(); ++i) launches.push_back({programs[i].get(), bound_[i], passes[i].grid});
  return launches;
}

std::uint64_t Contender::dispatch(std::span<const PassLaunch> launches) {
  const std::uint64_t value = need(device_.submit({launches}), plan_.variant);
  return need(device_.wait(value, Deadline::after(std::chrono::seconds(120))), plan_.variant).device_ns;
}

void Contender::poison() {
  output_.assign(output_.size(), std::numeric_limits<float>::quiet_NaN());
  need(tensors_.back()->write(0, std::as_bytes(std::span(output_))), "output");
}

void Contender::run() {
  need(tensors_[0]->write(0, problem_.input->bytes()), "input");
  dispatch(launches_);
  need(tensors_.back()->read(0, std::as_writable_bytes(std::span(output_))), "output");
}

bool Contender::is_right() {
  poison();
  dispatch(launches_);
  need(tensors_.back()->read(0, std::as_writable_bytes(std::span(output_))), "output");
  const auto compared = need(
      reference::compare_conv2d(problem_.spec, *problem_.input, *problem_.weights, nullptr, output_), plan_.variant);
  return compared.within;
}

Times Contender::time() {
  Times times;
  // What ran before leaves its mark: workers that sleep, or spin for the cores still, and caches that are full of it.
  for (const std::uint64_t begun = now_ns(); milliseconds_since(begun) < warming_ms;) dispatch(launches_);
  times.device_ms = static_cast<double>(dispatch(timed_)) / 1e6 / static_cast<double>(repeats_);
  const std::uint64_t begun = now_ns();
  run();
  times.wall_ms = milliseconds_since(begun);
  return times;
}

std::vector<double> Contender::pass_ms(int rounds) {
  std::vector<double> least(launches_.size(), std::numeric_limits<double>::infinity());
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < launches_.size(); ++i) {
      const std::vector<PassLaunch> repeated(repeats_, launches_[i]);
      const double ms = static_cast<double>(dispatch(repeated)) / 1e6 / static_cast<double>(repeats_);
      least[i] = std::min(least[i], ms);
    }
  }
  return least;
}

KernelPlan shape_generic_plan(const Conv2dSpec& spec) {
  KernelPlan plan;
  plan.variant = "shape-generic";
  plan.tensors = tensors_of(spec);
  const std::int64_t values[] = {spec.c,          spec.h,          spec.w,        spec.k,        spec.r,     spec.s,
                                 spec.out_h(),    spec.out_w(),    spec.stride_y, spec.stride_x, spec.pad_y, spec.pad_x,
                                 spec.dilation_y, spec.dilation_x, spec.groups,   spec.n};
  auto extents = need(HostTensor::create(DType::i32, {std::ssize(values)}), "extents");
  std::ranges::copy(values, extents->as<std::int32_t>().begin());
  plan.constants.push_back(Constant::create(std::move(extents)));
  Pass& pass = plan.passes.emplace_back();
  pass.source.dialect = Dialect::glsl;
  pass.source.text = R"(#version 430
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly restrict buffer X { float x[]; };
layout(std430, binding = 1) readonly restrict buffer Q { float weights[]; };
layout(std430, binding = 2) readonly restrict buffer Extents {
  int C, H, W, K, R, S, OH, OW, stride_y, stride_x, pad_y, pad_x, dilation_y, dilation_x, groups, N;
};
layout(std430, binding = 3) writeonly restrict buffer Y { float y[]; };

void main() {
  int at = int(gl_GlobalInvocationID.x);
  if (at >= N * K * OH * OW) return;
  int ox = at % OW, oy = at / OW % OH, k = at / (OW * OH) % K, n = at / (OW * OH * K);
  int channels = C / groups;
  int first = n * C + k / (K / groups) * channels;
  float sum = 0.0;
  for (int c = 0; c < channels; ++c) {
    for (int r = 0; r < R; ++r) {
      int iy = oy * stride_y + r * dilation_y - pad_y;
      for (int s = 0; s < S; ++s) {
        int ix = ox * stride_x + s * dilation_x - pad_x;
        if (iy < 0 || iy >= H || ix < 0 || ix >= W) continue;
        sum += x[((first + c) * H + iy) * W + ix] * weights[((k * channels + c) * R + r) * S + s];
      }
    }
  }
  y[at] = sum;
}
)";
  pass.source.bindings = {Access::read, Access::read, Access::read, Access::write};
  pass.bindings = {
      {BindingSource::tensor, 0}, {BindingSource::tensor, 1}, {BindingSource::constant, 0}, {BindingSource::tensor, 2}};
  pass.source.workgroup = {64, 1, 1};
  pass.grid = {static_cast<std::uint32_t>((spec.n * spec.k * spec.out_h() * spec.out_w() + 63) / 64), 1, 1};
  return plan;
}

}  // namespace kiln::benchmarks

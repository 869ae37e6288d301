#include "gl_conv/onednn_peer.hpp"

#include <kiln/clock.hpp>

#include "reference/compare.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <oneapi/dnnl/dnnl.hpp>
#include <stdexcept>
#include <thread>

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

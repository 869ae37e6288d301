#include "onednn/candidate.hpp"

#include "onednn/primitives.hpp"

#include <algorithm>
#include <functional>
#include <set>

namespace kiln::cpu {
namespace {

using Tag = dnnl::memory::format_tag;
using Maker = std::function<std::optional<Made>(const Part&)>;

// oneDNN's own first choice (`any`) looks at the convolution alone; the cost of reaching a layout from NCHW and back is
// not in it: a channels-last layout costs twice what blocks of 16 do. So the layouts are asked for one by one. A
// convolution that reads NCHW itself exists for few input channels.
constexpr Way blocked{"nChw16c", Tag::nChw16c, Tag::nChw16c};
constexpr Way blocking{"nchw>nChw16c", Tag::nchw, Tag::nChw16c};
constexpr Way channels_last{"nhwc", Tag::nhwc, Tag::nhwc};
constexpr Way other_ways[] = {
    channels_last, blocked, blocking, {"nhwc", Tag::nhwc, Tag::nhwc, 1}, {"nchw", Tag::nchw, Tag::nchw}};
// For processors whose vectors are shorter than a block of 16.
constexpr Way narrow_ways[] = {
    {"any", Tag::any, Tag::any}, {"any", Tag::any, Tag::any, 1}, {"nChw8c", Tag::nChw8c, Tag::nChw8c}};
constexpr Way winograd_ways[] = {{"winograd", Tag::any, Tag::any, 0, dnnl::algorithm::convolution_winograd}};

bool is_plain_product(const Conv2dSpec& spec) {
  return spec.groups == 1 && spec.r == 1 && spec.s == 1 && spec.pad_y == 0 && spec.pad_x == 0 && spec.stride_y == 1 &&
         spec.stride_x == 1;
}

class Collector {
 public:
  Collector(const Conv2dSpec& spec, const dnnl::engine& engine, int threads, std::string_view layout)
      : spec_(spec),
        engine_(engine),
        layout_(layout),
        few_(cuts_of(spec, threads, Choices::few)),
        many_(cuts_of(spec, threads, Choices::many)),
        alone_allowed_(threads == 1 || flops(spec) <= small_flops) {}

  void add(const Way& way, Pixels pixels, Choices choices) {
    add(way.layout, pixels, choices, [&](const Part& part) { return convolution(part, way, engine_); });
  }
  void add_product(Pixels pixels) {
    add("product", pixels, Choices::many, [&](const Part& part) { return product(part, engine_); });
  }

  // One thread for all of it, also where several would share a large one.
  void allow_alone() noexcept { alone_allowed_ = true; }
  // oneDNN's plain loops: only where there is nothing else.
  void allow_reference() noexcept { references_allowed_ = true; }

  // Whether there is code for vectors of a whole block among the candidates.
  bool has_wide() const {
    return std::ranges::any_of(names_,
                               [](const std::string& name) { return name.find("avx512") != std::string::npos; });
  }
  bool empty() const noexcept { return candidates_.empty(); }
  std::vector<Candidate> take() noexcept { return std::move(candidates_); }

 private:
  void add(std::string_view layout, Pixels pixels, Choices choices, const Maker& make) {
    if (layout_ != "auto" && layout_ != layout) return;
    for (const Cuts& cuts : choices == Choices::many ? many_ : few_) add(layout, cuts, pixels, make);
    if (alone_allowed_) add(layout, {"", {whole(spec_)}}, pixels, make);
  }

  // Adds nothing where a part reads padding alone.
  void add(std::string_view layout, const Cuts& cuts, Pixels pixels, const Maker& make) {
    std::vector<Pipeline> tiles;
    std::string name;
    for (const Cut& cut : cuts.tiles) {
      const auto part = part_of(spec_, cut, pixels);
      if (!part) return;
      auto made = make(*part);
      if (!made || (is_reference(*made) && !references_allowed_)) return;
      if (tiles.empty()) name = std::string(layout) + " " + made->implementation;
      tiles.push_back(std::move(made->pipeline));
    }
    if (tiles.size() > 1) name += ", " + cuts.name;
    if (names_.insert(name).second) candidates_.emplace_back(name, std::move(tiles));
  }

  const Conv2dSpec& spec_;
  const dnnl::engine& engine_;
  std::string_view layout_;
  std::vector<Cuts> few_, many_;
  std::vector<Candidate> candidates_;
  std::set<std::string> names_;
  bool alone_allowed_;
  bool references_allowed_ = false;
};

void collect(Collector& collector, const Conv2dSpec& spec, std::string_view layout) {
  if (spec.accuracy == Accuracy::winograd) {
    for (const Way& way : winograd_ways) collector.add(way, Pixels::all, Choices::many);
  }
  if (has_pixels_view(spec)) {
    collector.add(blocked, Pixels::read, Choices::many);
    if (spec.groups == 1) collector.add_product(Pixels::read);
  } else {
    collector.add(blocked, Pixels::all, Choices::many);
    collector.add(blocking, Pixels::all, Choices::many);
  }
  if (is_plain_product(spec)) collector.add_product(Pixels::all);
  for (const Way& way : other_ways) collector.add(way, Pixels::all, Choices::few);
  if (layout != "auto" || !collector.has_wide()) {
    for (const Way& way : narrow_ways) collector.add(way, Pixels::all, Choices::few);
  }
}

}  // namespace

std::vector<Candidate> conv2d_candidates(const Conv2dSpec& spec, const dnnl::engine& engine, int threads,
                                         std::string_view layout) {
  Collector collector(spec, engine, threads, layout);
  collect(collector, spec, layout);
  if (collector.empty()) {
    collector.allow_alone();
    collect(collector, spec, layout);
  }
  if (collector.empty() && layout != "auto") return conv2d_candidates(spec, engine, threads, "auto");
  if (collector.empty()) {
    collector.allow_reference();
    collector.add({"nchw", Tag::nchw, Tag::nchw}, Pixels::all, Choices::few);
  }
  if (collector.empty()) throw dnnl::error(dnnl_unimplemented, "no implementation of this conv2d");
  return collector.take();
}

}  // namespace kiln::cpu

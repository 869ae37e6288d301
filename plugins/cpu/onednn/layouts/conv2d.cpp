#include "onednn/layouts/conv2d.hpp"

#include "onednn/layouts/primitives.hpp"
#include "onednn/omp_threads.hpp"

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
constexpr Way whole_ways[] = {
    blocked, blocking, channels_last, {"nhwc", Tag::nhwc, Tag::nhwc, 1}, {"nchw", Tag::nchw, Tag::nchw}};
// For processors whose vectors are shorter than a block of 16.
constexpr Way narrow_ways[] = {
    {"any", Tag::any, Tag::any}, {"any", Tag::any, Tag::any, 1}, {"nChw8c", Tag::nChw8c, Tag::nChw8c}};
constexpr Way winograd_ways[] = {{"winograd", Tag::any, Tag::any, 0, dnnl::algorithm::convolution_winograd}};

constexpr std::int64_t block = 16;      // channels that a tile's boundary keeps together
constexpr std::int64_t least_rows = 3;  // in a tile: its neighbours' rows are read twice

bool is_plain_product(const Conv2dSpec& spec) {
  return spec.groups == 1 && spec.r == 1 && spec.s == 1 && spec.pad_y == 0 && spec.pad_x == 0 && spec.stride_y == 1 &&
         spec.stride_x == 1;
}

// `count` ranges that share `extent`, their boundaries at multiples of `unit`; fewer where there are not enough units.
std::vector<Range> split(std::int64_t extent, std::int64_t count, std::int64_t unit) {
  const std::int64_t units = (extent + unit - 1) / unit;
  count = std::min(count, units);
  std::vector<Range> ranges;
  for (std::int64_t i = 0; i < count; ++i) {
    ranges.push_back({units * i / count * unit, std::min(units * (i + 1) / count * unit, extent)});
  }
  return ranges;
}

class Collector {
 public:
  Collector(const Conv2dSpec& spec, const dnnl::engine& engine, int threads, std::string_view layout)
      : spec_(spec), engine_(engine), threads_(threads), layout_(layout) {}

  void add_whole(const Way& way) {
    if (!is_wanted(way.layout)) return;
    add_whole(way.layout, Pixels::all, [&](const Part& part) { return convolution(part, way, engine_); });
  }

  void add_tiled(const Way& way, Pixels pixels) {
    if (!is_wanted(way.layout)) return;
    add_tiled(way.layout, pixels, [&](const Part& part) { return convolution(part, way, engine_); });
  }

  void add_product(Pixels pixels) {
    if (!is_wanted("product")) return;
    const Maker make = [&](const Part& part) { return product(part, engine_); };
    add_tiled("product", pixels, make);
    add_whole("product", pixels, make);
  }

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
  bool is_wanted(std::string_view layout) const { return layout_ == "auto" || layout_ == layout; }

  void add_whole(std::string_view layout, Pixels pixels, const Maker& make) {
    const OmpThreads threads(threads_);
    const auto part = part_of(spec_, all_rows(spec_), all_channels(spec_), pixels);
    add(layout, {*part}, make);
  }

  // More tiles than threads, where there is enough work: a thread that is held up leaves some to the others.
  void add_tiled(std::string_view layout, Pixels pixels, const Maker& make) {
    if (threads_ == 1) return;
    const OmpThreads one(1);  // a tile is computed by one thread
    for (const std::int64_t tiles_a_thread : {2, 1, 4}) {
      const std::int64_t tiles = tiles_a_thread * threads_;
      if (spec_.out_h() / tiles < least_rows) continue;
      add(layout, parts(split(spec_.out_h(), tiles, 1), {all_channels(spec_)}, pixels), make);
    }
    for (const std::int64_t tiles_a_thread : {1, 2}) {
      const auto channels = split(spec_.k, tiles_a_thread * threads_, block);
      if (spec_.groups != 1 || static_cast<std::int64_t>(channels.size()) < tiles_a_thread * threads_) continue;
      add(layout, parts({all_rows(spec_)}, channels, pixels), make);
    }
  }

  // Empty where a part reads padding alone.
  std::vector<Part> parts(const std::vector<Range>& rows, const std::vector<Range>& channels, Pixels pixels) const {
    std::vector<Part> all;
    for (const Range& some_rows : rows) {
      for (const Range& some_channels : channels) {
        auto part = part_of(spec_, some_rows, some_channels, pixels);
        if (!part) return {};
        all.push_back(std::move(*part));
      }
    }
    return all;
  }

  void add(std::string_view layout, const std::vector<Part>& of, const Maker& make) {
    std::vector<Pipeline> tiles;
    std::string name;
    for (const Part& part : of) {
      auto made = make(part);
      if (!made || (is_reference(*made) && !references_allowed_)) return;
      if (tiles.empty()) name = std::string(layout) + " " + made->implementation;
      tiles.push_back(std::move(made->pipeline));
    }
    if (tiles.empty()) return;
    if (tiles.size() > 1) {
      name += ", " + std::to_string(tiles.size()) + (of[0].spec.k == spec_.k ? " tiles of rows" : " tiles of channels");
    }
    if (names_.insert(name).second) candidates_.emplace_back(name, std::move(tiles));
  }

  const Conv2dSpec& spec_;
  const dnnl::engine& engine_;
  int threads_;
  std::string_view layout_;
  std::vector<Candidate> candidates_;
  std::set<std::string> names_;
  bool references_allowed_ = false;
};

}  // namespace

std::vector<Candidate> conv2d_candidates(const Conv2dSpec& spec, const dnnl::engine& engine, int threads,
                                         std::string_view layout) {
  Collector collector(spec, engine, threads, layout);
  if (spec.accuracy == Accuracy::winograd) {
    for (const Way& way : winograd_ways) collector.add_whole(way);
  }
  if (has_pixels_view(spec)) {
    collector.add_tiled(blocked, Pixels::read);
    if (spec.groups == 1) collector.add_product(Pixels::read);
  } else {
    collector.add_tiled(blocked, Pixels::all);
    collector.add_tiled(blocking, Pixels::all);
  }
  if (is_plain_product(spec)) collector.add_product(Pixels::all);
  for (const Way& way : whole_ways) collector.add_whole(way);
  if (layout != "auto" || !collector.has_wide()) {
    for (const Way& way : narrow_ways) collector.add_whole(way);
  }
  if (collector.empty() && layout != "auto") return conv2d_candidates(spec, engine, threads, "auto");
  if (collector.empty()) {
    collector.allow_reference();
    collector.add_whole({"nchw", Tag::nchw, Tag::nchw});
  }
  if (collector.empty()) throw dnnl::error(dnnl_unimplemented, "no implementation of this conv2d");
  return collector.take();
}

}  // namespace kiln::cpu

#include "onednn/cut.hpp"

#include <algorithm>
#include <array>
#include <numeric>

namespace kiln::cpu {
namespace {

constexpr std::int64_t block = 16;         // channels that a tile's boundary keeps together
constexpr std::int64_t least_rows = 3;     // in a tile: its neighbours' rows are read twice
constexpr std::int64_t column_block = 16;  // columns likewise: what the library's code computes at a time

enum Along : std::size_t { images, rows, columns, channels };
constexpr const char* names[] = {"images", "rows", "columns", "channels"};

// Output channels that stay together: of several groups, whole ones, enough to fill blocks on both sides.
std::int64_t channel_unit(const Conv2dSpec& spec) {
  if (spec.groups == 1) return block;
  const std::int64_t group_inputs = spec.c / spec.groups;
  const std::int64_t group_outputs = spec.k / spec.groups;
  const std::int64_t fill_inputs = block / std::gcd(block, group_inputs);
  const std::int64_t fill_outputs = block / std::gcd(block, group_outputs);
  return std::lcm(fill_inputs, fill_outputs) * group_outputs;
}

// "4x2 tiles by rows and channels"; empty for a single piece.
std::string name_of(const std::array<std::int64_t, 4>& pieces) {
  std::string counts, of;
  for (std::size_t along = 0; along < pieces.size(); ++along) {
    if (pieces[along] == 1) continue;
    counts += (counts.empty() ? "" : "x") + std::to_string(pieces[along]);
    of += (of.empty() ? "" : " and ") + std::string(names[along]);
  }
  return of.empty() ? of : counts + " tiles by " + of;
}

class Cutter {
 public:
  explicit Cutter(const Conv2dSpec& spec)
      : axes_{Axis{spec.n, 1, 1}, Axis{spec.out_h(), 1, least_rows}, Axis{spec.out_w(), column_block, 1},
              Axis{spec.k, channel_unit(spec), 1}} {}

  // About `wanted` tiles, along the first direction as far as it goes.
  void add(const std::vector<Along>& order, std::int64_t wanted) {
    std::vector<Axis> axes;
    for (const Along along : order) axes.push_back(axes_[along]);
    const std::vector<std::int64_t> counts = share(axes, wanted);
    std::array<std::int64_t, 4> pieces{1, 1, 1, 1};
    for (std::size_t i = 0; i < order.size(); ++i) pieces[order[i]] = counts[i];
    Cuts cuts;
    cuts.name = name_of(pieces);
    if (cuts.name.empty()) return;
    for (const Range& some_images : ranges(images, pieces[images])) {
      for (const Range& some_channels : ranges(channels, pieces[channels])) {
        for (const Range& some_rows : ranges(rows, pieces[rows])) {
          for (const Range& some_columns : ranges(columns, pieces[columns])) {
            cuts.tiles.push_back({some_images, some_rows, some_columns, some_channels});
          }
        }
      }
    }
    const auto same = [&](const Cuts& other) { return other.name == cuts.name; };
    if (std::ranges::none_of(all_, same)) all_.push_back(std::move(cuts));
  }

  std::vector<Cuts> take() noexcept { return std::move(all_); }

 private:
  std::vector<Range> ranges(Along along, std::int64_t count) const {
    return split(axes_[along].extent, count, axes_[along].unit);
  }

  Axis axes_[4];
  std::vector<Cuts> all_;
};

}  // namespace

Cut whole(const Conv2dSpec& spec) { return {{0, spec.n}, {0, spec.out_h()}, {0, spec.out_w()}, {0, spec.k}}; }

std::vector<Cuts> cuts_of(const Conv2dSpec& spec, int threads, Choices choices) {
  if (threads == 1) return {};
  const bool many = choices == Choices::many;
  const std::int64_t count = threads;
  Cutter cutter(spec);
  cutter.add({rows, channels}, 2 * count);
  if (many) cutter.add({rows, channels}, count);
  if (many) cutter.add({rows, channels}, 4 * count);
  cutter.add({channels, rows}, count);
  if (many) cutter.add({channels, rows}, 2 * count);
  if (spec.n > 1) cutter.add({images, channels}, many ? 2 * count : count);
  if (spec.out_h() < 2 * least_rows) cutter.add({columns, channels}, count);
  return cutter.take();
}

namespace {

std::int64_t quotient_up(std::int64_t of, std::int64_t by) { return (of + by - 1) / by; }

}  // namespace

std::vector<Range> split(std::int64_t extent, std::int64_t count, std::int64_t unit) {
  const std::int64_t units = quotient_up(extent, unit);
  count = std::min(count, units);
  std::vector<Range> ranges;
  for (std::int64_t i = 0; i < count; ++i) {
    ranges.push_back({units * i / count * unit, std::min(units * (i + 1) / count * unit, extent)});
  }
  return ranges;
}

std::vector<std::int64_t> share(const std::vector<Axis>& axes, std::int64_t wanted) {
  std::vector<std::int64_t> counts;
  for (const Axis& axis : axes) {
    const std::int64_t most = std::max<std::int64_t>(quotient_up(axis.extent, axis.unit) / axis.least, 1);
    counts.push_back(std::min(most, wanted));
    wanted = quotient_up(wanted, counts.back());
  }
  return counts;
}

namespace {

constexpr auto f32 = dnnl::memory::data_type::f32;

std::uint64_t bytes_of(std::int64_t elements) { return static_cast<std::uint64_t>(elements) * sizeof(float); }

// What a range of outputs reads along one direction of the image, and how much padding stands around that.
struct Reach {
  Range read;
  std::int64_t pad_before = 0, pad_after = 0;
};

struct Direction {
  std::int64_t extent, out, taps, stride, pad, dilation;
};

Reach reach_of(const Direction& along, Range outputs) {
  if (outputs.begin == 0 && outputs.end == along.out) return {{0, along.extent}, along.pad, along.pad};
  const std::int64_t first = outputs.begin * along.stride - along.pad;
  const std::int64_t last = (outputs.end - 1) * along.stride - along.pad + along.dilation * (along.taps - 1);
  const Range read{std::max<std::int64_t>(first, 0), std::min(last, along.extent - 1) + 1};
  return {read, read.begin - first, last + 1 - read.end};
}

}  // namespace

bool has_pixels_view(const Conv2dSpec& spec) noexcept {
  const bool pointwise = spec.r == 1 && spec.s == 1 && spec.pad_y == 0 && spec.pad_x == 0;
  // oneDNN refuses a view whose last step would reach into the next row or plane.
  return pointwise && (spec.stride_y != 1 || spec.stride_x != 1) && spec.out_h() * spec.stride_y <= spec.h &&
         spec.out_w() * spec.stride_x <= spec.w;
}

std::optional<Part> part_of(const Conv2dSpec& spec, const Cut& cut, Pixels pixels) {
  const Reach rows = reach_of({spec.h, spec.out_h(), spec.r, spec.stride_y, spec.pad_y, spec.dilation_y}, cut.rows);
  const Reach columns =
      reach_of({spec.w, spec.out_w(), spec.s, spec.stride_x, spec.pad_x, spec.dilation_x}, cut.columns);
  if (rows.read.size() <= 0 || columns.read.size() <= 0) return std::nullopt;
  const std::int64_t group_inputs = spec.c / spec.groups;
  const std::int64_t group_outputs = spec.k / spec.groups;
  const Range groups =
      spec.groups == 1 ? Range{0, 1} : Range{cut.channels.begin / group_outputs, cut.channels.end / group_outputs};
  Part part;
  part.spec = spec;
  part.spec.n = cut.images.size();
  part.spec.k = cut.channels.size();
  part.spec.groups = groups.size();
  part.spec.c = groups.size() * group_inputs;
  part.spec.h = rows.read.size();
  part.spec.w = columns.read.size();
  part.spec.pad_y = rows.pad_before;
  part.spec.pad_x = columns.pad_before;
  part.pad_below = rows.pad_after;
  part.pad_right = columns.pad_after;
  const std::int64_t plane = spec.h * spec.w;
  dnnl::memory::dims steps{spec.c * plane, plane, spec.w, 1};
  if (pixels == Pixels::read) {
    part.spec.h = cut.rows.size();
    part.spec.w = cut.columns.size();
    part.spec.stride_y = part.spec.stride_x = 1;
    steps[2] = spec.stride_y * spec.w;
    steps[3] = spec.stride_x;
  }
  part.input = dnnl::memory::desc({part.spec.n, part.spec.c, part.spec.h, part.spec.w}, f32, steps);
  part.input_offset = bytes_of((cut.images.begin * spec.c + groups.begin * group_inputs) * plane +
                               rows.read.begin * spec.w + columns.read.begin);
  const std::int64_t out_plane = spec.out_h() * spec.out_w();
  part.output = dnnl::memory::desc({part.spec.n, part.spec.k, cut.rows.size(), cut.columns.size()}, f32,
                                   dnnl::memory::dims{spec.k * out_plane, out_plane, spec.out_w(), 1});
  part.output_offset = bytes_of((cut.images.begin * spec.k + cut.channels.begin) * out_plane +
                                cut.rows.begin * spec.out_w() + cut.columns.begin);
  part.weights_offset = bytes_of(cut.channels.begin * group_inputs * spec.r * spec.s);
  part.bias_offset = bytes_of(cut.channels.begin);
  return part;
}

}  // namespace kiln::cpu

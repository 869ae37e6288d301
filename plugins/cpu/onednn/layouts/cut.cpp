#include "onednn/layouts/cut.hpp"

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

}  // namespace kiln::cpu

#include "dynamic_shaders/space/conv_space.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "dynamic_shaders/families/blocking.hpp"
#include "dynamic_shaders/families/winograd.hpp"
#include "dynamic_shaders/limits.hpp"
#include "dynamic_shaders/space/conv_cost.hpp"

namespace kiln::dynamic_shaders {
namespace {

struct Extent {
  std::int64_t x, y;
};

// Blocks worth a look: those that fill the plane evenly, and a few that suit wide planes.
std::vector<Extent> blocks_for(const ConvShape& shape) {
  if (shape.out_h == 1) {
    std::vector<Extent> blocks;
    for (const std::int64_t x : {4, 8, 12, 16, 20, 24, 28, 32, 7, 14}) {
      if (x < round_up(shape.out_w, 4) + 4) blocks.push_back({x, 1});
    }
    return blocks;
  }
  std::vector<Extent> blocks;
  for (const std::int64_t x : {1, 2, 4, 6, 7, 8, 12, 14, 16, 28}) {
    for (const std::int64_t y : {1, 2, 3, 4, 5, 7}) {
      const std::int64_t size = x * y;
      if (x > shape.out_w + 1 || y > shape.out_h || size > 56) continue;
      if (size < 8 && (shape.out_w > 8 || shape.out_h > 8)) continue;
      const std::int64_t covered = round_up(shape.out_w, x) * round_up(shape.out_h, y);
      if (covered * 4 > shape.out_w * shape.out_h * 5 && shape.out_w * shape.out_h > 64) continue;
      blocks.push_back({x, y});
    }
  }
  return blocks;
}

enum class Search : std::uint8_t { invalid = 0, all, likely };  // likely: what a first choice looks at

std::vector<std::int64_t> workgroups_for(const ConvShape& shape, Lanes lanes, std::int64_t k, Search search) {
  if (lanes != Lanes::channels)
    return search == Search::all ? std::vector<std::int64_t>{16, 64} : std::vector<std::int64_t>{16};
  const std::int64_t needed = divide_up(shape.k, k);
  if (search == Search::likely) return {std::min<std::int64_t>(needed, 16)};
  std::vector<std::int64_t> sizes;
  for (const std::int64_t size : {8, 16, 32, 64}) {
    if (size < needed) sizes.push_back(size);
  }
  if (needed <= 64) sizes.push_back(needed);
  return sizes;
}

Blocking through(View view, Blocking blocking) {
  blocking.view = view;
  return blocking;
}

template <class Use>
void for_each_blocking(const ConvShape& shape, const DeviceInfo& device, Search search, const Use& use) {
  const bool all = search == Search::all;
  const bool products = shape.r == 1 && shape.s == 1;  // all that a block shares is loads: larger ones pay
  const bool bordered = shape.pad_y != 0 || shape.pad_x != 0;
  const auto fits = [&](const Blocking& blocking) { return check(shape, blocking, device).ok(); };
  const auto consider = [&](const Blocking& blocking) {
    if (fits(blocking)) use(blocking);
  };
  for (const Extent& block : blocks_for(shape)) {
    for (const std::int64_t k : {4, 8, 16}) {
      if (k == 16 && !products) continue;
      for (const Lanes lanes : {Lanes::channels, Lanes::places, Lanes::groups}) {
        for (const std::int64_t workgroup : workgroups_for(shape, lanes, k, search)) {
          for (const Packing packing : {Packing::channels, Packing::pixels, Packing::plane}) {
            for (const Rows rows : {Rows::looped, Rows::unrolled}) {
              if (rows == Rows::unrolled && shape.r == 1 && shape.s != 1) continue;
              Blocking blocking{lanes, k, block.x, block.y, packing, View::texels, rows, Border::padded, workgroup};
              if (!all) {
                // What does not fit in memory fits through no view. Loads from memory are slower than through texels:
                // they are looked at where those do not serve.
                const Blocking stored = through(View::storage, blocking);
                if (!fits(stored)) continue;
                use(fits(blocking) ? blocking : stored);
                consider(through(View::image, blocking));
                continue;
              }
              for (const View view : {View::storage, View::texels, View::image}) {
                blocking = through(view, blocking);
                blocking.border = Border::padded;
                consider(blocking);
                if (!bordered) continue;
                blocking.border = Border::guarded;
                consider(blocking);
              }
            }
          }
        }
      }
    }
  }
}

// Every point that fits the spec. use(cost, id): the cost is that of `priced`, the spec with its batch or another; id()
// writes the variant's id.
template <class Use>
void for_each_point(const Conv2dSpec& spec, const Conv2dSpec& priced, const DeviceInfo& device, Search search,
                    const Use& use) {
  if (!check_limits(tensors_of(spec), device).ok()) return;  // nothing fits: the plain kernel says what does not
  const ConvShape shape = shape_of(spec), priced_shape = shape_of(priced);
  const MachineModel model = model_of(device);
  for_each_blocking(shape, device, search, [&](const Blocking& blocking) {
    use(predict(priced_shape, blocking, model), [&] { return "direct/blocked:" + to_text(blocking); });
  });
  for (const std::int64_t m : {4, 2}) {
    const auto winograd = winograd_shape(spec, m), priced_winograd = winograd_shape(priced, m);
    if (!winograd || (m == 2 && search == Search::likely)) continue;
    for_each_blocking(winograd->products, device, search, [&](const Blocking& blocking) {
      if (blocking.packing != Packing::plane || !check_winograd(spec, *winograd, blocking, device).ok()) return;
      use(predict_winograd(priced, *priced_winograd, blocking, model),
          [&] { return "winograd/f" + std::to_string(m) + ":" + to_text(blocking); });
    });
  }
  for (const ImplicitTile& tile : implicit_space(spec, device)) {
    use(predict_implicit(priced, tile, model), [&] { return implicit_variant(tile); });
  }
  for (const Depthwise& choice : depthwise_space(spec, device)) {
    use(predict_depthwise(priced, choice, model), [&] { return depthwise_variant(choice); });
  }
}

// Leaves the first so many, which may not be those of all families: the best of each stay, at their places.
void shorten(std::vector<Candidate>& points, std::size_t most) {
  if (points.size() <= most) return;
  std::map<std::string, std::size_t> met;  // by family
  std::vector<bool> stays(points.size(), false);
  for (std::size_t i = 0; i < points.size() && most != 0; ++i) {
    const std::string_view id = points[i].variant;
    stays[i] = met[std::string(id.substr(0, id.find(':')))]++ < least_of_family;
    if (stays[i]) --most;
  }
  std::vector<Candidate> left;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (!stays[i] && most == 0) continue;
    if (!stays[i]) --most;
    left.push_back(std::move(points[i]));
  }
  points = std::move(left);
}

}  // namespace

std::vector<Candidate> conv_space(const Conv2dSpec& spec, const DeviceInfo& device) {
  std::vector<Candidate> points;
  for_each_point(spec, spec, device, Search::all, [&](const PredictedCost& cost, const auto& id) {
    points.push_back({id(), cost.run(), cost.build});
  });
  std::stable_sort(points.begin(), points.end(),
                   [](const Candidate& a, const Candidate& b) { return a.predicted < b.predicted; });
  shorten(points, most_candidates - 1);
  const PredictedCost plain = predict_plain(shape_of(spec), model_of(device));
  points.push_back({"direct/plain", plain.run(), plain.build});
  return points;
}

std::optional<double> predicted_run(const Conv2dSpec& spec, const DeviceInfo& device, std::string_view variant) {
  const MachineModel model = model_of(device);
  const ConvShape shape = shape_of(spec);
  if (variant == "direct/plain") return predict_plain(shape, model).run();
  if (!check_limits(tensors_of(spec), device).ok()) return std::nullopt;
  if (const auto choice = depthwise_of(variant)) {
    if (!check(spec, *choice, device).ok()) return std::nullopt;
    return predict_depthwise(spec, *choice, model).run();
  }
  if (const auto tile = implicit_of(variant)) {
    if (!check(spec, *tile, device).ok()) return std::nullopt;
    return predict_implicit(spec, *tile, model).run();
  }
  const std::size_t colon = variant.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string_view family = variant.substr(0, colon);
  const auto blocking = blocking_of(variant.substr(colon + 1));
  if (!blocking) return std::nullopt;
  if (family == "direct/blocked") {
    if (!check(shape, *blocking, device).ok()) return std::nullopt;
    return predict(shape, *blocking, model).run();
  }
  if (family != "winograd/f2" && family != "winograd/f4") return std::nullopt;
  const auto winograd = winograd_shape(spec, family.back() - '0');
  if (!winograd || !check_winograd(spec, *winograd, *blocking, device).ok()) return std::nullopt;
  return predict_winograd(spec, *winograd, *blocking, model).run();
}

std::string default_variant(const Conv2dSpec& spec, const DeviceInfo& device) {
  // By one image, so that one program serves every batch; whether it fits, and whether it pays for its build, depends
  // on all of them.
  Conv2dSpec one = spec;
  one.n = 1;
  const double images = static_cast<double>(spec.n);
  const PredictedCost plain = predict_plain(shape_of(one), model_of(device));
  const double pays = plain.run() * images * paying_runs + plain.build;
  double least = std::numeric_limits<double>::infinity();
  std::string best = "direct/plain";
  for_each_point(spec, one, device, Search::likely, [&](const PredictedCost& cost, const auto& id) {
    const double whole = cost.run() * paying_runs + cost.build;
    if (whole >= least || cost.run() * images * paying_runs + cost.build >= pays) return;
    least = whole;
    best = id();
  });
  return best;
}

}  // namespace kiln::dynamic_shaders

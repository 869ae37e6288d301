#include "dynamic_shaders/space/variant_space.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "dynamic_shaders/families/blocking.hpp"
#include "dynamic_shaders/families/conv_shape.hpp"
#include "dynamic_shaders/families/depthwise.hpp"
#include "dynamic_shaders/families/gemm.hpp"
#include "dynamic_shaders/families/implicit.hpp"
#include "dynamic_shaders/families/winograd.hpp"
#include "dynamic_shaders/limits.hpp"
#include "dynamic_shaders/space/cost_model.hpp"

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

namespace {

// A variant of either family; what it costs, and its id.
PredictedCost predicted(const GemmSpec& spec, const GemmBlocking& blocking, const MachineModel& model) {
  return predict_gemm(spec, blocking, model);
}
PredictedCost predicted(const GemmSpec& spec, const GemmTile& tile, const MachineModel& model) {
  return predict_gemm_shared(spec, tile, model);
}
std::string id_of(const GemmBlocking& blocking) { return gemm_variant(blocking); }
std::string id_of(const GemmTile& tile) { return gemm_tile_variant(tile); }

template <class Use>
void for_each_blocking(const GemmSpec& spec, const DeviceInfo& device, Search search, const Use& use) {
  const bool all = search == Search::all;
  const View fetched = check_view(spec, View::texels, device).ok() ? View::texels : View::storage;
  const std::int64_t needed = quads_of(spec);
  for (const std::int64_t rows : {1, 2, 4, 6, 8, 12, 16, 24}) {
    if (rows > spec.m) break;
    for (const std::int64_t quads : {1, 2, 4}) {
      for (const std::int64_t workgroup : {8, 16, 32, 64}) {
        if (workgroup > 8 && workgroup * quads >= 2 * needed) continue;
        for (const View view : {View::storage, View::texels, View::image}) {
          if (!all && view != fetched) continue;
          const GemmBlocking blocking{rows, quads, workgroup, view};
          if (check(spec, blocking, device).ok()) use(blocking);
        }
      }
    }
  }
}

// Tiles that reach far beyond the product, and steps beyond its depth, only stage zeros.
template <class Use>
void for_each_tile(const GemmSpec& spec, const DeviceInfo& device, const Use& use) {
  struct WorkgroupLanes {
    std::int64_t r, c;
  };
  for (const WorkgroupLanes& lanes : {WorkgroupLanes{4, 16}, WorkgroupLanes{8, 8}, WorkgroupLanes{16, 16}}) {
    for (const std::int64_t rows : {4, 8}) {
      if (lanes.r * rows >= 2 * spec.m) continue;
      for (const std::int64_t columns : {2, 4, 8}) {
        if (lanes.c * columns >= 2 * spec.n) continue;
        for (const std::int64_t depth : {8, 16}) {
          if (depth >= 2 * spec.k) continue;
          const GemmTile tile{rows, columns, lanes.r, lanes.c, depth};
          if (check(spec, tile, device).ok()) use(tile);
        }
      }
    }
  }
}

template <class Use>
void for_each_point(const GemmSpec& spec, const DeviceInfo& device, const MachineModel& model, Search search,
                    const Use& use) {
  for_each_blocking(spec, device, search, use);
  if (search == Search::all || sharing_pays(model)) for_each_tile(spec, device, use);
}

}  // namespace

std::vector<Candidate> gemm_space(const GemmSpec& spec, const DeviceInfo& device) {
  const MachineModel model = model_of(device);
  std::vector<Candidate> points;
  for_each_point(spec, device, model, Search::all, [&](const auto& point) {
    const PredictedCost cost = predicted(spec, point, model);
    points.push_back({id_of(point), cost.run(), cost.build});
  });
  std::stable_sort(points.begin(), points.end(),
                   [](const Candidate& a, const Candidate& b) { return a.predicted < b.predicted; });
  const PredictedCost plain = predict_gemm_plain(spec, model);
  points.push_back({"gemm/plain", plain.run(), plain.build});
  return points;
}

std::optional<double> predicted_run(const GemmSpec& spec, const DeviceInfo& device, std::string_view variant) {
  const MachineModel model = model_of(device);
  if (variant == "gemm/plain") return predict_gemm_plain(spec, model).run();
  const auto of = [&](const auto& point) -> std::optional<double> {
    if (!point || !check(spec, *point, device).ok()) return std::nullopt;
    return predicted(spec, *point, model).run();
  };
  if (const auto blocked = of(gemm_blocking_of(variant))) return blocked;
  return of(gemm_tile_of(variant));
}

std::string default_variant(const GemmSpec& spec, const DeviceInfo& device) {
  const MachineModel model = model_of(device);
  const PredictedCost plain = predict_gemm_plain(spec, model);
  double least = plain.run() * paying_runs + plain.build;
  std::string best = "gemm/plain";
  for_each_point(spec, device, model, Search::likely, [&](const auto& point) {
    const PredictedCost cost = predicted(spec, point, model);
    const double whole = cost.run() * paying_runs + cost.build;
    if (whole >= least) return;
    least = whole;
    best = id_of(point);
  });
  return best;
}

namespace {

View view_of(const DeviceInfo& device, Dialect dialect) {
  return dialect == Dialect::glsl && device.max_texel_bindings >= 4 ? View::texels : View::storage;
}

std::vector<std::string> of_conv(const Conv2dSpec& spec, const DeviceInfo& device, Dialect dialect) {
  std::vector<std::string> variants;
  if (spec.groups == spec.c && spec.k == spec.c) {
    variants.push_back(depthwise_variant({0, 0, 4, 2, view_of(device, dialect)}));
  } else if (device.kind == DeviceKind::software) {
    const bool flat = shape_of(spec).flat;
    variants.push_back("direct/blocked:" + to_text({Lanes::channels, 8, flat ? 8 : 4, flat ? 1 : 2, Packing::channels,
                                                    view_of(device, dialect), Rows::looped, Border::padded, 16}));
  } else {
    variants.push_back(implicit_variant({Staging::shared, 4, 4, 8, 8, 8}));
  }
  variants.emplace_back("direct/plain");
  return variants;
}

}  // namespace

std::vector<std::string> stand_in_variants(const KernelSpec& spec, const DeviceInfo& device, Dialect dialect) {
  if (const auto* conv = std::get_if<Conv2dSpec>(&spec)) return of_conv(*conv, device, dialect);
  if (std::holds_alternative<GemmSpec>(spec)) {
    return {gemm_variant({4, 2, 16, view_of(device, dialect)}), "gemm/plain"};
  }
  return {};
}

}  // namespace kiln::dynamic_shaders

#include "dynamic_shaders/space/gemm_space.hpp"

#include <algorithm>

#include "dynamic_shaders/families/conv_shape.hpp"
#include "dynamic_shaders/families/gemm_blocked.hpp"
#include "dynamic_shaders/families/gemm_shared.hpp"
#include "dynamic_shaders/space/gemm_cost.hpp"

namespace kiln::dynamic_shaders {
namespace {

enum class Search : std::uint8_t { invalid = 0, all, likely };  // likely: what a first choice looks at

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

}  // namespace kiln::dynamic_shaders

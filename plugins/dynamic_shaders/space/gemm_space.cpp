#include "dynamic_shaders/space/gemm_space.hpp"

#include <algorithm>

#include "dynamic_shaders/families/conv_shape.hpp"
#include "dynamic_shaders/families/product/gemm_blocked.hpp"
#include "dynamic_shaders/space/cost_model.hpp"

namespace kiln::dynamic_shaders {
namespace {

enum class Search : std::uint8_t { invalid = 0, all, likely };  // likely: what a first choice looks at

template <class Use>
void for_each_point(const GemmSpec& spec, const DeviceInfo& device, Search search, const Use& use) {
  const bool all = search == Search::all;
  const View fetched = device.max_texel_bindings != 0 ? View::texels : View::storage;
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

}  // namespace

std::vector<Candidate> gemm_space(const GemmSpec& spec, const DeviceInfo& device) {
  const MachineModel model = model_of(device);
  std::vector<Candidate> points;
  for_each_point(spec, device, Search::all, [&](const GemmBlocking& blocking) {
    const PredictedCost cost = predict_gemm(spec, blocking, model);
    points.push_back({gemm_variant(blocking), cost.run(), cost.build});
  });
  std::stable_sort(points.begin(), points.end(),
                   [](const Candidate& a, const Candidate& b) { return a.predicted < b.predicted; });
  const PredictedCost plain = predict_gemm_plain(spec, model);
  points.push_back({"gemm/plain", plain.run(), plain.build});
  return points;
}

std::string default_variant(const GemmSpec& spec, const DeviceInfo& device) {
  const MachineModel model = model_of(device);
  const PredictedCost plain = predict_gemm_plain(spec, model);
  double least = plain.run() * paying_runs + plain.build;
  std::string best = "gemm/plain";
  for_each_point(spec, device, Search::likely, [&](const GemmBlocking& blocking) {
    const PredictedCost cost = predict_gemm(spec, blocking, model);
    const double whole = cost.run() * paying_runs + cost.build;
    if (whole >= least) return;
    least = whole;
    best = gemm_variant(blocking);
  });
  return best;
}

}  // namespace kiln::dynamic_shaders

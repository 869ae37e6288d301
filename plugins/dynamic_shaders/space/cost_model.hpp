// What a convolution or a product will cost, in cycles of one core or unit: to order candidates before any is built,
// and to choose where nothing was measured. First the figures of a device and what they say of any kernel,
// then what the kernels of each family do.
//
// Loads and stores are counted per SIMD vector from the kernel's own structure; what one costs comes from the device's
// facts. For devices that compute on the host the figures are fits to kernels that were timed on llvmpipe, not the
// cycles of single loads (docs/kernel-families.md); for others they only say that memory is dearer than arithmetic and
// that registers end. Of a device whose identity names an RDNA target that rdna_facts.hpp knows ("isa"), they also say
// how many waves hide each other's loads.
// Thread-safety: pure functions. Ownership: values.
#pragma once

#include <kiln/device.hpp>
#include <kiln/kernel.hpp>

#include "dynamic_shaders/families/blocking.hpp"
#include "dynamic_shaders/families/depthwise.hpp"
#include "dynamic_shaders/families/gemm.hpp"
#include "dynamic_shaders/families/implicit.hpp"
#include "dynamic_shaders/families/winograd.hpp"
#include "dynamic_shaders/space/rdna_facts.hpp"

#include <cstdint>
#include <optional>

namespace kiln::dynamic_shaders {

// Loads of four floats through one view.
struct LoadCost {
  double load = 10;
  double far = 0;   // what one costs more from weights that no near cache holds
  double code = 0;  // multiply-adds whose code is as long
};

struct MachineModel {
  double lanes = 32;       // of a vector
  double term = 1;         // a multiply and an add
  double nested = 0;       // what a term costs more in a loop within the loop over channels
  double accumulator = 0;  // taken up and put back, around the terms that one row's loads give it
  double scalar_load = 8;  // of memory
  LoadCost storage{12, 0, 0}, texel, image;
  double near_bytes = 1e18;  // of a group's weights that stay near
  double shared_scalar = 2;  // of memory that a workgroup shares
  double shared_vector = 4;
  double barrier = 30;
  double scalar_store = 8;
  double vector_store = 12;
  double pack = 44;           // four floats taken from far apart into one texel
  double accumulators = 64;   // that a lane keeps without spilling
  double spill = 0.5;         // what an accumulator costs more beyond that
  double held = 64;           // outputs that a lane without a loop holds at once
  double crowded = 0.5;       // what a term costs more far beyond that
  double code_terms = 1e9;    // terms of a loop's body that the instruction cache holds
  double overflow = 0;        // what a term costs more far beyond that
  double code = 0;            // of a term, fetched to be run once
  double round = 10;          // of a loop
  double dispatch = 2e4;      // a pass
  double wanted_vectors = 1;  // in flight, to keep the device busy
  double build = 1e8;         // a program
  double build_term = 2e5;    // and each unrolled term of it
  double build_image = 1;     // times, where it loads through the image unit
  // What loads keep a wave waiting, which the waves of its SIMD share: by as many as registers and LDS leave room for.
  // Absent: nothing is known of that, and nothing is added.
  std::optional<rdna::Facts> rdna;
  rdna::Wave wave = rdna::Wave::invalid;
  double latency = 0;
};
MachineModel model_of(const DeviceInfo& device) noexcept;

struct PredictedCost {
  double pack = 0;  // the pass that packs activations
  double main = 0;
  double build = 0;  // of all programs, once
  double run() const noexcept { return pack + main; }
};

inline double number(std::int64_t value) noexcept { return static_cast<double>(value); }

const LoadCost& load_of(View view, const MachineModel& model) noexcept;

// What lies beyond a limit, as a share of the whole.
double beyond(double limit, double whole) noexcept;

// An accumulator's share of a term, where it is taken up and put back around so many of them.
double kept(double outputs, double terms, const MachineModel& model) noexcept;

// How many times longer so many vectors take than a share of a full device: with fewer than it wants some of it is
// idle.
double idle(double vectors, const MachineModel& model) noexcept;

// What a round's loads keep a wave waiting for, of a kernel whose lanes hold so many outputs and operands at once, in
// workgroups of so many lanes and bytes of shared memory. Its SIMD's waves wait side by side, so that each bears a
// share. `held` is an estimate, mostly of a half to one and a half times what clang-19 takes. 0: model.rdna is absent.
double waited(const MachineModel& model, double held, std::int64_t workgroup, std::int64_t shared = 0) noexcept;

// The same of a kernel of one sum a lane.
double waited_plain(const MachineModel& model) noexcept;

// What a convolution will cost, in the terms and figures of cost_model.hpp.
//
// Thread-safety: pure functions. Ownership: values.

// Of direct/blocked.
PredictedCost predict(const ConvShape& shape, const Blocking& blocking, const MachineModel& model);
// Of winograd/f2 and f4; `blocking` is of the products.
PredictedCost predict_winograd(const Conv2dSpec& spec, const WinogradShape& shape, const Blocking& blocking,
                               const MachineModel& model);
// Of depthwise/planes, bands and blocked.
PredictedCost predict_depthwise(const Conv2dSpec& spec, const Depthwise& choice, const MachineModel& model);
// Of implicit/registers and implicit/shared.
PredictedCost predict_implicit(const Conv2dSpec& spec, const ImplicitTile& tile, const MachineModel& model);
// Of direct/plain.
PredictedCost predict_plain(const ConvShape& shape, const MachineModel& model);

// What a product of matrices will cost, in the terms and figures of cost_model.hpp.
//
// Thread-safety: pure functions. Ownership: values.

// Of gemm/blocked, gemm/shared and gemm/plain.
PredictedCost predict_gemm(const GemmSpec& spec, const GemmBlocking& blocking, const MachineModel& model);
PredictedCost predict_gemm_shared(const GemmSpec& spec, const GemmTile& tile, const MachineModel& model);
PredictedCost predict_gemm_plain(const GemmSpec& spec, const MachineModel& model);

// Where shared memory costs what all memory costs, as on llvmpipe, a copy there gains nothing: such a device tries it
// when it is tuned; it is never the model's first choice.
bool sharing_pays(const MachineModel& model) noexcept;

}  // namespace kiln::dynamic_shaders

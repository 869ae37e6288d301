// How often each figure of a model counts in a kernel's cost: a model in which nothing costs anything but one thing.
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

#include "dynamic_shaders/space/cost_model.hpp"
#include "dynamic_shaders/space_samples.hpp"

namespace kiln::dynamic_shaders {
namespace {

// A device of one lane that is never idle, keeps everything and waits for nothing.
MachineModel free_model() {
  MachineModel model;
  model.lanes = 1;
  model.term = model.scalar_load = model.shared_scalar = model.shared_vector = model.barrier = 0;
  model.storage = model.texel = model.image = {0, 0, 0};
  model.scalar_store = model.vector_store = model.pack = model.spill = model.crowded = model.round = 0;
  model.dispatch = model.wanted_vectors = model.build = model.build_term = 0;
  model.accumulators = model.held = model.code_terms = 1e9;
  return model;
}

struct Figure {
  std::string name;
  std::function<void(MachineModel&)> change;
  double count;  // by which the cost grows
};

template <class Cost>
void check_figures(const Cost& cost, double free, const std::vector<Figure>& figures) {
  CHECK(cost(free_model()) == Approx(free));
  for (const Figure& figure : figures) {
    INFO(figure.name);
    MachineModel model = free_model();
    figure.change(model);
    CHECK(cost(model) - free == Approx(figure.count));
  }
}

void add_term(MachineModel& model) { model.term = 1; }
void add_accumulator(MachineModel& model) { model.accumulator = 1; }
void add_scalar_load(MachineModel& model) { model.scalar_load = 1; }
void add_storage_load(MachineModel& model) { model.storage.load = 1; }
void add_texel_load(MachineModel& model) { model.texel.load = 1; }
void add_image_load(MachineModel& model) { model.image.load = 1; }
void add_scalar_store(MachineModel& model) { model.scalar_store = 1; }
void add_vector_store(MachineModel& model) { model.vector_store = 1; }
void add_dispatch(MachineModel& model) { model.dispatch = 1; }
void add_round(MachineModel& model) { model.round = 1; }
void add_nested(MachineModel& model) { model.nested = 1; }
void add_barrier(MachineModel& model) { model.barrier = 1; }

std::function<void(MachineModel&)> spilling_from(double accumulators) {
  return [accumulators](MachineModel& model) { model.accumulators = accumulators, model.spill = 1; };
}
std::function<void(MachineModel&)> overflowing_from(double terms) {
  return [terms](MachineModel& model) { model.code_terms = terms, model.overflow = 1; };
}

}  // namespace

TEST_CASE("cost model: shares beyond a limit, of an accumulator, and of an idle device") {
  CHECK(beyond(4, 3) == 0);
  CHECK(beyond(4, 4) == 0);
  CHECK(beyond(4, 5) == Approx(0.2));
  CHECK(beyond(4, 16) == Approx(0.75));
  MachineModel model = free_model();
  model.accumulator = 3, model.spill = 5, model.accumulators = 64;
  CHECK(kept(64, 1, model) == 3);
  CHECK(kept(65, 1, model) == 8);
  CHECK(kept(65, 4, model) == 2);
  model.wanted_vectors = 400;
  CHECK(idle(100, model) == 4);
  CHECK(idle(400, model) == 1);
  CHECK(idle(800, model) == 1);
  CHECK(idle(1, model) == 400);
  CHECK(idle(0.5, model) == 400);  // never less than one vector
  model.storage.load = 1, model.texel.load = 2, model.image.load = 3;
  CHECK(load_of(View::storage, model).load == 1);
  CHECK(load_of(View::texels, model).load == 2);
  CHECK(load_of(View::image, model).load == 3);
  CHECK(waited_plain(model) == 0);
}

TEST_CASE("cost model: what direct/blocked does, with unrolled rows") {
  // 98 blocks of 16 lanes. Of 64 steps each: 128 outputs, nine taps, 6 rows of 3 texels, 9 texels of weights.
  const double lanes = 98 * 16, steps = lanes * 64;
  const auto cost = [](const MachineModel& model) {
    return predict(shape_of(resnet_layer()), good_blocking(), model).run();
  };
  check_figures(cost, 0,
                {{"term", add_term, steps * 1152},
                 {"accumulator", add_accumulator, steps * 384},  // around three taps
                 {"nested", add_nested, 0},
                 {"round", add_round, steps},
                 {"texel", add_texel_load, steps * 27},
                 {"storage", add_storage_load, 0},
                 {"image", add_image_load, 0},
                 {"scalar load", add_scalar_load, 0},
                 {"vector store", add_vector_store, lanes * 32},
                 {"scalar store", add_scalar_store, 0},
                 {"dispatch", add_dispatch, 2},
                 {"pack", [](MachineModel& model) { model.pack = 1; }, 64 * 58 * 15},
                 {"kept", spilling_from(128), 0},
                 {"spilled", spilling_from(127), steps * 384},
                 {"short code", overflowing_from(1152), 0},
                 {"long code", overflowing_from(576), steps * 576},
                 {"code of loads", [](MachineModel& model) { overflowing_from(589.5)(model), model.texel.code = 1; },
                  steps * 576},  // 27 more: 1179
                 {"near", [](MachineModel& model) { model.near_bytes = 147456, model.texel.far = 1; }, 0},
                 {"far", [](MachineModel& model) { model.near_bytes = 147455, model.texel.far = 1; }, steps * 9}});
  MachineModel model = free_model();
  model.term = 1;
  const auto workgroup_vectors = [&](double of_lanes) {
    model.lanes = of_lanes;
    return cost(model) / (98 * 64 * 1152);
  };
  CHECK(workgroup_vectors(16) == Approx(1));
  CHECK(workgroup_vectors(15) == Approx(2));
  CHECK(workgroup_vectors(8) == Approx(2));
  CHECK(workgroup_vectors(5) == Approx(4));
}

TEST_CASE("cost model: what direct/blocked does, with rows in a loop and a guarded border") {
  // Places: 112 blocks in 2 workgroups of 64 lanes, of each of 8 lots of channels. Of 16 steps of four channels each.
  const Blocking blocking{Lanes::places, 8, 7, 4, Packing::channels, View::image, Rows::looped, Border::guarded, 64};
  const double lanes = 2 * 64 * 8, steps = lanes * 16;
  const double guard = steps * 108 * 3;  // of each pixel of 9 columns, 4 outputs' 3 rows
  const auto cost = [&](const MachineModel& model) { return predict(shape_of(resnet_layer()), blocking, model).run(); };
  check_figures(cost, guard,
                {{"term", add_term, steps * 8064},
                 {"accumulator", add_accumulator, steps * 672},  // around three taps of four channels
                 {"nested", add_nested, steps * 8064},
                 {"round", add_round, steps * 3},
                 {"image", add_image_load, steps * (108 + 72)},
                 {"scalar store", add_scalar_store, lanes * 224},  // rows of seven
                 {"vector store", add_vector_store, 0},
                 {"short code", overflowing_from(2688), 0},  // one row's
                 {"long code", overflowing_from(1344), steps * 4032}});
  Blocking padded = blocking;
  padded.border = Border::padded;
  CHECK(predict(shape_of(resnet_layer()), padded, free_model()).run() == 0);
}

TEST_CASE("cost model: a term costs more in a loop over rows, where there are several") {
  Blocking looped = good_blocking();
  looped.rows = Rows::looped;
  MachineModel model = free_model();
  model.nested = 1;
  const auto nested = [&](std::int64_t rows) {
    Conv2dSpec spec = resnet_layer();
    spec.r = rows, spec.h = 55 + rows, spec.pad_y = 0;
    return predict(shape_of(spec), looped, model).run();
  };
  CHECK(nested(1) == 0);
  CHECK(nested(2) == Approx(98.0 * 16 * 64 * 128 * 3 * 2));
  CHECK(nested(3) == Approx(98.0 * 16 * 64 * 128 * 3 * 3));
}

TEST_CASE("cost model: what implicit/registers and implicit/shared do") {
  // 98 x 2 workgroups of 64 lanes with 8 channels of 2 pixels; nine taps of 64 channels, in 16 steps.
  const double lanes = 98 * 2 * 64, depths = lanes * 576;
  const auto registers = [](const MachineModel& model) {
    return predict_implicit(resnet_layer(), {Staging::registers, 8, 2, 4, 16, 4}, model).run();
  };
  check_figures(registers, depths * 4 + lanes * 144 * 10,
                {{"term", add_term, depths * 16},
                 {"accumulator", add_accumulator, depths * 16},
                 {"scalar load", add_scalar_load, depths * 2},
                 {"storage", add_storage_load, depths * 2},
                 {"scalar store", add_scalar_store, lanes * 16},
                 {"barrier", add_barrier, 0},
                 {"dispatch", add_dispatch, 1},
                 {"kept", spilling_from(16), 0},
                 {"spilled", spilling_from(15), depths * 16},
                 {"short code", overflowing_from(64), 0},
                 {"long code", overflowing_from(32), depths * 8}});
  // 49 x 2 workgroups of 128 lanes with 4 channels of 4 pixels, in 8 steps. Each lane stages half a pixel a depth and a
  // sixteenth of a vector of weights.
  const auto shared = [](const MachineModel& model) {
    return predict_implicit(resnet_layer(), {Staging::shared, 4, 4, 8, 16, 8}, model).run();
  };
  check_figures(shared, depths + lanes * 72 * 10,
                {{"term", add_term, depths * 16},
                 {"scalar load", add_scalar_load, depths / 2},
                 {"storage", add_storage_load, depths / 16},
                 {"shared scalar", [](MachineModel& model) { model.shared_scalar = 1; }, depths * 4.5},
                 {"shared vector", [](MachineModel& model) { model.shared_vector = 1; }, depths * 1.0625},
                 {"barrier", add_barrier, lanes * 72 * 2},
                 {"scalar store", add_scalar_store, lanes * 16},
                 {"dispatch", add_dispatch, 1}});
}

TEST_CASE("cost model: a tile's lane holds its outputs and what it multiplies") {
  // gfx1100: 16 waves of 96 registers, 12 of up to 120; 40 are the kernel's own.
  MachineModel model = free_model();
  model.rdna = rdna::facts_of("gfx1100");
  model.wave = rdna::Wave::w32;
  model.latency = 48;
  const auto waited_a_step = [&](std::int64_t pixels) {
    Conv2dSpec spec = layer(4, 8, 1);
    const ImplicitTile tile{Staging::registers, 4, pixels, 1, 64, 4};
    MachineModel ready = model;
    ready.latency = 0;
    return (predict_implicit(spec, tile, model).run() - predict_implicit(spec, tile, ready).run()) / 64;
  };
  CHECK(waited_a_step(10) == Approx(3));  // 40 + 10 + 4
  CHECK(waited_a_step(11) == Approx(4));  // 44 + 11 + 4
}

TEST_CASE("cost model: what gemm/blocked does with whole texels of depth, and without") {
  const GemmBlocking blocking{8, 2, 16, View::texels};  // 64 outputs
  GemmSpec spec;
  spec.m = spec.n = spec.k = 64;
  const auto cost = [&](const MachineModel& model) { return predict_gemm(spec, blocking, model).run(); };
  const double lanes = 8 * 16, steps = lanes * 16;  // of four depths
  check_figures(cost, steps * 10,
                {{"term", add_term, steps * 256},
                 {"accumulator", add_accumulator, steps * 64},
                 {"texel", add_texel_load, steps * 16},
                 {"scalar load", add_scalar_load, 0},
                 {"vector store", add_vector_store, lanes * 16},
                 {"scalar store", add_scalar_store, 0},
                 {"dispatch", add_dispatch, 1},
                 {"short code", overflowing_from(256), 0},
                 {"long code", overflowing_from(128), steps * 128},
                 {"code of loads", [](MachineModel& model) { overflowing_from(136)(model), model.texel.code = 1; },
                  steps * 128}});
  spec.n = 62, spec.k = 63;
  const double depths = lanes * 63;
  check_figures(cost, depths * 10,
                {{"term", add_term, depths * 64},
                 {"accumulator", add_accumulator, depths * 64},
                 {"texel", add_texel_load, depths * 2},
                 {"scalar load", add_scalar_load, depths * 8},
                 {"vector store", add_vector_store, 0},
                 {"scalar store", add_scalar_store, lanes * 64}});
}

TEST_CASE("cost model: what gemm/shared does, and each of its passes") {
  const GemmTile tile{4, 4, 8, 16, 8};  // 32 rows of 64 columns
  GemmSpec spec;
  spec.m = spec.n = spec.k = 64;
  const auto cost = [&](const MachineModel& model) { return predict_gemm_shared(spec, tile, model).run(); };
  const double lanes = 2 * 128, depths = lanes * 64;
  // As of an implicit product, but that a vector of the first factor is four loads, each with a choice.
  check_figures(cost, depths * 1.5 + lanes * 8 * 10,
                {{"term", add_term, depths * 16},
                 {"scalar load", add_scalar_load, depths * 0.75},
                 {"storage", add_storage_load, 0},
                 {"barrier", add_barrier, lanes * 8 * 2},
                 {"dispatch", add_dispatch, 1}});
  MachineModel model = free_model();
  const auto dispatches = [&](std::int64_t depth) {
    spec.k = depth;
    model.dispatch = 0;
    const double without = cost(model);
    model.dispatch = 1e6;
    return (cost(model) - without) / 1e6;
  };
  CHECK(dispatches(480000) == Approx(1));
  CHECK(dispatches(480001) == Approx(2));
  CHECK(dispatches(960001) == Approx(3));
}

TEST_CASE("cost model: what the plain kernels do") {
  const double outputs = 64 * 3136;
  const auto conv = [](const MachineModel& model) { return predict_plain(shape_of(resnet_layer()), model).run(); };
  check_figures(conv, 0,
                {{"term", add_term, outputs * 576},
                 {"scalar load", add_scalar_load, outputs * 1152},
                 {"scalar store", add_scalar_store, outputs},
                 {"dispatch", add_dispatch, 1}});
  GemmSpec spec;
  spec.m = 3, spec.n = 5, spec.k = 7;
  const auto product = [&](const MachineModel& model) { return predict_gemm_plain(spec, model).run(); };
  check_figures(product, 0,
                {{"term", add_term, 105},
                 {"scalar load", add_scalar_load, 210},
                 {"scalar store", add_scalar_store, 15},
                 {"dispatch", add_dispatch, 1}});
}

TEST_CASE("cost model: what the depthwise kernels do") {
  Conv2dSpec spec = layer(8, 8, 3, 1, 8);
  Depthwise choice{0, 0, 4, 2, View::storage};
  const auto cost = [&](const MachineModel& model) { return predict_depthwise(spec, choice, model).run(); };
  const auto crowded_from = [](double held) {
    return [held](MachineModel& model) { model.held = held, model.crowded = 1; };
  };
  // 64 blocks of 8 outputs: 4 rows of 3 texels, one of them for the border; each at one cycle more.
  check_figures(cost, 64 * 12,
                {{"storage", add_storage_load, 64 * 12},
                 {"code", [](MachineModel& model) { model.storage.code = 2, model.code = 3; }, 64 * 12 * 6},
                 {"scalar load", add_scalar_load, 64 * 9},
                 {"term", add_term, 64 * 72},
                 {"accumulator", add_accumulator, 64 * 8},
                 {"vector store", add_vector_store, 64 * 2},
                 {"dispatch", add_dispatch, 1},
                 {"held", crowded_from(8), 0},
                 {"crowded", crowded_from(4), 64 * 36}});
  spec.h = spec.w = 10, spec.pad_y = spec.pad_x = 0;
  check_figures(cost, 64 * 8, {{"storage", add_storage_load, 64 * 8}});
  spec = layer(8, 8, 3, 1, 8);
  choice = {0, 2, 0, 0, View::storage};  // 32 bands of 16 outputs: 4 rows of 2 texels, and one more
  check_figures(cost, 0,
                {{"storage", add_storage_load, 32 * 9},
                 {"scalar load", add_scalar_load, 32 * 9},
                 {"term", add_term, 32 * 144},
                 {"vector store", add_vector_store, 32 * 4}});
  choice = {2, 0, 0, 0, View::storage};  // 4 pairs of planes
  check_figures(cost, 0,
                {{"storage", add_storage_load, 4 * 32},
                 {"scalar load", add_scalar_load, 4 * 18},
                 {"term", add_term, 4 * 1152},
                 {"vector store", add_vector_store, 4 * 32}});
  MachineModel model = free_model();
  model.term = 1, model.lanes = 3;
  CHECK(cost(model) == Approx(2 * 1152));  // vectors of three lanes
  spec.n = 3;
  CHECK(cost(model) == Approx(6 * 1152));
}

}  // namespace kiln::dynamic_shaders

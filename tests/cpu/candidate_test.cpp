// Every candidate of a spec by itself, against the double-precision reference.

#include <algorithm>
#include <limits>
#include <random>

#include <catch2/catch.hpp>

#include "data/tensor_source.hpp"
#include "onednn/candidate.hpp"
#include "onednn/primitives.hpp"
#include "onednn/worker_pool.hpp"
#include "reference/compare.hpp"
#include "support/conv_cases.hpp"

namespace kiln::cpu {
namespace {

constexpr std::size_t guard = 64;  // floats before and behind the output
constexpr float guard_value = -77;

std::shared_ptr<HostTensor> random_tensor(std::uint64_t bytes, std::mt19937_64& random) {
  auto tensor = HostTensor::create(DType::f32, {static_cast<std::int64_t>(bytes / sizeof(float))}).value();
  data::fill_random(*tensor, random());
  return tensor;
}

std::byte* address_of(const HostTensor& tensor) {
  // oneDNN takes all memory as writable.
  return const_cast<std::byte*>(tensor.bytes().data());
}

class Trial {
 public:
  Trial(const KernelSpec& spec, int threads, std::uint64_t seed) : spec_(spec), pool_(threads) {
    std::mt19937_64 random(seed);
    for (const TensorDecl& declared : tensors_of(spec)) {
      if (declared.role == TensorRole::output) {
        output_ =
            HostTensor::create(DType::f32, {static_cast<std::int64_t>(declared.bytes / sizeof(float) + 2 * guard)})
                .value();
      } else {
        inputs_.push_back(random_tensor(declared.bytes, random));
      }
    }
  }

  // Empty: nothing is wrong.
  std::string wrong_with(Candidate& candidate) {
    const std::span<float> all = output_->as<float>();
    const std::span<float> inner = all.subspan(guard, all.size() - 2 * guard);
    std::ranges::fill(all, guard_value);
    std::ranges::fill(inner, std::numeric_limits<float>::quiet_NaN());
    run(candidate, reinterpret_cast<std::byte*>(inner.data()));
    const auto intact = [](float value) { return value == guard_value; };
    if (!std::ranges::all_of(all.first(guard), intact) || !std::ranges::all_of(all.last(guard), intact)) {
      return candidate.layout() + ": memory around the output was written";
    }
    const HostTensor* bias = inputs_.size() == 3 ? inputs_[2].get() : nullptr;
    const auto* conv = std::get_if<Conv2dSpec>(&spec_);
    const auto compared =
        conv != nullptr ? reference::compare_conv2d(*conv, *inputs_[0], *inputs_[1], bias, inner, 1)
                        : reference::compare_gemm(std::get<GemmSpec>(spec_), *inputs_[0], *inputs_[1], bias, inner, 1);
    if (!compared) return compared.error().text();
    if (compared->within) return {};
    return candidate.layout() + ": element " + std::to_string(compared->worst_index) + ": relative error " +
           std::to_string(compared->max_rel_error) + ", allowed " + std::to_string(compared->error_bound);
  }

  // Of all candidates; empty: nothing.
  std::string wrong() {
    const OmpAlone alone;
    std::vector<Candidate> candidates =
        std::holds_alternative<Conv2dSpec>(spec_)
            ? conv2d_candidates(std::get<Conv2dSpec>(spec_), engine_, pool_.threads(), "auto")
            : gemm_candidates(std::get<GemmSpec>(spec_), engine_, pool_.threads());
    std::string text;
    for (Candidate& candidate : candidates) {
      shared_ += candidate.tiles().size() > 1 ? 1 : 0;
      if (const std::string wrong = wrong_with(candidate); !wrong.empty()) text += wrong + "\n";
    }
    return text;
  }
  std::size_t shared() const noexcept { return shared_; }  // candidates of several tiles so far

 private:
  void run(Candidate& candidate, std::byte* output) {
    std::vector<dnnl::memory> held;
    std::vector<std::byte*> constants;
    for (const Pipeline& tile : candidate.tiles()) {
      const Pipeline::Constant& constant = tile.constant();
      std::byte* lies = address_of(*inputs_[1]) + constant.offset;
      if (constant.given != constant.wanted) {
        held.emplace_back(constant.wanted, engine_);
        pack(dnnl::memory(constant.given, engine_, lies), held.back(), pool_, stream_);
        lies = static_cast<std::byte*>(held.back().get_data_handle());
      }
      constants.push_back(lies);
    }
    dnnl::memory workspace(
        {{static_cast<std::int64_t>(candidate.workspace_bytes(pool_.threads()))}, dnnl::memory::data_type::u8, {1}},
        engine_);
    Addresses addresses{};
    addresses[static_cast<std::size_t>(Place::input)] = address_of(*inputs_[0]);
    if (inputs_.size() == 3) addresses[static_cast<std::size_t>(Place::bias)] = address_of(*inputs_[2]);
    addresses[static_cast<std::size_t>(Place::output)] = output;
    addresses[static_cast<std::size_t>(Place::workspace)] = static_cast<std::byte*>(workspace.get_data_handle());
    candidate.run(pool_, stream_, addresses, constants);
  }

  KernelSpec spec_;
  WorkerPool pool_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::vector<std::shared_ptr<HostTensor>> inputs_;
  std::shared_ptr<HostTensor> output_;
  std::size_t shared_ = 0;
};

std::size_t check_all(const KernelSpec& spec, int threads, std::uint64_t seed) {
  INFO(canonical_text(spec) << ", " << threads << " threads");
  Trial trial(spec, threads, seed);
  CHECK(trial.wrong() == "");
  return trial.shared();
}

Conv2dSpec conv(std::int64_t c, std::int64_t h, std::int64_t w, std::int64_t k, std::int64_t r, std::int64_t s) {
  Conv2dSpec spec;
  spec.c = c, spec.h = h, spec.w = w, spec.k = k, spec.r = r, spec.s = s;
  spec.pad_y = r / 2, spec.pad_x = s / 2;
  return spec;
}

}  // namespace

TEST_CASE("every candidate of random convolutions is right") {
  std::uint64_t seed = 0;
  std::size_t shared = 0;
  for (const Conv2dSpec& spec : support::random_cases(60, 29, 300000)) {
    for (const int threads : {2, 3}) shared += check_all(spec, threads, ++seed);
  }
  CHECK(shared > 100);
}

TEST_CASE("every candidate is right where there are few rows, channels, columns or groups") {
  const int threads = GENERATE(2, 3, 5);
  std::vector<Conv2dSpec> specs{conv(16, 5, 5, 75, 3, 3),  conv(3, 1, 501, 5, 1, 9), conv(16, 1, 333, 16, 1, 1),
                                conv(16, 2, 150, 8, 2, 3), conv(40, 1, 1, 17, 1, 1), conv(8, 150, 1, 8, 3, 1),
                                conv(20, 7, 9, 33, 1, 1)};
  for (Conv2dSpec& spec : specs) spec.bias = Bias::per_channel;
  specs.push_back(conv(72, 5, 4, 72, 3, 3));
  specs.back().groups = 72;
  specs.push_back(conv(64, 5, 4, 96, 3, 3));
  specs.back().groups = 2;
  specs.push_back(conv(24, 4, 4, 12, 3, 3));
  specs.back().groups = 6;
  specs.push_back(conv(5, 4, 4, 7, 3, 3));
  specs.back().n = 9;
  specs.push_back(conv(16, 3, 100, 16, 1, 1));  // pixels read
  specs.back().stride_x = 2;
  specs.push_back(conv(6, 2, 200, 6, 2, 5));
  specs.back().stride_x = 3, specs.back().dilation_x = 2;
  for (Conv2dSpec& spec : specs) {
    check_all(spec, threads, 5);
    spec.activation = Activation::relu;
    spec.n += 1;
    check_all(spec, threads, 6);
  }
}

TEST_CASE("every candidate of Winograd's class is right") {
  for (const std::int64_t extent : {9, 14, 28}) {
    Conv2dSpec spec = conv(32, extent, extent + 1, 48, 3, 3);
    spec.accuracy = Accuracy::winograd;
    spec.bias = Bias::per_channel;
    check_all(spec, 2, 3);
  }
}

TEST_CASE("every candidate of random gemms is right") {
  std::mt19937 random(23);
  std::uniform_int_distribution<std::int64_t> extent(1, 300);
  std::size_t shared = 0;
  for (int i = 0; i < 60; ++i) {
    GemmSpec spec{extent(random), extent(random), extent(random)};
    if (i % 6 == 1) spec.m = 1;
    if (i % 6 == 2) spec.n = 1;
    if (i % 6 == 3) spec.k = 1 + i % 4;
    if (i % 6 == 4) spec.m = 2 + i % 5, spec.n *= 4;
    spec.bias = i % 2 == 0 ? Bias::per_channel : Bias::none;
    spec.activation = i % 3 == 0 ? Activation::relu : Activation::none;
    for (const int threads : {1, 2, 3}) shared += check_all(spec, threads, static_cast<std::uint64_t>(i));
  }
  CHECK(shared > 100);
}

namespace {

constexpr std::chrono::nanoseconds budget{60'000};

// Candidates with a usual time and another one at their first run.
class Race {
 public:
  struct Runner {
    std::uint64_t first_ns = 0, usual_ns = 0;
    int runs = 0;
  };
  explicit Race(std::vector<Runner> runners) : runners_(std::move(runners)) {}
  Choice choose() {
    return choose_fastest(runners_.size(), budget, [this](std::size_t i) {
      const std::uint64_t took = runners_[i].runs++ == 0 ? runners_[i].first_ns : runners_[i].usual_ns;
      spent_ns_ += took;
      return took;
    });
  }
  int runs(std::size_t i) const { return runners_[i].runs; }
  std::uint64_t spent_ns() const { return spent_ns_; }

 private:
  std::vector<Runner> runners_;
  std::uint64_t spent_ns_ = 0;
};

}  // namespace

TEST_CASE("choice: the fastest by its usual time, also where its first run was slow") {
  Race race({{2900, 100}, {300, 200}, {300, 300}});
  CHECK(race.choose().fastest == 0);
  Race later({{100, 100}, {2900, 50}});
  CHECK(later.choose().fastest == 1);
}

TEST_CASE("choice: the first wins a tie") {
  CHECK(Race({{102, 102}, {100, 100}}).choose().fastest == 0);
  CHECK(Race({{110, 110}, {100, 100}}).choose().fastest == 1);
}

TEST_CASE("choice: who is far behind leaves, and the budget ends the race") {
  Race race({{100, 100}, {1000, 1000}});
  CHECK(race.choose().fastest == 0);
  CHECK(race.runs(1) == 2);
  CHECK(race.spent_ns() < 60'000);
  Race even({{3000, 3000}, {2999, 2999}, {2998, 2998}});
  even.choose();
  CHECK(even.spent_ns() >= 60'000);
  CHECK(even.spent_ns() < 70'000);
}

TEST_CASE("choice: a long first run is not repeated at once, and who never ran cannot win") {
  Race race({{50'000, 50'000}, {50'000, 50'000}, {50'000, 50'000}, {1, 1}});
  const Choice choice = race.choose();
  CHECK(race.runs(0) == 1);
  CHECK(race.runs(3) == 0);
  CHECK(choice.typical_ns[3] == Choice::not_timed);
  CHECK(choice.fastest != 3);
}

}  // namespace kiln::cpu

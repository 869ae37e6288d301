// What an instruction of a wave costs the simulated AMD card. Two kernels that clang-19 compiled at -O3: a 3x3
// convolution (32 channels to 32 over 64x64) and a matrix product as tuned libraries write it (256x256x256, tiles of
// 64x64 through LDS). They run through the compute engine and a job's memory with all its checks: page rights, the
// submission's list of buffers, L2's copies. The results are verified.
//
// Of two runs of an engine the second counts: the first finds its data where the engine before it left them.
//
// ns/instruction is wall time divided by wave instructions of all threads, cpu the same of the process's processor
// time; both medians of the rounds, with the fastest round's wall time beside them, which on a busy machine says most.
// The speedup is of the wall times, one thread's over two's of the same round, so that what else the machine does
// weighs on both. interpreter [ROUNDS] [--figures FILE]
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "figures.hpp"
#include "simulator/compute/engine.hpp"
#include "simulator/memory/address_space.hpp"
#include "simulator/memory/job_memory.hpp"
#include "tests/simulator/compute/kernel_code.hpp"

namespace {

using namespace kiln::simulator;
using kiln::simulator::test::KernelCode;

constexpr std::uint32_t channels = 32, side = 64, filters = 32, points = side * side;
constexpr float input_value = 0.5F, weight_value = 0.25F;

// The buffers of one job, and its address space.
class Buffers {
 public:
  std::uint64_t add(const void* contents, std::size_t bytes, Rights rights) {
    const std::size_t whole = (bytes + Page::bytes - 1) / Page::bytes * Page::bytes;
    Storage storage(static_cast<std::byte*>(std::aligned_alloc(Page::bytes, whole)));
    if (storage == nullptr) throw std::bad_alloc();
    std::memset(storage.get(), 0, whole);
    if (contents != nullptr) std::memcpy(storage.get(), contents, bytes);
    auto memory = std::make_shared<BufferMemory>();
    memory->id = listed_.size() + 1;
    memory->host = storage.get();
    memory->bytes = whole;
    const std::uint64_t address = next_;
    next_ += whole + Page::bytes;
    listed_.push_back(memory->id);
    storage_.push_back(std::move(storage));
    if (const auto refusal = table_.map({address, whole, 0, rights, Caching::cached, memory})) {
      throw std::runtime_error(refusal->reason);
    }
    return address;
  }
  template <class T>
  std::uint64_t add(const std::vector<T>& contents, Rights rights) {
    return add(contents.data(), contents.size() * sizeof(T), rights);
  }
  std::unique_ptr<JobMemory> job(L2Cache& l2) { return std::make_unique<JobMemory>(table_.snapshot(), listed_, l2); }

 private:
  struct Free {
    void operator()(std::byte* at) const noexcept { std::free(at); }
  };
  using Storage = std::unique_ptr<std::byte, Free>;

  PageTable table_;
  std::vector<std::uint64_t> listed_;
  std::vector<Storage> storage_;
  std::uint64_t next_ = 0x1'0000'0000;
};

DispatchState state_of(const KernelCode& code, std::array<std::uint32_t, 3> groups, std::uint64_t program,
                       std::uint64_t arguments) {
  constexpr std::uint32_t private_segment_buffer = 1, kernarg_pointer = 8, wave32 = 1U << 10U;
  const bool descriptor = (code.properties & private_segment_buffer) != 0;  // of scratch, which the kernel has none of
  if ((code.properties & ~private_segment_buffer) != (kernarg_pointer | wave32) || code.private_bytes != 0) {
    throw std::runtime_error("the kept kernel wants registers that this program does not give");
  }
  DispatchState state;
  state.generation = code.generation;
  state.program = program + code.entry;
  state.rsrc1 = code.rsrc1;
  state.rsrc2 = code.rsrc2 | (code.lds_bytes + 511) / 512 << 15U;  // LDS_SIZE
  state.rsrc3 = code.rsrc3;
  const std::size_t at = descriptor ? 4 : 0;
  state.user_data[at] = static_cast<std::uint32_t>(arguments);
  state.user_data[at + 1] = static_cast<std::uint32_t>(arguments >> 32U);
  state.num_thread = {64, 1, 1};
  state.groups = groups;
  state.cu_mask.fill(~0U);
  state.initiator = 1U | 1U << 2U | 1U << 15U;  // COMPUTE_SHADER_EN, FORCE_START_AT_000, CS_W32_EN
  return state;
}

struct Cost {  // of an instruction
  double wall_ns = 0;
  double cpu_ns = 0;
  double fastest_ns = 0;  // of several rounds, by wall time
};

double cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// A kernel with its job. A derived class adds the arguments and knows the result.
class Work {
 public:
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  virtual ~Work() = default;

  Cost run(ComputeEngine& engine) {
    const std::unique_ptr<JobMemory> memory = buffers_.job(l2_);
    const std::uint64_t before = engine.counters().instructions;
    const double cpu_begin = cpu_ns();
    const auto begin = std::chrono::steady_clock::now();
    if (const auto fault = engine.run_dispatch(state_, *memory)) throw std::runtime_error(describe(*fault));
    const std::chrono::duration<double, std::nano> wall = std::chrono::steady_clock::now() - begin;
    const double cpu = cpu_ns() - cpu_begin;
    instructions_ = engine.counters().instructions - before;
    const auto each = static_cast<double>(instructions_);
    return {wall.count() / each, cpu / each, wall.count() / each};
  }

  std::uint64_t instructions() const { return instructions_; }
  virtual void verify() = 0;

 protected:
  static constexpr Rights data{true, true, false}, text{true, false, true};

  Work() = default;
  template <class Arguments>
  void prepare(const std::string& target, const char* kernel, std::array<std::uint32_t, 3> groups,
               const Arguments& arguments) {
    const std::optional<KernelCode> code = test::kept_kernel(target, kernel);
    if (!code) throw std::runtime_error("no kept kernel for " + target);
    const std::uint64_t program = buffers_.add(code->text, text);
    state_ = state_of(*code, groups, program, buffers_.add(&arguments, sizeof arguments, data));
  }
  std::vector<float> floats_at(std::uint64_t address, std::size_t count) {
    std::vector<float> got(count);
    const std::unique_ptr<JobMemory> memory = buffers_.job(l2_);
    if (const auto fault = memory->load(address, std::as_writable_bytes(std::span(got)))) {
      throw std::runtime_error(describe(*fault));
    }
    return got;
  }

  Buffers buffers_;

 private:
  L2Cache l2_;
  DispatchState state_;
  std::uint64_t instructions_ = 0;
};

class Convolution final : public Work {
 public:
  explicit Convolution(const std::string& target) {
    struct {
      std::uint64_t in, weights, out;
      std::uint32_t planes, height, width, rest;
    } arguments{};
    arguments.in = buffers_.add(std::vector<float>(channels * points, input_value), data);
    arguments.weights = buffers_.add(std::vector<float>(filters * channels * 9, weight_value), data);
    out_ = arguments.out = buffers_.add(nullptr, filters * points * sizeof(float), data);
    arguments.planes = channels;
    arguments.height = arguments.width = side;
    prepare(target, "conv3x3", {points / 64, filters / 4, 1}, arguments);
  }

  // All sums are of equal products: their number is that of the taps inside the picture.
  void verify() override {
    const std::vector<float> got = floats_at(out_, filters * points);
    for (std::size_t at = 0; at < got.size(); ++at) {
      const std::size_t y = at % points / side, x = at % side;
      const int rows = y == 0 || y == side - 1 ? 2 : 3, columns = x == 0 || x == side - 1 ? 2 : 3;
      if (got[at] != static_cast<float>(channels) * static_cast<float>(rows * columns) * input_value * weight_value) {
        throw std::runtime_error("element " + std::to_string(at) + " is " + std::to_string(got[at]));
      }
    }
  }

 private:
  std::uint64_t out_ = 0;
};

class Product final : public Work {
 public:
  explicit Product(const std::string& target) {
    std::vector<float> a(size * size), b(size * size);
    for (std::uint32_t at = 0; at < size * size; ++at) {
      a[at] = left(at / size, at % size);
      b[at] = right(at / size, at % size);
    }
    struct {
      std::uint64_t a, b, c;
      std::uint32_t n, rest;
    } arguments{};
    arguments.a = buffers_.add(a, data);
    arguments.b = buffers_.add(b, data);
    out_ = arguments.c = buffers_.add(nullptr, size * size * sizeof(float), data);
    arguments.n = size;
    prepare(target, "sgemm", {size / 64, size / 64, 1}, arguments);
  }

  // Sums of small integers, which have no error.
  void verify() override {
    const std::vector<float> got = floats_at(out_, size * size);
    for (std::uint32_t at = 0; at < size * size; ++at) {
      float sum = 0;
      for (std::uint32_t k = 0; k < size; ++k) sum += left(at / size, k) * right(k, at % size);
      if (got[at] != sum) {
        throw std::runtime_error("element " + std::to_string(at) + " is " + std::to_string(got[at]) + ", expected " +
                                 std::to_string(sum));
      }
    }
  }

 private:
  static constexpr std::uint32_t size = 256;
  static float left(std::uint32_t row, std::uint32_t column) {
    return static_cast<float>((row * 7 + column * 3) % 11) - 5;
  }
  static float right(std::uint32_t row, std::uint32_t column) {
    return static_cast<float>((row * 5 + column * 13) % 9) - 4;
  }

  std::uint64_t out_ = 0;
};

double median(const std::vector<double>& values) { return kiln::bench::quantile(values, 0.5); }

Cost medians(const std::vector<Cost>& costs) {
  std::vector<double> wall, cpu;
  for (const Cost& each : costs) {
    wall.push_back(each.wall_ns);
    cpu.push_back(each.cpu_ns);
  }
  return {median(wall), median(cpu), *std::min_element(wall.begin(), wall.end())};
}

void tell(kiln::bench::FigureFile& file, const std::string& target, const std::string& id, const std::string& name,
          const std::vector<Cost>& costs, const char* peer, const std::vector<Cost>& theirs) {
  const auto wall = [](const std::vector<Cost>& of) {
    std::vector<double> ns;
    for (const Cost& each : of) ns.push_back(each.wall_ns);
    return ns;
  };
  kiln::bench::Figure figure;
  figure.id = "pm4.interpreter." + id;
  figure.name = name;
  figure.unit = "ns";
  figure.kiln = wall(costs);
  figure.peer = kiln::bench::Peer{peer, wall(theirs)};
  figure.verified = true;  // or verify() has thrown
  figure.group = target;
  file.add(std::move(figure));
}

void measure(Work& work, const std::string& target, const std::string& kernel, unsigned rounds,
             kiln::bench::FigureFile& file) {
  ComputeEngine one({.threads = 1, .vectors = VectorChoice::best, .check_hazards = false});
  ComputeEngine two({.threads = 2, .vectors = VectorChoice::best, .check_hazards = false});
  ComputeEngine portable({.threads = 1, .vectors = VectorChoice::portable, .check_hazards = false});
  ComputeEngine checked({.threads = 1, .vectors = VectorChoice::best, .check_hazards = true});
  for (ComputeEngine* engine : {&one, &two, &portable, &checked}) work.run(*engine);  // decodes
  std::vector<Cost> ones, twos, portables, checks;
  std::vector<double> speedups;
  const auto warm_run = [&](ComputeEngine& engine) {
    work.run(engine);
    return work.run(engine);
  };
  for (unsigned round = 0; round < rounds; ++round) {
    ones.push_back(warm_run(one));
    twos.push_back(warm_run(two));
    if (round % 3 == 0) {  // slow, and of less interest
      portables.push_back(warm_run(portable));
      checks.push_back(warm_run(checked));
    }
    speedups.push_back(ones.back().wall_ns / twos.back().wall_ns);
  }
  work.verify();
  std::printf("%s, %s: %.1f M instructions of wave32 a run, %u rounds\n", target.c_str(), kernel.c_str(),
              static_cast<double>(work.instructions()) / 1e6, rounds);
  const auto line = [](const char* name, const std::vector<Cost>& costs) {
    const Cost cost = medians(costs);
    std::printf("  %-13s %6.2f ns/instruction  %6.2f cpu  %6.2f fastest", name, cost.wall_ns, cost.cpu_ns,
                cost.fastest_ns);
  };
  line("one thread", ones);
  std::printf("\n");
  line("two threads", twos);
  std::printf("  %.2fx\n", median(speedups));
  line("portable", portables);
  std::printf("\n");
  line("hazard checks", checks);
  std::printf("\n");
  tell(file, target, kernel + "/one/portable", kernel + ": a wave's instruction, one thread", ones, "portable code",
       portables);
  tell(file, target, kernel + "/two/one", kernel + ": two threads", twos, "one thread", ones);
  tell(file, target, kernel + "/checked/one", kernel + ": one thread with the hazard checks", checks, "one thread",
       ones);
}

}  // namespace

int main(int argument_count, char** arguments) {
  try {
    auto file = kiln::bench::FigureFile::of_words(argument_count, arguments);
    const int rounds = argument_count > 1 ? std::atoi(arguments[1]) : 15;
    if (rounds < 1) throw std::runtime_error("interpreter [ROUNDS]: at least one");
    for (const char* target : {"gfx1100", "gfx1030"}) {
      Convolution convolution(target);
      measure(convolution, target, "convolution", static_cast<unsigned>(rounds), file);
      Product product(target);
      measure(product, target, "product", static_cast<unsigned>(rounds), file);
    }
    file.write();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "interpreter: %s\n", error.what());
    return 1;
  }
}

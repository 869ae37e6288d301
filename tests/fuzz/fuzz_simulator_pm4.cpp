// The simulated command processor on foreign packets: whatever a stream holds, a job ends, with a fault that says where
// and why or with none, and touches no memory but what is mapped for it.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>

#include "simulator/command_processor/command_processor.hpp"
#include "simulator/memory/address_space.hpp"
#include "simulator/memory/job_memory.hpp"

namespace kiln::simulator {

// Dispatches that pass the command processor's checks do nothing here: packets are what is fuzzed. Of the engine only
// the decoder of machine code has a fuzz target, fuzz_isa.
class ComputeEngine::Impl {
 public:
  ComputeCounters counters;
};

ComputeEngine::ComputeEngine(const ComputeLimits&) : impl_(std::make_unique<Impl>()) {}
ComputeEngine::~ComputeEngine() = default;
std::optional<Fault> ComputeEngine::run_dispatch(const DispatchState& state, DeviceMemory&) {
  if (state.groups[0] == 0 || state.num_thread[0] == 0 || state.program % 256 != 0) std::abort();
  ++impl_->counters.groups;
  return {};
}
void ComputeEngine::forget_code() {}
void ComputeEngine::stop(const char*) noexcept {}
const ComputeCounters& ComputeEngine::counters() const noexcept { return impl_->counters; }

}  // namespace kiln::simulator

namespace {

using namespace kiln::simulator;

constexpr std::size_t code_pages = 4, data_pages = 2;
constexpr std::uint64_t code_at = 0x10000, data_at = 0x20000;  // few address bits: a fuzzer finds them

struct alignas(4096) Memory {
  std::array<std::byte, (code_pages + data_pages) * Page::bytes> bytes{};
};

void demand(bool holds) {
  if (!holds) std::abort();
}

BufferRef buffer(Memory& memory, std::uint64_t id, std::size_t first_page, std::size_t pages) {
  auto made = std::make_shared<BufferMemory>();
  made->id = id;
  made->host = memory.bytes.data() + first_page * Page::bytes;
  made->bytes = pages * Page::bytes;
  return made;
}

void run(std::span<const std::uint8_t> packets, Generation generation, Ring ring) {
  const auto memory = std::make_unique<Memory>();
  std::memcpy(memory->bytes.data(), packets.data(), packets.size());
  PageTable table;
  demand(!table.map(
      {code_at, code_pages * Page::bytes, 0, {true, true, false}, Caching::cached, buffer(*memory, 1, 0, code_pages)}));
  demand(!table.map({data_at,
                     data_pages * Page::bytes,
                     0,
                     {true, true, true},
                     Caching::cached,
                     buffer(*memory, 2, code_pages, data_pages)}));
  L2Cache l2;
  const std::array<std::uint64_t, 2> listed{1, 2};
  JobMemory job_memory(table.snapshot(), listed, l2);

  std::uint64_t now = 0;
  CommandProcessorSettings settings;
  settings.generation = generation;
  settings.wait_limit_ns = 1'000;
  settings.indirect_buffer_limit = 64;
  settings.clock_ns = [&now] { return now += 100; };
  ComputeEngine engine{ComputeLimits{}};
  CommandProcessor processor(settings, engine);
  const IndirectBuffer whole{code_at, packets.size()};
  const auto fault = processor.run({ring, {&whole, 1}, &job_memory});
  demand(engine.counters().groups <= processor.counters().dispatches);
  if (!fault) return;
  demand(fault->kind != FaultKind::invalid);
  demand(!fault->reason.empty());
  demand(describe(*fault).find('\n') == std::string::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 5 || size - 1 > code_pages * Page::bytes) return 0;
  const std::span<const std::uint8_t> packets(data + 1, (size - 1) / 4 * 4);
  run(packets, (data[0] & 1) != 0 ? Generation::gfx11 : Generation::gfx10_3,
      (data[0] & 2) != 0 ? Ring::graphics : Ring::compute);
  return 0;
}

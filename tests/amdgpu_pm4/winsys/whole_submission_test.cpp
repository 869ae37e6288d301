// Packets that the queue never submits, in one submission: DMA_DATA fills and copies, WAIT_REG_MEM waits for the device
// and for the host, DISPATCH_INDIRECT reads what was copied, COPY_DATA brings the clock, an immediate and a result.
#include <atomic>
#include <catch2/catch.hpp>

#include "amdgpu_pm4/packets/encoders.hpp"
#include "winsys/direct_device.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

constexpr std::uint32_t indirect_groups = 5, written_lanes = 64 * indirect_groups, target_words = 1024;
constexpr std::uint32_t poison_word = 0xDEADBEEF;

const char* const numbering = R"(
__attribute__((reqd_work_group_size(64, 1, 1)))
kernel void work(global uint* y) { y[get_global_id(0)] = 3 * get_global_id(0) + 1; }
)";

void store_for_the_device(std::uint32_t& word, std::uint32_t value) {
  std::atomic_ref<std::uint32_t>(word).store(value, std::memory_order_release);
}

}  // namespace

TEST_CASE("drm winsys: packets fill, wait, dispatch by counts in memory, and copy the clock") {
  if (!DirectDevice::possible()) return;
  DirectDevice d;
  const auto kernel = d.load(numbering, {Access::write});
  const auto target = d.buffer(BufferUse::storage), counts = d.buffer(BufferUse::storage);
  const auto given = d.buffer(BufferUse::upload), flag = d.buffer(BufferUse::storage);
  const auto gate = d.buffer(BufferUse::reports), told = d.buffer(BufferUse::reports);
  const auto arguments = d.arguments(*kernel, {target.get()});
  const std::uint32_t group_counts[] = {indirect_groups, 1, 1};
  std::copy(std::begin(group_counts), std::end(group_counts), dwords_in(*given).begin());

  DirectSubmission work(d);
  for (const auto* each : {target.get(), counts.get(), given.get(), told.get(), arguments.get()}) work.touch(*each);
  work.touch(*flag, is_signalled);
  work.touch(*gate, is_signalled);
  PacketWriter& out = work.out();
  REQUIRE(emit_dma_fill(out, target->address(), poison_word, 4 * target_words));
  REQUIRE(emit_dma_fill(out, flag->address(), 7, 4));
  REQUIRE(emit_dma_copy(out, counts->address(), given->address(), sizeof group_counts));
  work.barrier();  // the engine wrote through L2; waits and group counts are read past it
  REQUIRE(emit_wait_reg_mem(out, {Compare::equal, flag->address(), 7, ~0U}));
  REQUIRE(emit_wait_reg_mem(out, {Compare::not_less, gate->address(), 2, 0xFF}));
  REQUIRE(emit_copy_data(out, {CopySource::clock, 0, told->address(), CopyBits::b64}));
  DispatchArguments how;
  how.kernarg_va = arguments->address();
  how.groups_at = counts->address();
  work.dispatch(*kernel, how);
  work.barrier();
  REQUIRE(emit_copy_data(out, {CopySource::clock, 0, told->address() + 8, CopyBits::b64}));
  REQUIRE(emit_copy_data(out, {CopySource::immediate, 0x12345678, told->address() + 16, CopyBits::b32}));
  REQUIRE(emit_copy_data(out, {CopySource::l2, target->address() + 4, told->address() + 20, CopyBits::b32}));
  const std::uint64_t number = work.submit(1);

  // It waits for the host: one step of the gate is not enough, and what came before it is done.
  store_for_the_device(dwords_in(*gate)[0], 1);
  CHECK(d.timeline->wait(1, Deadline::after(std::chrono::milliseconds(30))).code == StatusCode::timeout);
  const auto before = d.winsys->counter();
  REQUIRE(before.has_value());
  CHECK(dwords_in(*told)[4] == 0);
  store_for_the_device(dwords_in(*gate)[0], 2);
  REQUIRE(d.timeline->wait(1, Deadline::after(std::chrono::seconds(20))).ok());
  const Status outcome = d.context->outcome(number, 0, Deadline::after(std::chrono::seconds(5))).how;
  INFO(outcome.text());
  REQUIRE(outcome.ok());
  const auto after = d.winsys->counter();
  REQUIRE(after.has_value());

  std::vector<std::uint32_t> expected(target_words, poison_word);
  for (std::uint32_t i = 0; i < written_lanes; ++i) expected[i] = 3 * i + 1;
  const auto stored = dwords_in(*target).first(target_words);
  CHECK(std::vector<std::uint32_t>(stored.begin(), stored.end()) == expected);
  std::array<std::uint64_t, 2> clock{};
  std::memcpy(clock.data(), told->mapped().data(), sizeof clock);
  CHECK(*before <= clock[0]);
  CHECK(clock[0] <= clock[1]);
  CHECK(clock[1] <= *after);
  CHECK(dwords_in(*told)[4] == 0x12345678);
  CHECK(dwords_in(*told)[5] == 4);
}

}  // namespace kiln::amdgpu_pm4

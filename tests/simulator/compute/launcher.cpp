#include "tests/simulator/compute/launcher.hpp"

namespace kiln::simulator::test {
namespace {

constexpr std::uint32_t scratch_waves = 64;

enum Property : unsigned {  // of a kernel descriptor, in the order of their user SGPRs
  private_segment_buffer = 0,
  dispatch_pointer,
  queue_pointer,
  kernarg_pointer,
  dispatch_id,
  flat_scratch_init,
  private_segment_size
};

}  // namespace

void Launcher::give_scratch(const KernelCode& code, const Grid& grid, DispatchState& state) {
  if (code.private_bytes == 0) return;
  const std::uint32_t lanes = code.wave32() ? 32 : 64;
  const std::uint32_t unit = code.generation == Generation::gfx11 ? 256 : 1024;
  const std::uint32_t units = (code.private_bytes * lanes + unit - 1) / unit;
  static_cast<void>(grid);
  scratch_bytes_ = static_cast<std::uint64_t>(units) * unit * scratch_waves;
  scratch_ = memory.allocate(scratch_bytes_);
  state.scratch_base = code.generation == Generation::gfx11 ? scratch_ : 0;
  state.tmpring_size = scratch_waves | units << 12U;
  state.rsrc2 |= 1;
}

DispatchState Launcher::prepare(const KernelCode& code, const Arguments& arguments, const Grid& grid) {
  DispatchState state;
  state.generation = code.generation;
  state.program = memory.allocate(code.text, Rights::execute) + code.entry;
  state.rsrc1 = code.rsrc1;
  state.rsrc2 = code.rsrc2 | (code.lds_bytes + 511) / 512 << 15U;
  state.rsrc3 = code.rsrc3;
  give_scratch(code, grid, state);
  const std::uint64_t kernarg = memory.allocate(arguments.bytes());
  unsigned next = 0;
  const auto put = [&](std::uint64_t value) {
    state.user_data[next++] = static_cast<std::uint32_t>(value);
    state.user_data[next++] = static_cast<std::uint32_t>(value >> 32U);
  };
  for (unsigned property = 0; property <= private_segment_size; ++property) {
    if ((code.properties >> property & 1U) == 0) continue;
    switch (property) {
      case private_segment_buffer: {
        const std::uint32_t index_stride = code.wave32() ? 2 : 3;
        put((scratch_ & 0xFFFFFFFFFFFFU) | std::uint64_t{1} << 63U);  // swizzled
        state.user_data[next++] = static_cast<std::uint32_t>(scratch_bytes_);
        state.user_data[next++] = 0xFACU | 20U << 12U | index_stride << 21U | 1U << 23U | 1U << 24U | 2U << 28U;
        break;
      }
      case dispatch_pointer:  // for the size of a group
        put(memory.allocate(std::vector<std::uint32_t>{
            0, grid.threads[0] | grid.threads[1] << 16U, grid.threads[2], grid.groups[0] * grid.threads[0],
            grid.groups[1] * grid.threads[1], grid.groups[2] * grid.threads[2]}));
        break;
      case kernarg_pointer:
        put(kernarg);
        break;
      case flat_scratch_init:
        put(scratch_);
        break;
      case private_segment_size:
        state.user_data[next++] = code.private_bytes;
        break;
      default:
        put(0);
        break;
    }
  }
  for (unsigned d = 0; d < 3; ++d) {
    state.num_thread[d] = grid.threads[d];
    state.groups[d] = grid.groups[d];
  }
  state.cu_mask.fill(~0U);
  state.initiator = 1U | 1U << 2U | (code.wave32() ? 1U << 15U : 0U);
  return state;
}

}  // namespace kiln::simulator::test

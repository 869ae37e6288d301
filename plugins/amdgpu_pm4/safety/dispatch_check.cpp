#include "amdgpu_pm4/safety/packet_check.hpp"

#include <algorithm>
#include <initializer_list>

#include "amdgpu_pm4/packets/recorded_dispatch.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

constexpr std::uint64_t mapped_tail = 256;  // of code: instructions are fetched ahead

std::string text_of(std::uint64_t number) { return std::to_string(number); }

std::size_t mask_register(std::uint32_t engine) {
  constexpr std::array first_four{Register::static_thread_mgmt_se0, Register::static_thread_mgmt_se1,
                                  Register::static_thread_mgmt_se2, Register::static_thread_mgmt_se3};
  return engine < first_four.size() ? shadow_index(first_four[engine])
                                    : shadow_index(Register::static_thread_mgmt_se4) + engine - first_four.size();
}

std::uint32_t masked_engines(const SubmissionScope& scope, const Capabilities& capabilities) {
  return std::clamp(scope.shape.shader_engines, 1U, capabilities.shader_engine_registers);
}

std::uint64_t address_from(std::uint32_t low, std::uint32_t high) { return canonical(std::uint64_t{high} << 32 | low); }

// Of registers that hold bits 39 to 8 and 47 to 40.
std::uint64_t shifted_address_from(std::uint32_t low, std::uint32_t high) {
  return canonical(std::uint64_t{high} << 40 | std::uint64_t{low} << 8);
}

Status mismatch(std::string_view name, std::uint32_t is, std::uint32_t expected) {
  return invalid_argument(std::string(name) + " is " + hex_text(is) + ", the program has " + hex_text(expected));
}

}  // namespace

DispatchCheck::DispatchCheck(const SubmissionScope& scope, RangeFinder& finder)
    : scope_(scope), finder_(finder), capabilities_(capabilities_of(scope.shape.generation)) {
  const auto require = [this](Register first, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) required_.set(shadow_index(first) + i);
  };
  require(Register::start_x, 3);
  require(Register::num_thread_x, 3);
  require(Register::pgm_lo, 2);
  require(Register::pgm_rsrc1, 2);
  require(Register::pgm_rsrc3, 1);
  require(Register::resource_limits, 1);
  require(Register::tmpring_size, 1);
  for (std::uint32_t engine = 0; engine < masked_engines(scope, capabilities_); ++engine) {
    required_.set(mask_register(engine));
  }
}

Status DispatchCheck::check_set(const RegisterShadow& registers) const {
  const RegisterShadow::Set missing = required_ & ~registers.all_set();
  if (missing.none()) return {};
  std::size_t index = 0;
  while (!missing.test(index)) ++index;
  const RegisterInfo* info =
      find_register(compute_registers + 4 * static_cast<std::uint32_t>(index), capabilities_.generation);
  return invalid_argument((info == nullptr ? "a register" : std::string(info->name)) +
                          " is not set by this submission, but needed by a dispatch");
}

Status DispatchCheck::check_program(const RegisterShadow& registers) {
  const std::uint64_t entry = shifted_address_from(registers[Register::pgm_lo], registers[Register::pgm_hi]);
  if (program_ == nullptr || program_->entry_va != entry) {
    const auto at = std::find_if(scope_.programs.begin(), scope_.programs.end(),
                                 [entry](const ProgramFacts& facts) { return facts.entry_va == entry; });
    if (at == scope_.programs.end()) {
      return invalid_argument("PGM is " + hex_text(entry) + ": no program of the submission starts at this address");
    }
    program_ = &*at;
  }
  if (program_->end_va < entry) {
    return invalid_argument("the program at " + hex_text(entry) + " ends before its start, at " +
                            hex_text(program_->end_va));
  }
  return finder_.check(entry, program_->end_va - entry + mapped_tail, may_read | may_execute,
                       "code and the 256 bytes after it");
}

Status DispatchCheck::check_resources(const RegisterShadow& registers) const {
  const std::uint32_t rsrc1 = registers[Register::pgm_rsrc1], rsrc2 = registers[Register::pgm_rsrc2];
  const std::uint32_t rsrc3 = registers[Register::pgm_rsrc3];
  if (rsrc1 != program_->rsrc1) return mismatch("PGM_RSRC1", rsrc1, program_->rsrc1);
  if (const std::uint32_t rest = rsrc2 & ~pgm_rsrc2::lds_size.mask(); rest != program_->rsrc2) {
    return mismatch("PGM_RSRC2 without its LDS size", rest, program_->rsrc2);
  }
  if (rsrc3 != program_->rsrc3) return mismatch("PGM_RSRC3", rsrc3, program_->rsrc3);
  if (pgm_rsrc1::priv.of(rsrc1) != 0) return invalid_argument("PGM_RSRC1.PRIV is 1, expected 0");
  if (pgm_rsrc2::trap_present.of(rsrc2) != 0) return invalid_argument("PGM_RSRC2.TRAP_PRESENT is 1, expected 0");
  const std::uint32_t vgprs = pgm_rsrc1::vgprs.of(rsrc1), most_vgprs = most_vgpr_granules(program_->wave_lanes);
  if (vgprs > most_vgprs) {
    return invalid_argument("PGM_RSRC1.VGPRS is " + text_of(vgprs) + ", expected at most " + text_of(most_vgprs) +
                            " for waves of " + text_of(program_->wave_lanes) + " lanes");
  }
  const std::uint32_t lds = pgm_rsrc2::lds_size.of(rsrc2) * lds_granule;
  if (lds > most_lds_bytes || lds < program_->lds_bytes) {
    return invalid_argument("PGM_RSRC2.LDS_SIZE is " + text_of(lds) + " bytes, expected " +
                            text_of(program_->lds_bytes) + " to " + text_of(most_lds_bytes));
  }
  if (pgm_rsrc2::user_sgpr.of(rsrc2) > user_data_registers) {
    return invalid_argument("PGM_RSRC2.USER_SGPR is " + text_of(pgm_rsrc2::user_sgpr.of(rsrc2)) +
                            ", expected at most " + text_of(user_data_registers));
  }
  for (std::uint32_t engine = 0; engine < masked_engines(scope_, capabilities_); ++engine) {
    if (registers.at(mask_register(engine)) == 0) {
      return invalid_argument("STATIC_THREAD_MGMT_SE" + text_of(engine) +
                              " is 0: no compute unit of this shader engine is enabled");
    }
  }
  return {};
}

Status DispatchCheck::check_workgroup(const RegisterShadow& registers) const {
  std::uint32_t lanes = 1;
  for (std::uint32_t axis = 0; axis < 3; ++axis) {
    const std::uint32_t value = registers[next_after(Register::num_thread_x, axis)];
    const std::uint32_t size = num_thread::full.of(value);
    if (size == 0 || size > most_workgroup_lanes || num_thread::partial.of(value) != 0) {
      return invalid_argument("NUM_THREAD of axis " + text_of(axis) + " is " + hex_text(value) +
                              ", expected 1 to 1024 lanes and no partial group");
    }
    lanes *= size;
    if (registers[next_after(Register::start_x, axis)] != 0) {
      return invalid_argument("START of axis " + text_of(axis) + " is " +
                              text_of(registers[next_after(Register::start_x, axis)]) + ", expected 0");
    }
  }
  if (lanes > most_workgroup_lanes) {
    return invalid_argument("workgroup has " + text_of(lanes) + " lanes, expected at most " +
                            text_of(most_workgroup_lanes));
  }
  const VectorRegisters there = vector_registers_of(scope_.shape);
  const GroupLoad load = group_load(program_->rsrc1, program_->rsrc3, lanes, program_->wave_lanes, there);
  if (fits(load, capabilities_, there)) return {};
  return invalid_argument("a workgroup of " + text_of(lanes) + " lanes has " + text_of(load.waves) + " waves and " +
                          text_of(load.vgprs) + " vector registers on one SIMD, expected at most " +
                          text_of(capabilities_.waves_per_simd) + " and " + text_of(there.count));
}

Status DispatchCheck::check_scratch(const RegisterShadow& registers) {
  const bool enabled = pgm_rsrc2::scratch_en.of(registers[Register::pgm_rsrc2]) != 0;
  if (!enabled && program_->scratch_bytes == 0) return {};
  if (!enabled) {
    return invalid_argument("PGM_RSRC2.SCRATCH_EN is 0, but the program has " + text_of(program_->scratch_bytes) +
                            " scratch bytes per lane");
  }
  const std::uint32_t size = registers[Register::tmpring_size];
  const std::uint64_t slot = scratch_slot_bytes(capabilities_, size);
  const std::uint64_t wanted = std::uint64_t{program_->scratch_bytes} * program_->wave_lanes;
  const std::uint64_t ring = scratch_ring_bytes(capabilities_, size, scope_.shape.shader_engines);
  if (ring == 0 || slot < wanted) {
    return invalid_argument("TMPRING_SIZE is " + hex_text(size) + ": slots of " + text_of(slot) +
                            " bytes in a ring of " + text_of(ring) + ", expected slots of at least " + text_of(wanted));
  }
  std::uint64_t base = 0;
  if (capabilities_.scratch_registers) {
    if (!registers.all_set().test(shadow_index(Register::scratch_base_lo)) ||
        !registers.all_set().test(shadow_index(Register::scratch_base_hi))) {
      return invalid_argument("PGM_RSRC2.SCRATCH_EN is 1, but DISPATCH_SCRATCH_BASE is not set by this submission");
    }
    base = shifted_address_from(registers[Register::scratch_base_lo], registers[Register::scratch_base_hi]);
  } else {
    const std::uint32_t sgpr = program_->scratch_sgpr;
    if (sgpr > user_data_registers - 2) {
      return invalid_argument("PGM_RSRC2.SCRATCH_EN is 1, but the program has no scratch address in user SGPRs");
    }
    base = address_from(registers.user_data(sgpr), registers.user_data(sgpr + 1) & 0xFFFF);
  }
  return finder_.check(base, ring, may_read | may_write, "scratch");
}

Status DispatchCheck::check_arguments(const RegisterShadow& registers) {
  const std::uint32_t count = pgm_rsrc2::user_sgpr.of(registers[Register::pgm_rsrc2]);
  const std::size_t first = shadow_index(Register::user_data_0);
  for (std::uint32_t sgpr = 0; sgpr < count; ++sgpr) {
    if (!registers.all_set().test(first + sgpr)) {
      return invalid_argument("USER_DATA_" + text_of(sgpr) + " is not set by this submission, the program needs " +
                              text_of(count) + " user SGPRs");
    }
  }
  if (program_->kernarg_bytes == 0) return {};
  const std::uint32_t sgpr = program_->kernarg_sgpr;
  if (sgpr > user_data_registers - 2) {
    return invalid_argument("the program has " + text_of(program_->kernarg_bytes) +
                            " bytes of arguments, but no user SGPRs for the argument address");
  }
  const std::uint64_t va = address_from(registers.user_data(sgpr), registers.user_data(sgpr + 1));
  if (va % kernarg_alignment != 0) {
    return invalid_argument("argument address is " + hex_text(va) + ", expected a multiple of " +
                            text_of(kernarg_alignment));
  }
  return finder_.check(va, program_->kernarg_bytes, may_read, "arguments");
}

Status DispatchCheck::check_initiator(std::uint32_t initiator) const {
  using namespace dispatch_initiator;
  constexpr std::uint32_t needed = compute_shader_en.mask() | force_start_at_000.mask();
  constexpr std::uint32_t allowed = needed | order_mode.mask() | cs_w32_en.mask();
  if ((initiator & needed) != needed || (initiator & ~allowed) != 0) {
    return invalid_argument("DISPATCH_INITIATOR is " + hex_text(initiator) + ", expected the bits " + hex_text(needed) +
                            " and no bits outside " + hex_text(allowed));
  }
  const std::uint32_t lanes = cs_w32_en.of(initiator) != 0 ? 32 : 64;
  if (lanes == program_->wave_lanes) return {};
  return invalid_argument("DISPATCH_INITIATOR.CS_W32_EN sets waves of " + text_of(lanes) + " lanes, expected " +
                          text_of(program_->wave_lanes) + " as in the program");
}

Status DispatchCheck::check(RegisterShadow& registers, std::uint32_t initiator) {
  const bool same_program = program_ != nullptr && !registers.changed();
  if (same_program && !registers.user_data_changed() && initiator == initiator_) return {};
  if (!same_program) {
    if (Status status = check_set(registers); !status.ok()) return status;
    if (Status status = check_program(registers); !status.ok()) return status;
    if (Status status = check_resources(registers); !status.ok()) return status;
    if (Status status = check_workgroup(registers); !status.ok()) return status;
  }
  if (Status status = check_initiator(initiator); !status.ok()) return status;
  if (Status status = check_scratch(registers); !status.ok()) return status;
  if (Status status = check_arguments(registers); !status.ok()) return status;
  registers.unchanged_from_here();
  initiator_ = initiator;
  return {};
}

}  // namespace kiln::amdgpu_pm4

#include "simulator/wave/semantics_table.hpp"

#include <string>
#include <string_view>
#include <unordered_map>

#if defined(KILN_SIMULATOR_HAS_AVX)
#include <cpuid.h>
#endif

namespace kiln::simulator {
namespace {

using Names = std::unordered_map<std::string, const Semantics*>;

void add(Names& names, std::string_view prefix, SemanticsList list) {
  for (unsigned i = 0; i < list.count; ++i) {
    names.emplace(std::string(prefix) + list.first[i].name, &list.first[i]);
  }
}

// Only its form, with or without a result, tells ds_add_rtn_u32 from ds_add_u32; and a destination says that too.
std::string plain_name(const OpcodeInfo& opcode) {
  std::string name(opcode.name);
  constexpr std::string_view returning = "_rtn";
  const std::size_t at = name.find(returning);
  if (opcode.encoding == Encoding::ds && at != std::string::npos) name.erase(at, returning.size());
  return name;
}

struct Build {
  VectorBuild (*vectors)() noexcept;
  Run (*multiply_adds)() noexcept;
};

#if defined(KILN_SIMULATOR_HAS_AVX)
// Conversions of half precision, by which Clang's __builtin_cpu_supports() does not ask.
bool supports_f16c() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

Build build_for(VectorChoice choice) noexcept {
#if defined(KILN_SIMULATOR_HAS_AVX)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && supports_f16c();
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
  if (avx512 && choice == VectorChoice::best) return {&avx512::vector_build, &avx512::multiply_adds};
  if (avx2 && choice != VectorChoice::portable) return {&avx2::vector_build, &avx2::multiply_adds};
#else
  static_cast<void>(choice);
#endif
  return {&portable::vector_build, &portable::multiply_adds};
}

}  // namespace

template <VectorChoice choice>
const SemanticsTable& SemanticsTable::kept() {
  static const SemanticsTable& table = *new SemanticsTable(choice);
  return table;
}

const SemanticsTable& SemanticsTable::of(VectorChoice choice) {
  if (choice == VectorChoice::portable) return kept<VectorChoice::portable>();
  if (choice == VectorChoice::no_avx512) return kept<VectorChoice::no_avx512>();
  return kept<VectorChoice::best>();
}

SemanticsTable::SemanticsTable(VectorChoice choice)
    : vector_(build_for(choice).vectors()),
      multiply_adds_(build_for(choice).multiply_adds()),
      by_opcode_(static_cast<std::size_t>(Opcode::count)) {
  Names names;
  for (const SemanticsList list :
       {vector_.vop1, vector_.conversions, vector_.vop2, vector_.vop3, vector_.vop3_integer, vector_.divide,
        vector_.vop3p, vector_.dot, vector_.matrix, vector_.mix, vector_.cross_lane, vector_.mask, scalar_unit::sop2(),
        scalar_unit::sop1(), scalar_unit::compare(), scalar_unit::sopk(), scalar_unit::control(), scalar_unit::smem(),
        memory_unit::nothing()}) {
    add(names, "", list);
  }
  add(names, "v_cmp_", vector_.vopc);
  add(names, "v_cmpx_", vector_.vopc);
  add(names, "flat_", memory_unit::flat());
  add(names, "global_", memory_unit::global());
  add(names, "global_", memory_unit::by_thread_id());
  add(names, "scratch_", memory_unit::scratch());
  add(names, "ds_", memory_unit::local());
  add(names, "ds_", memory_unit::local_lanes());
  add(names, "buffer_", memory_unit::buffer());
  add(names, "buffer_", memory_unit::formatted_buffer());
  add(names, "tbuffer_", memory_unit::typed_buffer());
  add(names, "image_", memory_unit::image());
  add(names, "image_", memory_unit::image_detail());
  add(names, "image_", memory_unit::image_ray());
  for (std::size_t i = 1; i < by_opcode_.size(); ++i) {
    const OpcodeInfo& opcode = info(static_cast<Opcode>(i));
    const auto found = names.find(plain_name(opcode));
    const bool refused = (opcode.flags & flag::refused) != 0;
    if (found != names.end()) {
      by_opcode_[i] = *found->second;
    } else if ((opcode.flags & flag::sampler) != 0 && !refused) {
      by_opcode_[i] = memory_unit::image_sample();
    }
  }
}

bool SemanticsTable::is_multiply_add(const Op& op) const noexcept {
  const bool rows = op.kind[1] == SourceKind::row && op.kind[2] == SourceKind::row &&
                    (op.kind[0] == SourceKind::row || op.kind[0] == SourceKind::scalar);
  if (!rows) return false;
  for (const Opcode each : {Opcode::v_fmac_f32, Opcode::v_fmamk_f32, Opcode::v_fmaak_f32, Opcode::v_fma_f32}) {
    const Semantics& semantics = by_opcode_[static_cast<std::size_t>(each)];
    // Without modifiers.
    if (op.run == (op.kind[0] == SourceKind::row ? semantics.quick : semantics.quick_scalar)) return true;
  }
  return false;
}

}  // namespace kiln::simulator

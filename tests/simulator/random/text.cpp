// The text of a random program, in OpenCL C and in GLSL.
#include <map>

#include "tests/simulator/random/tree.hpp"

namespace kiln::simulator::test::drawn {

// What the two languages write differently; the rest of a program is the same text for both.
std::string prelude(Language language) {
  const bool cl = language == Language::opencl;
  std::string text;
  std::vector<Type> types = {Type::u32, Type::i32, Type::u64, Type::i64};
  if (language != Language::opengl) types.insert(types.end(), {Type::u8, Type::i8, Type::u16, Type::i16});
  const auto define = [&](const std::string& head, const std::string& body) {
    text += "#define " + head + " " + body + "\n";
  };
  for (const Type type : types) {
    const std::string t = name_of(type);
    if (cl) {
      const char* names[] = {"", "", "uchar", "char", "ushort", "short", "uint", "int", "ulong", "long"};
      text += std::string("typedef ") + names[static_cast<int>(type)] + " " + t + ";\n";
      for (const char* size : {"2", "4"}) {
        text += "typedef " + t + " " + t + "x" + size + " __attribute__((ext_vector_type(" + size + ")));\n";
      }
      define("make_" + t + "x2(a, b)", "((" + t + "x2)((a), (b)))");
      define("make_" + t + "x4(a, b, c, d)", "((" + t + "x4)((a), (b), (c), (d)))");
    } else {
      const unsigned bits = bits_of(type);
      const std::string sign = is_signed(type) ? "" : "u";
      define(t, sign + "int" + (bits == 32 ? "" : std::to_string(bits) + "_t"));
      const std::string prefix =
          bits == 32 ? (is_signed(type) ? "i" : "u") : (is_signed(type) ? "i" : "u") + std::to_string(bits);
      for (const char* size : {"2", "4"}) define(t + "x" + size, prefix + "vec" + size);
      define("make_" + t + "x2(a, b)", t + "x2((a), (b))");
      define("make_" + t + "x4(a, b, c, d)", t + "x4((a), (b), (c), (d))");
    }
    const std::string wide = bits_of(type) == 64 ? "ulong" : "uint";
    const std::string mask = std::to_string(bits_of(type) - 1) + "u";
    const auto both = [&](const std::string& head, const std::string& opencl, const std::string& glsl) {
      define(head, cl ? "((" + t + ")(" + opencl + "))" : "(" + glsl + ")");
    };
    both("to_" + t + "(a)", "(a)", t + "(a)");
    for (const auto& [name, sign] : std::map<std::string, std::string>{
             {"add", "+"}, {"sub", "-"}, {"mul", "*"}, {"and", "&"}, {"or", "|"}, {"xor", "^"}}) {
      both(name + "_" + t + "(a, b)", "(" + wide + ")(a) " + sign + " (" + wide + ")(b)", "(a) " + sign + " (b)");
    }
    both("not_" + t + "(a)", "~(a)", "~(a)");
    both("neg_" + t + "(a)", "(" + wide + ")0 - (" + wide + ")(a)", "-(a)");
    both("shl_" + t + "(a, n)", "(" + wide + ")(a) << ((n) & " + mask + ")", "(a) << ((n) & " + mask + ")");
    both("shr_" + t + "(a, n)", "(a) >> ((n) & " + mask + ")", "(a) >> ((n) & " + mask + ")");
    // LLVM 15 divides 64 bits as a float of 24 where it knows that they fit in 32. It does not know of this zero.
    const std::string dividend = language == Language::opengl && bits_of(type) == 64
                                     ? "((a) ^ " + t + "(gl_NumWorkGroups.y - 1u) << 62)"
                                     : "(a)";
    both("div_" + t + "(a, b)", "(a) / (b)", dividend + " / (b)");
    both("mod_" + t + "(a, b)", "(a) % (b)", dividend + " % (b)");
    both("min_" + t + "(a, b)", "__builtin_elementwise_min((" + t + ")(a), (" + t + ")(b))", "min((a), (b))");
    both("max_" + t + "(a, b)", "__builtin_elementwise_max((" + t + ")(a), (" + t + ")(b))", "max((a), (b))");
    both("sel_" + t + "(c, a, b)", "(c) ? (a) : (b)", "(c) ? (a) : (b)");
    if (cl) {
      for (const auto& [name, sign] : std::map<std::string, std::string>{{"add", " + "}, {"sub", " - "}}) {
        std::string sum = "__builtin_elementwise_" + name + "_sat((" + t + ")(a), (" + t + ")(b))";
        if (bits_of(type) < 32) {  // the built-in function promotes these to 32 bits
          const unsigned top = (1U << (bits_of(type) - (is_signed(type) ? 1 : 0))) - 1;
          const std::string bottom = is_signed(type) ? "-" + std::to_string(top) + " - 1" : "0";
          sum = "__builtin_elementwise_min(__builtin_elementwise_max((int)(a)" + sign + "(int)(b), " + bottom + "), " +
                std::to_string(top) + ")";
        }
        both(name + "s_" + t + "(a, b)", sum, "");
      }
      if (!is_signed(type)) {
        const std::string size = std::to_string(bits_of(type));
        both("rotl_" + t + "(a, n)", "__builtin_rotateleft" + size + "((a), (" + t + ")(n))", "");
        both("rev_" + t + "(a)", "__builtin_bitreverse" + size + "(a)", "");
      }
    }
  }
  for (const auto& [name, sign] : std::map<std::string, std::string>{{"lt", "<"},
                                                                     {"le", "<="},
                                                                     {"eq", "=="},
                                                                     {"ne", "!="},
                                                                     {"gt", ">"},
                                                                     {"ge", ">="},
                                                                     {"both", "&&"},
                                                                     {"either", "||"}}) {
    define(name + "(a, b)", "((a) " + sign + " (b))");
  }
  define("no(a)", "(!(a))");
  define("one_if(c)", "((c) ? 1u : 0u)");
  if (cl) {
    text += R"(#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL FP_CONTRACT OFF
#define PURE static __attribute__((always_inline))
#define STRUCT struct
#define pop_u32(a) ((u32)__builtin_popcount(a))
#define pop_u64(a) ((u32)__builtin_popcountl(a))
PURE u32 clz_u32(u32 a) { return a == 0 ? 32u : (u32)__builtin_clz(a); }
PURE u32 ctz_u32(u32 a) { return a == 0 ? 32u : (u32)__builtin_ctz(a); }
PURE u32 clz_u64(u64 a) { return a == 0 ? 64u : (u32)__builtin_clzl(a); }
PURE u32 ctz_u64(u64 a) { return a == 0 ? 64u : (u32)__builtin_ctzl(a); }
#define mulhi_u32(a, b) ((u32)((u64)(a) * (u64)(b) >> 32))
#define mulhi_i32(a, b) ((i32)((i64)(a) * (i64)(b) >> 32))
PURE u64 mulhi_u64(u64 a, u64 b) { return (u64)((unsigned __int128)a * b >> 64); }
#define bfe_u32(a, o, n) __builtin_amdgcn_ubfe((a), (o) & 15u, (n) & 15u)
#define bfe_i32(a, o, n) ((i32)__builtin_amdgcn_sbfe((u32)(a), (o) & 15u, (n) & 15u))
PURE u32 bfi_u32(u32 a, u32 b, u32 o, u32 n) {
  u32 mask = ((1u << (n & 15u)) - 1u) << (o & 15u);
  return (a & ~mask) | (b << (o & 15u) & mask);
}
#define alignbit(a, b, n) __builtin_amdgcn_alignbit((a), (b), (n) & 31u)
#define alignbyte(a, b, n) __builtin_amdgcn_alignbyte((a), (b), (n) & 3u)
#define perm(a, b, s) __builtin_amdgcn_perm((a), (b), (s) & 0x07070707u)
#define sad_u8(a, b, c) __builtin_amdgcn_sad_u8((a), (b), (c))
#define mad_u24(a, b, c) ((u32)(((a) & 0xFFFFFFu) * ((b) & 0xFFFFFFu) + (c)))
PURE i32 mul_i24(i32 a, i32 b) { return (i32)((u32)((i32)((u32)a << 8) >> 8) * (u32)((i32)((u32)b << 8) >> 8)); }
#define udot4(a, b, c) __builtin_amdgcn_udot4((a), (b), (c), false)
#define small_fma(a, b, c) ((i32)__builtin_fmaf((float)(i32)((a) & 0xFFFu), (float)((b) & 2047), (float)((c) >> 9)))
#define small_fma64(a, b, c) ((i64)__builtin_fma((double)((a) & 0x3FFFFFFu), (double)((b) & 0x3FFFFFF), (double)((c) >> 12)))
#define eighths_floor(a) ((i32)__builtin_floorf((float)((a) >> 8) * 0.125f))
#define eighths_ceil(a) ((i32)__builtin_ceilf((float)((a) >> 8) * 0.125f))
#define eighths_even(a) ((i32)__builtin_rintf((float)((a) >> 8) * 0.125f))
#define eighths_trunc(a) ((i32)((float)((a) >> 8) * 0.125f))
#define float_lt(a, b) ((float)((a) >> 8) * 0.5f < (float)((b) >> 8) * 0.25f)
PURE u32 bits_of_float(float r) { return r != r ? 0x7FC00000u : __builtin_bit_cast(u32, r); }
PURE u64 bits_of_double(double r) { return r != r ? 0x7FF8000000000000ul : __builtin_bit_cast(u64, r); }
#define F(a) __builtin_bit_cast(float, (u32)(a))
#define D(a) __builtin_bit_cast(double, (u64)(a))
#define add_f32(a, b) bits_of_float(F(a) + F(b))
#define mul_f32(a, b) bits_of_float(F(a) * F(b))
#define fma_f32(a, b, c) bits_of_float(__builtin_fmaf(F(a), F(b), F(c)))
#define add_f64(a, b) bits_of_double(D(a) + D(b))
#define mul_f64(a, b) bits_of_double(D(a) * D(b))
#define fma_f64(a, b, c) bits_of_double(__builtin_fma(D(a), D(b), D(c)))
#define f32_of_f64(a) bits_of_float((float)D(a))
#define f64_of_f32(a) bits_of_double((double)F(a))
#define f32_of_u32(a) bits_of_float((float)(a))
#define f32_of_i32(a) bits_of_float((float)(a))
#define f32_of_u64(a) bits_of_float((float)(a))
#define f32_of_i64(a) bits_of_float((float)(a))
#define f64_of_u64(a) bits_of_double((double)(a))
#define f64_of_i64(a) bits_of_double((double)(a))
#define half_small(a, b, c) ((u32)((half)(u16)((a) & 31u) * (half)(u16)((b) & 31u) + (half)(u16)((c) & 255u)))
#define LOCAL_ID __builtin_amdgcn_workitem_id_x()
#define GROUP_ID __builtin_amdgcn_workgroup_id_x()
#define LANE __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u))
#define AS_ATOMIC(space, type, p) ((space volatile atomic_##type*)&(p))
#define ATOMIC(name, space, type, p, v) \
  __opencl_atomic_##name(AS_ATOMIC(space, type, p), (v), __ATOMIC_RELAXED, memory_scope_device)
#define atomic_add_local(p, v) ATOMIC(fetch_add, __local, uint, p, v)
#define atomic_sub_local(p, v) ATOMIC(fetch_sub, __local, uint, p, v)
#define atomic_min_local(p, v) ATOMIC(fetch_min, __local, uint, p, v)
#define atomic_max_local(p, v) ATOMIC(fetch_max, __local, uint, p, v)
#define atomic_and_local(p, v) ATOMIC(fetch_and, __local, uint, p, v)
#define atomic_or_local(p, v) ATOMIC(fetch_or, __local, uint, p, v)
#define atomic_xor_local(p, v) ATOMIC(fetch_xor, __local, uint, p, v)
#define atomic_swap_local(p, v) ATOMIC(exchange, __local, uint, p, v)
#define atomic_add_global(p, v) ATOMIC(fetch_add, __global, uint, p, v)
#define atomic_max_global(p, v) ATOMIC(fetch_max, __global, uint, p, v)
#define atomic_or_global(p, v) ATOMIC(fetch_or, __global, uint, p, v)
#define atomic_xor_global(p, v) ATOMIC(fetch_xor, __global, uint, p, v)
#define atomic_add_wide(p, v) ATOMIC(fetch_add, __global, ulong, p, v)
#define atomic_max_wide(p, v) ATOMIC(fetch_max, __global, ulong, p, v)
#define atomic_or_wide(p, v) ATOMIC(fetch_or, __global, ulong, p, v)
#define atomic_xor_wide(p, v) ATOMIC(fetch_xor, __global, ulong, p, v)
PURE void meet(void) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
#if __AMDGCN_WAVEFRONT_SIZE__ == 64
#define ballot(c) ((u64)__builtin_amdgcn_ballot_w64(c))
#else
#define ballot(c) ((u64)__builtin_amdgcn_ballot_w32(c))
#endif
#define first_lane(a) ((u32)__builtin_amdgcn_readfirstlane((i32)(a)))
#define other_lane(a, at) ((u32)__builtin_amdgcn_ds_bpermute((i32)((LANE & 32u | (at) & 31u) << 2), (i32)(a)))
#define moved(old, a, control, rows, banks, bound) \
  ((u32)__builtin_amdgcn_update_dpp((i32)(old), (i32)(a), control, rows, banks, bound))
#define count_below(m, b) __builtin_amdgcn_mbcnt_hi((u32)((m) >> 32), __builtin_amdgcn_mbcnt_lo((u32)(m), (b)))
#define swizzled(a, pattern) ((u32)__builtin_amdgcn_ds_swizzle((i32)(a), pattern))
#define permuted16(a, low, high) __builtin_amdgcn_permlane16(0u, (a), low, high, false, false)
#define permuted_other(a, low, high) __builtin_amdgcn_permlanex16(0u, (a), low, high, false, false)
)";
  } else {
    text += R"(#define STRUCT
#define pop_u32(a) uint(bitCount(a))
#define clz_u32(a) uint(31 - findMSB(a))
uint ctz_u32(uint a) { return a == 0u ? 32u : uint(findLSB(a)); }
#define rev_u32(a) bitfieldReverse(a)
uint rotl_u32(uint a, uint n) { return a << (n & 31u) | a >> (32u - n & 31u); }
uint mulhi_u32(uint a, uint b) { uint high, low; umulExtended(a, b, high, low); return high; }
int mulhi_i32(int a, int b) { int high, low; imulExtended(a, b, high, low); return high; }
#define bfe_u32(a, o, n) bitfieldExtract((a), int((o) & 15u), int((n) & 15u))
#define bfe_i32(a, o, n) bitfieldExtract((a), int((o) & 15u), int((n) & 15u))
#define bfi_u32(a, b, o, n) bitfieldInsert((a), (b), int((o) & 15u), int((n) & 15u))
#define small_fma(a, b, c) int(fma(float((a) & 0xFFFu), float((b) & 2047), float((c) >> 9)))
#define eighths_floor(a) int(floor(float((a) >> 8) * 0.125))
#define eighths_ceil(a) int(ceil(float((a) >> 8) * 0.125))
#define eighths_even(a) int(roundEven(float((a) >> 8) * 0.125))
#define eighths_trunc(a) int(float((a) >> 8) * 0.125)
#define float_lt(a, b) (float((a) >> 8) * 0.5 < float((b) >> 8) * 0.25)
#define LOCAL_ID gl_LocalInvocationID.x
#define GROUP_ID gl_WorkGroupID.x
#define atomic_add_local(p, v) atomicAdd(p, v)
#define atomic_min_local(p, v) atomicMin(p, v)
#define atomic_max_local(p, v) atomicMax(p, v)
#define atomic_and_local(p, v) atomicAnd(p, v)
#define atomic_or_local(p, v) atomicOr(p, v)
#define atomic_xor_local(p, v) atomicXor(p, v)
#define atomic_swap_local(p, v) atomicExchange(p, v)
#define atomic_add_global(p, v) atomicAdd(p, v)
#define atomic_max_global(p, v) atomicMax(p, v)
#define atomic_or_global(p, v) atomicOr(p, v)
#define atomic_xor_global(p, v) atomicXor(p, v)
#define atomic_add_wide(p, v) atomicAdd(p, v)
#define atomic_max_wide(p, v) atomicMax(p, v)
#define atomic_or_wide(p, v) atomicOr(p, v)
#define atomic_xor_wide(p, v) atomicXor(p, v)
)";
    if (language == Language::vulkan) {
      text += R"(#define ballot(c) packUint2x32(subgroupBallot(c).xy)
#define first_lane(a) subgroupBroadcastFirst(a)
#define other_lane(a, at) subgroupShuffle((a), gl_SubgroupInvocationID & 32u | (at) & 31u)
)";
    }
  }
  return text;
}

std::string printed(const std::vector<Statement>& list, unsigned indent) {
  std::string result;
  const std::string space(indent * 2, ' ');
  for (const Statement& s : list) {
    switch (s.kind) {
      case Statement::Kind::branch:
        result += space + "if (" + s.condition->text + ") {\n" + printed(s.body, indent + 1) + space + "}";
        if (!s.otherwise.empty()) result += " else {\n" + printed(s.otherwise, indent + 1) + space + "}";
        result += "\n";
        break;
      case Statement::Kind::loop:
        result += space + s.text + "\n" + printed(s.body, indent + 1) + space + s.after + "\n";
        break;
      case Statement::Kind::choose: {
        result += space + "switch (" + s.value->text + ") {\n";
        for (std::size_t i = 0; i < s.labels.size(); ++i) {
          const std::size_t end = i + 1 < s.labels.size() ? s.labels[i + 1].second : s.body.size();
          result += space + (s.labels[i].first == ~U64{0} ? "default:\n"
                                                          : "case " + std::to_string(s.labels[i].first) + "u:\n");
          result += printed({s.body.begin() + static_cast<std::ptrdiff_t>(s.labels[i].second),
                             s.body.begin() + static_cast<std::ptrdiff_t>(end)},
                            indent + 1);
        }
        result += space + "}\n";
        break;
      }
      case Statement::Kind::leave_loop:
        result += space + "break;\n";
        break;
      case Statement::Kind::next_round:
        result += space + "continue;\n";
        break;
      case Statement::Kind::barrier:
        result += space + "meet();\n";
        break;
      default:
        result += space + s.text + "\n";
    }
  }
  return result;
}

}  // namespace kiln::simulator::test::drawn

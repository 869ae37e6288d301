#include "tests/simulator/random_program.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <stdexcept>
#include <utility>

namespace kiln::simulator::test {
namespace {

using U64 = std::uint64_t;
__extension__ using Wide = __int128;
__extension__ using UnsignedWide = unsigned __int128;
using Language = RandomProgram::Language;

enum class Type : std::uint8_t { invalid = 0, truth, u8, i8, u16, i16, u32, i32, u64, i64 };

unsigned bits_of(Type type) {
  switch (type) {
    case Type::truth:
      return 1;
    case Type::u8:
    case Type::i8:
      return 8;
    case Type::u16:
    case Type::i16:
      return 16;
    case Type::u64:
    case Type::i64:
      return 64;
    default:
      return 32;
  }
}
bool is_signed(Type type) { return type == Type::i8 || type == Type::i16 || type == Type::i32 || type == Type::i64; }
Type unsigned_of(Type type) { return is_signed(type) ? static_cast<Type>(static_cast<int>(type) - 1) : type; }
Type signed_of(Type type) { return is_signed(type) ? type : static_cast<Type>(static_cast<int>(type) + 1); }
std::string name_of(Type type) { return (is_signed(type) ? "i" : "u") + std::to_string(bits_of(type)); }
// A value of the type, extended to 64 bits by its sign, or by zeros.
U64 wrapped(Type type, U64 value) {
  const unsigned bits = bits_of(type);
  if (bits == 64) return value;
  value &= (U64{1} << bits) - 1;
  if (is_signed(type) && (value >> (bits - 1) & 1) != 0) value |= ~U64{0} << bits;
  return value;
}

enum class Space : std::uint8_t { invalid = 0, own, shared, given, words, table };

struct Expression;
using E = std::shared_ptr<const Expression>;

struct Index {
  E at;
  unsigned count;
  unsigned stride;
};

struct Place {
  Space space = Space::invalid;
  Type type = Type::invalid;
  unsigned base = 0;
  unsigned a_thread = 0;  // slots of each thread, in memory that threads share
  std::vector<Index> indices;
  std::string text;
};

struct Function;

struct Expression {
  enum class Kind : std::uint8_t { invalid = 0, constant, read, operation, call };
  Kind kind = Kind::invalid;
  Type type = Type::invalid;
  U64 value = 0;
  Place place;
  std::vector<E> operands;
  std::function<U64(const U64*)> compute;
  const Function* function = nullptr;
  std::string text;
};

struct Statement {
  enum class Kind : std::uint8_t {
    invalid = 0,
    assign,
    update,  // an atomic on `to`; what was there goes into `old`, if that is given
    branch,
    loop,
    choose,
    leave_loop,  // or a switch
    next_round,
    finish,  // a function, with a value
    call,    // with the first argument by reference
    vector,
    barrier,
    lanes  // an operation on the lanes of a wave
  };
  Kind kind = Kind::invalid;
  std::string text;   // of a simple statement
  std::string after;  // of a loop: its last line
  Place to, old;
  E value, condition;
  std::vector<E> arguments;
  const Function* function = nullptr;
  std::vector<Statement> body, otherwise;
  std::vector<std::pair<U64, std::size_t>> labels;  // value, place in body
  unsigned slot = 0;
  bool first_round_always = false;
  std::function<U64(U64, U64)> combine;                         // old, value
  std::array<unsigned, 4> left{}, right{};                      // slots of a vector's lanes
  std::function<U64(const std::vector<U64>&, unsigned)> lanes;  // values of the active lanes by lane, own lane
};

struct Function {
  std::string name;
  Type type = Type::invalid;
  std::vector<std::pair<Type, unsigned>> parameters;  // type, slot
  bool by_reference = false;                          // the first one
  std::vector<Statement> body;
  unsigned cost = 0;
};

// A variable of the program, with the ways to name one of its parts.
struct Field {
  std::string suffix;  // with "#" for an index
  Type type;
  unsigned offset;
  unsigned count;  // 1: no index
};
struct Variable {
  std::string name;
  Space space = Space::own;
  unsigned base = 0;
  unsigned count = 1, stride = 1;  // of an array's elements; 1: none
  std::vector<Field> fields;
  bool writable = true;
  unsigned a_thread = 0;
};
struct Vector {
  std::string name;
  Type type;
  unsigned base;
  unsigned size;
};

float float_of(U64 bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits)); }
U64 canonical(float value) { return value != value ? 0x7FC00000U : std::bit_cast<std::uint32_t>(value); }
double double_of(U64 bits) { return std::bit_cast<double>(bits); }
U64 canonical(double value) { return value != value ? 0x7FF8000000000000U : std::bit_cast<U64>(value); }

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
    both("div_" + t + "(a, b)", "(a) / (b)", "(a) / (b)");
    both("mod_" + t + "(a, b)", "(a) % (b)", "(a) % (b)");
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

constexpr unsigned first_result = 4;  // of a thread's words; those before it are the program's to use

class Generator {
 public:
  Generator(Language language, U64 seed) : language_(language), random_(seed * 4 + static_cast<U64>(language)) {
    types_ = {Type::u32, Type::i32, Type::u32, Type::i32, Type::u64, Type::i64};
    if (language != Language::opengl) types_.insert(types_.end(), {Type::u8, Type::i8, Type::u16, Type::i16});
  }

  void generate();

  // The program.
  std::string text;
  std::vector<Statement> main;
  std::vector<std::unique_ptr<Function>> functions;
  std::vector<Variable> outputs;
  std::vector<U64> table;
  struct Result {
    std::string name;
    unsigned slot;
    bool high;  // the upper word of 64 bits
  };
  std::vector<Result> results;  // the words of a thread, from the fourth on
  unsigned own_slots = 0, shared_slots = 0, word_slots = 0;
  unsigned threads = 64, groups = 2, lane_slot = 0, local_slot = 0;

 private:
  bool cl() const { return language_ == Language::opencl; }
  unsigned draw(unsigned count) { return static_cast<unsigned>(random_() % count); }
  bool chance(unsigned percent) { return draw(100) < percent; }
  Type any_type() { return types_[draw(static_cast<unsigned>(types_.size()))]; }
  std::string fresh(const char* prefix) { return prefix + std::to_string(names_++); }

  static E constant(Type type, U64 value) {
    auto e = std::make_shared<Expression>();
    e->kind = Expression::Kind::constant;
    e->type = type;
    e->value = wrapped(type, value);
    const unsigned bits = bits_of(type);
    const U64 shown = bits == 64 ? value : e->value & ((U64{1} << bits) - 1);
    e->text = std::to_string(shown) + (bits == 64 ? "ul" : "u");
    if (type != Type::u32 && type != Type::u64) e->text = "to_" + name_of(type) + "(" + e->text + ")";
    return e;
  }
  static E operation(Type type, const std::string& name, std::vector<E> operands,
                     std::function<U64(const U64*)> compute) {
    auto e = std::make_shared<Expression>();
    e->kind = Expression::Kind::operation;
    e->type = type;
    e->compute = [type, compute = std::move(compute)](const U64* v) { return wrapped(type, compute(v)); };
    e->text = name + "(";
    for (std::size_t i = 0; i < operands.size(); ++i) e->text += (i == 0 ? "" : ", ") + operands[i]->text;
    e->text += ")";
    e->operands = std::move(operands);
    return e;
  }
  static E typed(Type type, const std::string& name, std::vector<E> operands, std::function<U64(const U64*)> compute) {
    return operation(type, name + "_" + name_of(type), std::move(operands), std::move(compute));
  }
  static E read(const Place& place) {
    auto e = std::make_shared<Expression>();
    e->kind = Expression::Kind::read;
    e->type = place.type;
    e->place = place;
    e->text = place.text;
    return e;
  }
  E cast(Type type, const E& value) {
    if (value->type == type) return value;
    // A negative number is extended by its sign first: languages differ in how far a conversion to unsigned does so.
    if (is_signed(value->type) && !is_signed(type) && bits_of(type) > bits_of(value->type)) {
      return cast(type, cast(signed_of(type), value));
    }
    return operation(type, "to_" + name_of(type), {value}, [](const U64* v) { return v[0]; });
  }

  Place place_of(const Variable& variable, Type wanted);
  E leaf(Type type);
  E expression(Type type, unsigned depth);
  E condition(unsigned depth);
  E any_value(unsigned depth) { return expression(any_type(), depth); }
  E as(Type type, unsigned depth) { return expression(type, depth); }
  E call_of(const Function& function, unsigned depth);
  E special(Type type, unsigned depth);

  void statements(std::vector<Statement>& into, unsigned count, unsigned depth, unsigned weight, bool in_loop,
                  const Function* function);
  void statement(std::vector<Statement>& into, unsigned depth, unsigned weight, bool in_loop, const Function* function);
  void vector_statement(std::vector<Statement>& into);
  void lanes_statement(std::vector<Statement>& into);
  void atomic_statement(std::vector<Statement>& into);
  Statement assign(const Place& to, E value) {
    Statement s;
    s.kind = Statement::Kind::assign;
    s.value = cast(to.type, std::move(value));
    s.text = to.text + " = " + s.value->text + ";";
    s.to = to;
    return s;
  }
  template <class Use>
  static void each_part(const Variable& variable, const Use& use) {
    for (unsigned element = 0; element < variable.count; ++element) {
      const std::string name = variable.name + (variable.count > 1 ? "[" + std::to_string(element) + "]" : "");
      const unsigned slot = variable.base + element * variable.stride;
      for (const Field& field : variable.fields) {
        const std::size_t mark = field.suffix.find('#');
        if (field.suffix == "[#]") continue;  // a vector's lanes, which have names too
        for (unsigned part = 0; part < field.count; ++part) {
          const std::string suffix = mark == std::string::npos ? field.suffix
                                                               : field.suffix.substr(0, mark) + std::to_string(part) +
                                                                     field.suffix.substr(mark + 1);
          use(name + suffix, slot + field.offset + part, field.type);
        }
      }
    }
  }
  void add_results(const Variable& variable);
  void declare(const Variable& variable, const std::string& type_text, std::vector<Statement>& into, std::string& text);
  void make_function();
  void make_main();
  std::string printed(const std::vector<Statement>& list, unsigned indent) const;

  Variable scalar(Type type, const std::string& name) {
    Variable v;
    v.name = name;
    v.base = own_slots++;
    v.fields = {{"", type, 0, 1}};
    return v;
  }
  Place whole(const Variable& v) const {
    Place place;
    place.space = v.space;
    place.type = v.fields[0].type;
    place.base = v.base;
    place.text = v.name;
    return place;
  }

  Language language_;
  std::mt19937_64 random_;
  std::vector<Type> types_;
  std::vector<Variable> visible_;
  std::vector<Vector> vectors_;
  std::vector<Variable> shared_;
  enum class SharedUse : std::uint8_t { invalid = 0, none, own, all, atomic };
  std::vector<SharedUse> shared_use_;
  std::vector<std::string> shared_atomic_;
  std::string text_of_types_, text_of_functions_, text_of_shared_, text_of_table_;
  unsigned names_ = 0;
  unsigned cost_ = 0;
  unsigned weight_ = 1;
  unsigned limit_ = 1500;
  bool calls_allowed_ = true;
};

Place Generator::place_of(const Variable& variable, Type wanted) {
  std::vector<const Field*> fitting;
  for (const Field& field : variable.fields) {
    if (wanted == Type::invalid || field.type == wanted) fitting.push_back(&field);
  }
  const Field& field = fitting.empty() ? variable.fields[draw(static_cast<unsigned>(variable.fields.size()))]
                                       : *fitting[draw(static_cast<unsigned>(fitting.size()))];
  Place place;
  place.space = variable.space;
  place.type = field.type;
  place.base = variable.base + field.offset;
  place.text = variable.name;
  const auto index = [&](unsigned count, unsigned stride) {
    E at = chance(30) ? constant(Type::u32, draw(count)) : expression(Type::u32, chance(70) ? 0 : 1);
    place.indices.push_back({at, count, stride});
    return "(" + at->text + ") % " + std::to_string(count) + "u";
  };
  if (variable.a_thread != 0) {
    place.a_thread = variable.a_thread;
    const std::string thread = variable.space == Space::words ? "id" : "local_id";
    place.text += "[" + thread + " * " + std::to_string(variable.a_thread) + "u + " + index(variable.count, 1) + "]";
  } else if (variable.count > 1) {
    place.text += "[" + index(variable.count, variable.stride) + "]";
  }
  const std::size_t mark = field.suffix.find('#');
  if (mark == std::string::npos) {
    place.text += field.suffix;
  } else {
    place.text += field.suffix.substr(0, mark) + index(field.count, 1) + field.suffix.substr(mark + 1);
  }
  return place;
}

E Generator::leaf(Type type) {
  if (chance(25)) {
    const U64 values[] = {0,      1,      2,          7,          31,      0x7F,          0x80,     0xFF,
                          0x7FFF, 0x8000, 0x7FFFFFFF, 0x80000000, ~U64{0}, U64{1} << 63U, random_()};
    return constant(type, values[draw(std::size(values))]);
  }
  for (unsigned attempt = 0; attempt < 6; ++attempt) {
    const Variable& variable = visible_[draw(static_cast<unsigned>(visible_.size()))];
    // An index is an expression of its own; a chain of them must end.
    if (attempt < 5 && (variable.count > 1 || variable.a_thread != 0) && chance(60)) continue;
    return cast(type, read(place_of(variable, type)));
  }
  return constant(type, draw(100));
}

E Generator::call_of(const Function& function, unsigned depth) {
  auto e = std::make_shared<Expression>();
  e->kind = Expression::Kind::call;
  e->type = function.type;
  e->function = &function;
  e->text = function.name + "(";
  for (std::size_t i = 0; i < function.parameters.size(); ++i) {
    e->operands.push_back(as(function.parameters[i].first, depth > 0 ? depth - 1 : 0));
    e->text += (i == 0 ? "" : ", ") + e->operands.back()->text;
  }
  e->text += ")";
  cost_ += function.cost * weight_;
  return e;
}

// Built-in functions, by the type of their result; null: none was drawn.
E Generator::special(Type type, unsigned depth) {
  const auto u32 = [&] { return as(Type::u32, depth); };
  const auto i32 = [&] { return as(Type::i32, depth); };
  const auto u64 = [&] { return as(Type::u64, depth); };
  const auto i64 = [&] { return as(Type::i64, depth); };
  const unsigned bits = bits_of(type);
  if (cl() && chance(25)) {
    const bool adds = chance(50);
    return typed(type, adds ? "adds" : "subs", {as(type, depth), as(type, depth)}, [=](const U64* v) -> U64 {
      const auto wide = [&](U64 x) {
        return is_signed(type) ? Wide{static_cast<std::int64_t>(x)} : static_cast<Wide>(x);
      };
      const Wide sum = adds ? wide(v[0]) + wide(v[1]) : wide(v[0]) - wide(v[1]);
      const Wide top = is_signed(type) ? (Wide{1} << (bits - 1)) - 1 : (Wide{1} << bits) - 1;
      const Wide bottom = is_signed(type) ? -top - 1 : Wide{0};
      return static_cast<U64>(std::clamp(sum, bottom, top));
    });
  }
  const auto rotate = [bits](U64 a, U64 n) {
    n %= bits;
    return n == 0 ? a : a << n | a >> (bits - n);
  };
  const auto reverse = [bits](U64 a) {
    U64 r = 0;
    for (unsigned i = 0; i < bits; ++i) r |= (a >> i & 1) << (bits - 1 - i);
    return r;
  };
  if (!is_signed(type) && (cl() || type == Type::u32) && chance(30)) {
    if (chance(50)) return typed(type, "rev", {as(type, depth)}, [=](const U64* v) { return reverse(v[0]); });
    return typed(type, "rotl", {as(type, depth), u32()}, [=](const U64* v) { return rotate(v[0], v[1]); });
  }
  if (type == Type::u32) {
    const auto field = [](U64 o, U64 n) { return ((U64{1} << (n & 15)) - 1) << (o & 15); };
    switch (draw(cl() ? 26 : 8)) {
      case 0:
        return typed(type, "pop", {u32()}, [](const U64* v) -> U64 { return std::popcount(v[0]); });
      case 1:
        return typed(type, "clz", {u32()}, [](const U64* v) -> U64 { return std::countl_zero(v[0]) - 32; });
      case 2:
        return typed(type, "ctz", {u32()}, [](const U64* v) -> U64 { return std::min(std::countr_zero(v[0]), 32); });
      case 3:
        return typed(type, "mulhi", {u32(), u32()}, [](const U64* v) { return v[0] * v[1] >> 32; });
      case 4:
        return typed(type, "bfe", {u32(), u32(), u32()},
                     [=](const U64* v) { return (v[0] & field(v[1], v[2])) >> (v[1] & 15); });
      case 5:
        return typed(type, "bfi", {u32(), u32(), u32(), u32()}, [=](const U64* v) {
          const U64 mask = field(v[2], v[3]);
          return (v[0] & ~mask) | (v[1] << (v[2] & 15) & mask);
        });
      case 6:
      case 7:
        return operation(type, "one_if", {condition(depth)}, [](const U64* v) { return v[0]; });
      case 8:
        return operation(type, "pop_u64", {u64()}, [](const U64* v) -> U64 { return std::popcount(v[0]); });
      case 9:
        return operation(type, "clz_u64", {u64()}, [](const U64* v) -> U64 { return std::countl_zero(v[0]); });
      case 10:
        return operation(type, "ctz_u64", {u64()}, [](const U64* v) -> U64 { return std::countr_zero(v[0]); });
      case 11:
        return operation(type, "alignbit", {u32(), u32(), u32()},
                         [](const U64* v) { return (v[0] << 32 | v[1]) >> (v[2] & 31); });
      case 12:
        return operation(type, "alignbyte", {u32(), u32(), u32()},
                         [](const U64* v) { return (v[0] << 32 | v[1]) >> (v[2] & 3) * 8; });
      case 13:
        return operation(type, "perm", {u32(), u32(), u32()}, [](const U64* v) {
          const U64 both = v[0] << 32 | v[1];
          U64 r = 0;
          for (unsigned i = 0; i < 4; ++i) r |= (both >> (v[2] >> i * 8 & 7) * 8 & 0xFF) << i * 8;
          return r;
        });
      case 14:
        return operation(type, "sad_u8", {u32(), u32(), u32()}, [](const U64* v) {
          U64 r = v[2];
          for (unsigned i = 0; i < 32; i += 8) {
            const U64 a = v[0] >> i & 0xFF, b = v[1] >> i & 0xFF;
            r += a > b ? a - b : b - a;
          }
          return r;
        });
      case 15:
        return operation(type, "mad_u24", {u32(), u32(), u32()},
                         [](const U64* v) { return (v[0] & 0xFFFFFF) * (v[1] & 0xFFFFFF) + v[2]; });
      case 16:
        return operation(type, "udot4", {u32(), u32(), u32()}, [](const U64* v) {
          U64 r = v[2];
          for (unsigned i = 0; i < 32; i += 8) r += (v[0] >> i & 0xFF) * (v[1] >> i & 0xFF);
          return r;
        });
      case 17:
        return operation(type, "add_f32", {u32(), u32()},
                         [](const U64* v) { return canonical(float_of(v[0]) + float_of(v[1])); });
      case 18:
        return operation(type, "mul_f32", {u32(), u32()},
                         [](const U64* v) { return canonical(float_of(v[0]) * float_of(v[1])); });
      case 19:
        return operation(type, "fma_f32", {u32(), u32(), u32()}, [](const U64* v) {
          return canonical(std::fma(float_of(v[0]), float_of(v[1]), float_of(v[2])));
        });
      case 20:
        return operation(type, "f32_of_f64", {u64()},
                         [](const U64* v) { return canonical(static_cast<float>(double_of(v[0]))); });
      case 21:
        return operation(type, "f32_of_u32", {u32()}, [](const U64* v) { return canonical(static_cast<float>(v[0])); });
      case 22:
        return operation(type, "f32_of_i32", {i32()},
                         [](const U64* v) { return canonical(static_cast<float>(static_cast<std::int64_t>(v[0]))); });
      case 23:
        return operation(type, "f32_of_u64", {u64()}, [](const U64* v) { return canonical(static_cast<float>(v[0])); });
      case 24:
        return operation(type, "f32_of_i64", {i64()},
                         [](const U64* v) { return canonical(static_cast<float>(static_cast<std::int64_t>(v[0]))); });
      default:
        return operation(type, "half_small", {u32(), u32(), u32()},
                         [](const U64* v) { return (v[0] & 31) * (v[1] & 31) + (v[2] & 255); });
    }
  }
  if (type == Type::i32) {
    const auto eighths = [](const U64* v) { return static_cast<double>(static_cast<std::int64_t>(v[0]) >> 8) * 0.125; };
    const auto whole = [](double value) { return static_cast<U64>(static_cast<std::int64_t>(value)); };
    switch (draw(cl() ? 8 : 7)) {
      case 0:
        return typed(type, "mulhi", {i32(), i32()}, [](const U64* v) {
          return static_cast<U64>(static_cast<std::int64_t>(v[0]) * static_cast<std::int64_t>(v[1]) >> 32);
        });
      case 1:
        return typed(type, "bfe", {i32(), u32(), u32()}, [](const U64* v) -> U64 {
          const unsigned n = v[2] & 15;
          if (n == 0) return 0;
          return static_cast<U64>(static_cast<std::int64_t>(v[0] << (64 - n - (v[1] & 15))) >> (64 - n));
        });
      case 2:
        return operation(type, "small_fma", {u32(), i32(), i32()}, [](const U64* v) {
          return (v[0] & 0xFFF) * (v[1] & 2047) + static_cast<U64>(static_cast<std::int64_t>(v[2]) >> 9);
        });
      case 3:
        return operation(type, "eighths_floor", {i32()}, [=](const U64* v) { return whole(std::floor(eighths(v))); });
      case 4:
        return operation(type, "eighths_ceil", {i32()}, [=](const U64* v) { return whole(std::ceil(eighths(v))); });
      case 5:
        return operation(type, "eighths_even", {i32()},
                         [=](const U64* v) { return whole(std::nearbyint(eighths(v))); });
      case 6:
        return operation(type, "eighths_trunc", {i32()}, [=](const U64* v) { return whole(std::trunc(eighths(v))); });
      default:
        return operation(type, "mul_i24", {i32(), i32()}, [](const U64* v) {
          const auto low = [](U64 x) { return static_cast<std::int64_t>(x << 40) >> 40; };
          return static_cast<U64>(low(v[0]) * low(v[1]));
        });
    }
  }
  if (cl() && type == Type::u64) {
    switch (draw(7)) {
      case 0:
        return typed(type, "mulhi", {u64(), u64()},
                     [](const U64* v) { return static_cast<U64>(static_cast<UnsignedWide>(v[0]) * v[1] >> 64); });
      case 1:
        return operation(type, "add_f64", {u64(), u64()},
                         [](const U64* v) { return canonical(double_of(v[0]) + double_of(v[1])); });
      case 2:
        return operation(type, "mul_f64", {u64(), u64()},
                         [](const U64* v) { return canonical(double_of(v[0]) * double_of(v[1])); });
      case 3:
        return operation(type, "fma_f64", {u64(), u64(), u64()}, [](const U64* v) {
          return canonical(std::fma(double_of(v[0]), double_of(v[1]), double_of(v[2])));
        });
      case 4:
        return operation(type, "f64_of_f32", {u32()},
                         [](const U64* v) { return canonical(static_cast<double>(float_of(v[0]))); });
      case 5:
        return operation(type, "f64_of_u64", {u64()},
                         [](const U64* v) { return canonical(static_cast<double>(v[0])); });
      default:
        return operation(type, "f64_of_i64", {i64()},
                         [](const U64* v) { return canonical(static_cast<double>(static_cast<std::int64_t>(v[0]))); });
    }
  }
  if (cl() && type == Type::i64) {
    return operation(type, "small_fma64", {u32(), i32(), i64()}, [](const U64* v) {
      return (v[0] & 0x3FFFFFF) * (v[1] & 0x3FFFFFF) + static_cast<U64>(static_cast<std::int64_t>(v[2]) >> 12);
    });
  }
  return nullptr;
}

E Generator::expression(Type type, unsigned depth) {
  if (depth == 0) return leaf(type);
  --depth;
  ++cost_;
  if (chance(20)) return cast(type, any_value(depth));
  if (chance(25)) {
    if (E e = special(type, depth)) return e;
  }
  if (calls_allowed_ && !functions.empty() && chance(8)) {
    const Function& function = *functions[draw(static_cast<unsigned>(functions.size()))];
    if (!function.by_reference && function.cost * weight_ + cost_ < limit_) return cast(type, call_of(function, depth));
  }
  const auto a = [&] { return as(type, depth); };
  const unsigned mask = bits_of(type) - 1;
  const bool negative = is_signed(type);
  switch (draw(16)) {
    case 0:
    case 1:
      return typed(type, "add", {a(), a()}, [](const U64* v) { return v[0] + v[1]; });
    case 2:
      return typed(type, "sub", {a(), a()}, [](const U64* v) { return v[0] - v[1]; });
    case 3:
    case 4:
      return typed(type, "mul", {a(), a()}, [](const U64* v) { return v[0] * v[1]; });
    case 5:
      return typed(type, "and", {a(), a()}, [](const U64* v) { return v[0] & v[1]; });
    case 6:
      return typed(type, "or", {a(), a()}, [](const U64* v) { return v[0] | v[1]; });
    case 7:
      return typed(type, "xor", {a(), a()}, [](const U64* v) { return v[0] ^ v[1]; });
    case 8:
      return typed(type, "shl", {a(), as(Type::u32, depth)}, [=](const U64* v) { return v[0] << (v[1] & mask); });
    case 9:
      return typed(type, "shr", {a(), as(Type::u32, depth)}, [=](const U64* v) {
        const auto n = static_cast<unsigned>(v[1] & mask);
        return negative ? static_cast<U64>(static_cast<std::int64_t>(v[0]) >> n) : v[0] >> n;
      });
    case 10: {
      // Positive, so that no quotient overflows.
      const U64 keep = chance(50) ? 0x7F : (U64{1} << (mask - 1)) | 0x3F;
      const E divisor =
          typed(type, "or",
                {typed(type, "and", {a(), constant(type, keep)}, [](const U64* v) { return v[0] & v[1]; }),
                 constant(type, 1)},
                [](const U64* v) { return v[0] | v[1]; });
      // Nor negative as a signed number: LLVM 19 divides wrongly where it sees 32 equal bits in the dividend.
      const E dividend = negative ? a()
                                  : typed(type, "and", {a(), constant(type, (U64{1} << mask) - 1)},
                                          [](const U64* v) { return v[0] & v[1]; });
      // GLSL leaves the rest of a negative number undefined.
      if (chance(50) || (negative && !cl())) {
        return typed(type, "div", {dividend, divisor}, [=](const U64* v) {
          return negative ? static_cast<U64>(static_cast<std::int64_t>(v[0]) / static_cast<std::int64_t>(v[1]))
                          : v[0] / v[1];
        });
      }
      return typed(type, "mod", {dividend, divisor}, [=](const U64* v) {
        return negative ? static_cast<U64>(static_cast<std::int64_t>(v[0]) % static_cast<std::int64_t>(v[1]))
                        : v[0] % v[1];
      });
    }
    case 11: {
      const bool least = chance(50);
      return typed(type, least ? "min" : "max", {a(), a()}, [=](const U64* v) {
        const bool less = negative ? static_cast<std::int64_t>(v[0]) < static_cast<std::int64_t>(v[1]) : v[0] < v[1];
        return less == least ? v[0] : v[1];
      });
    }
    case 12:
      return typed(type, "not", {a()}, [](const U64* v) { return ~v[0]; });
    case 13:
      return typed(type, "neg", {a()}, [](const U64* v) { return U64{0} - v[0]; });
    default:
      return typed(type, "sel", {condition(depth), a(), a()}, [](const U64* v) { return v[0] != 0 ? v[1] : v[2]; });
  }
}

E Generator::condition(unsigned depth) {
  if (depth > 0 && chance(30)) {
    --depth;
    switch (draw(3)) {
      case 0:
        return operation(Type::truth, "both", {condition(depth), condition(depth)},
                         [](const U64* v) -> U64 { return v[0] & v[1]; });
      case 1:
        return operation(Type::truth, "either", {condition(depth), condition(depth)},
                         [](const U64* v) -> U64 { return v[0] | v[1]; });
      default:
        return operation(Type::truth, "no", {condition(depth)}, [](const U64* v) -> U64 { return v[0] ^ 1; });
    }
  }
  if (chance(10)) {
    return operation(Type::truth, "float_lt", {as(Type::i32, depth), as(Type::i32, depth)}, [](const U64* v) -> U64 {
      return (static_cast<std::int64_t>(v[0]) >> 8) * 2 < static_cast<std::int64_t>(v[1]) >> 8 ? 1 : 0;
    });
  }
  const Type type = any_type();
  const char* const names[] = {"lt", "le", "eq", "ne", "gt", "ge"};
  const unsigned which = draw(6);
  const bool negative = is_signed(type);
  return operation(Type::truth, names[which], {as(type, depth), as(type, depth)}, [=](const U64* v) -> U64 {
    const bool less = negative ? static_cast<std::int64_t>(v[0]) < static_cast<std::int64_t>(v[1]) : v[0] < v[1];
    const bool equal = v[0] == v[1];
    const bool answers[] = {less, less || equal, equal, !equal, !less && !equal, !less};
    return answers[which] ? 1 : 0;
  });
}

void Generator::vector_statement(std::vector<Statement>& into) {
  const Vector& to = vectors_[draw(static_cast<unsigned>(vectors_.size()))];
  const Type type = to.type;
  Statement s;
  s.kind = Statement::Kind::vector;
  s.slot = to.size;
  s.to.base = to.base;
  s.to.type = type;
  const std::string t = name_of(type) + "x" + std::to_string(to.size);
  if (chance(25)) {
    s.text = to.name + " = make_" + t + "(";
    for (unsigned i = 0; i < to.size; ++i) {
      s.arguments.push_back(as(type, 1));
      s.text += (i == 0 ? "" : ", ") + s.arguments.back()->text;
    }
    s.text += ");";
    into.push_back(std::move(s));
    return;
  }
  const auto operand = [&](std::array<unsigned, 4>& slots) {
    std::vector<const Vector*> same;
    for (const Vector& each : vectors_) {
      if (each.type == type) same.push_back(&each);
    }
    const Vector& from = *same[draw(static_cast<unsigned>(same.size()))];
    std::string name = from.name + ".";
    for (unsigned i = 0; i < to.size; ++i) {
      const unsigned lane = draw(from.size);
      slots[i] = from.base + lane;
      name += "xyzw"[lane];
    }
    return name;
  };
  const std::string a = operand(s.left), b = operand(s.right);
  const unsigned mask = bits_of(type) - 1;
  const char* const signs[] = {"+", "-", "*", "&", "|", "^", "<<", ">>"};
  unsigned which = draw(10);
  if (which == 4) which = 5;  // LLVM 19's fold of operands takes x | -1, which vectors come to, for x
  const bool negative = is_signed(type);
  s.combine = [=](U64 x, U64 y) -> U64 {
    const bool less = negative ? static_cast<std::int64_t>(x) < static_cast<std::int64_t>(y) : x < y;
    const auto n = static_cast<unsigned>(y & mask);
    const U64 shifted = negative ? static_cast<U64>(static_cast<std::int64_t>(x) >> n) : x >> n;
    const U64 answers[] = {x + y, x - y, x * y, x & y, x | y, x ^ y, x << n, shifted, less ? x : y, less ? y : x};
    return wrapped(type, answers[which]);
  };
  if (which >= 8) {
    const std::string name = which == 8 ? "min" : "max";
    const std::string as_value = cl() ? "(" + t + ")" : "";
    s.text = to.name + " = " + (cl() ? "__builtin_elementwise_" : "") + name + "(" + as_value + a + ", " + as_value +
             b + ");";
  } else if (which >= 6) {
    const std::string masked = cl() ? "(" + b + " & (" + name_of(type) + ")" + std::to_string(mask) + ")"
                                    : "(" + b + " & to_" + name_of(type) + "(" + std::to_string(mask) + "u))";
    s.text = to.name + " = " + a + " " + signs[which] + " " + masked + ";";
  } else {
    s.text = to.name + " = " + a + " " + signs[which] + " " + b + ";";
  }
  into.push_back(std::move(s));
}

// An atomic on what the thread alone uses, whose old value is used; or on what all threads change in the same way.
void Generator::atomic_statement(std::vector<Statement>& into) {
  Statement s;
  s.kind = Statement::Kind::update;
  const auto combine = [](const std::string& name) -> std::function<U64(U64, U64)> {
    if (name == "add") return [](U64 a, U64 b) { return a + b; };
    if (name == "sub") return [](U64 a, U64 b) { return a - b; };
    if (name == "min") return [](U64 a, U64 b) { return std::min(a, b); };
    if (name == "max") return [](U64 a, U64 b) { return std::max(a, b); };
    if (name == "and") return [](U64 a, U64 b) { return a & b; };
    if (name == "or") return [](U64 a, U64 b) { return a | b; };
    if (name == "xor") return [](U64 a, U64 b) { return a ^ b; };
    return [](U64, U64 b) { return b; };
  };
  std::vector<std::size_t> usable;
  for (std::size_t i = 0; i < shared_.size(); ++i) {
    const bool fits = shared_[i].fields[0].type == Type::u32;
    if (fits && (shared_use_[i] == SharedUse::own || shared_use_[i] == SharedUse::atomic)) usable.push_back(i);
  }
  std::string name, prefix;
  if (!usable.empty() && chance(60)) {
    const std::size_t which = usable[draw(static_cast<unsigned>(usable.size()))];
    Variable variable = shared_[which];
    const bool own = shared_use_[which] == SharedUse::own;
    const char* const names[] = {"add", "min", "max", "and", "or", "xor", "swap", "sub"};
    name = own ? names[draw(cl() ? 8 : 7)] : shared_atomic_[which];
    if (!own) {
      variable.count *= threads;
      variable.a_thread = 0;
      if (chance(50)) variable.count = draw(3) + 1;
    }
    s.to = place_of(variable, Type::u32);
    if (!own && variable.count == 1) s.to.text += "[0]";
    if (own && chance(60)) {
      const Variable& result = visible_[draw(4)];
      s.old = whole(result);
      if (s.old.type == Type::u32)
        prefix = s.old.text + " = ";
      else
        s.old = {};
    }
    s.value = as(Type::u32, 1);
    // LLVM makes a load of an atomic that changes nothing, and a load of LDS is not known to be an atomic.
    const bool lowers = name == "min" || name == "and";
    if (!own && lowers) {
      s.value =
          typed(Type::u32, "and", {s.value, constant(Type::u32, ~U64{1})}, [](const U64* v) { return v[0] & v[1]; });
    } else if (!own) {
      s.value = typed(Type::u32, "or", {s.value, constant(Type::u32, 1)}, [](const U64* v) { return v[0] | v[1]; });
    }
    s.text = prefix + "atomic_" + name + "_local(" + s.to.text + ", " + s.value->text + ");";
  } else {
    // The place decides on the operation: sums are added in one, maxima taken in another.
    const bool wide = language_ != Language::opengl && chance(30);
    const char* const names[] = {"add", "max", "or", "xor"};
    const unsigned which = draw(4), each = wide ? 2 : 4;
    name = names[which];
    const E at = chance(40) ? constant(Type::u32, draw(each)) : as(Type::u32, 1);
    s.to.space = Space::invalid;  // of the sums
    s.to.type = wide ? Type::u64 : Type::u32;
    s.to.base = which * each;
    s.to.indices = {{at, each, 1}};
    s.to.text = std::string(wide ? "wide" : "sums") + "[" + std::to_string(which * each) + "u + (" + at->text + ") % " +
                std::to_string(each) + "u]";
    s.value = as(s.to.type, 1);
    s.text = "atomic_" + name + (wide ? "_wide(" : "_global(") + s.to.text + ", " + s.value->text + ");";
  }
  s.combine = [type = s.to.type, f = combine(name)](U64 a, U64 b) { return wrapped(type, f(a, b)); };
  into.push_back(std::move(s));
}

void Generator::lanes_statement(std::vector<Statement>& into) {
  Statement s;
  s.kind = Statement::Kind::lanes;
  std::vector<const Variable*> u32s, u64s;
  for (const Variable& v : outputs) {
    if (v.fields[0].type == Type::u32) u32s.push_back(&v);
    if (v.fields[0].type == Type::u64) u64s.push_back(&v);
  }
  const bool whole_waves = threads % 64 == 0;
  std::string call;
  const auto of = [&](const std::vector<const Variable*>& list) {
    return whole(*list[draw(static_cast<unsigned>(list.size()))]);
  };
  bool masked = chance(50);
  if (chance(25)) {
    s.to = of(u64s);
    const E truth = condition(1);
    s.value = truth;
    call = "ballot(" + truth->text + ")";
    s.lanes = [](const std::vector<U64>& v, unsigned) {
      U64 bits = 0;
      for (unsigned i = 0; i < v.size(); ++i) bits |= (v[i] == 1 ? U64{1} : 0) << i;
      return bits;
    };
  } else {
    s.to = of(u32s);
    s.value = as(Type::u32, 1);
    const std::string value = s.value->text;
    const auto active = [](U64 x) { return x >> 63 == 0; };  // see the interpreter
    if (!whole_waves || chance(15)) {
      call = "first_lane(" + value + ")";
      s.lanes = [=](const std::vector<U64>& v, unsigned) { return *std::find_if(v.begin(), v.end(), active); };
    } else if (cl()) {
      masked = false;
      const unsigned n = draw(15) + 1;
      const auto move = [&](unsigned control, bool bound, std::function<int(int)> from) {
        // Rows and banks that are off, and lanes without a source, keep the old value, or get zero.
        const unsigned rows = chance(60) ? 15 : draw(16), banks = chance(60) ? 15 : draw(16);
        const Place to = s.to;
        call = "moved(" + to.text + ", " + value + ", " + std::to_string(control) + ", " + std::to_string(rows) + ", " +
               std::to_string(banks) + ", " + (bound ? "true" : "false") + ")";
        s.old = to;
        s.lanes = [=](const std::vector<U64>& v, unsigned lane) -> U64 {
          const U64 keep = ~U64{0};
          if ((rows >> lane / 16 % 4 & 1) == 0 || (banks >> lane / 4 % 4 & 1) == 0) return keep;
          const int in_row = from(static_cast<int>(lane % 16));
          if (in_row < 0 || in_row > 15) return bound ? 0 : keep;
          return v[lane / 16 * 16 + static_cast<unsigned>(in_row)];
        };
      };
      const int shift = static_cast<int>(n);
      switch (draw(14)) {
        case 0:
          move(0x100 + n, chance(50), [=](int i) { return i + shift; });
          break;
        case 1:
          move(0x110 + n, chance(50), [=](int i) { return i - shift; });
          break;
        case 2:
          move(0x120 + n, true, [=](int i) { return (i + 16 - shift) % 16; });
          break;
        case 3:
          move(0x140, true, [](int i) { return 15 - i; });
          break;
        case 4:
          move(0x141, true, [](int i) { return i / 8 * 8 + 7 - i % 8; });
          break;
        case 5:
          move(0x150 + n, true, [=](int) { return shift; });
          break;
        case 6:
          move(0x160 + n, true, [=](int i) { return i ^ shift; });
          break;
        case 7:
        case 8: {
          const unsigned quad = draw(256);
          move(quad, true, [=](int i) { return i / 4 * 4 + static_cast<int>(quad >> i % 4 * 2 & 3); });
          break;
        }
        case 9: {
          const unsigned keep = draw(32), set = draw(32), flip = draw(32);
          call = "swizzled(" + value + ", " + std::to_string(keep | set << 5 | flip << 10) + ")";
          s.lanes = [=](const std::vector<U64>& v, unsigned lane) {
            return v[(lane & 32) | ((((lane & keep) | set) ^ flip) & 31)];
          };
          break;
        }
        case 10:
        case 11: {
          const bool other = chance(50);
          const auto low = static_cast<std::uint32_t>(random_()), high = static_cast<std::uint32_t>(random_());
          call = std::string(other ? "permuted_other(" : "permuted16(") + value + ", " + std::to_string(low) + "u, " +
                 std::to_string(high) + "u)";
          s.lanes = [=](const std::vector<U64>& v, unsigned lane) {
            const unsigned at = (lane % 16 < 8 ? low >> lane % 8 * 4 : high >> lane % 8 * 4) & 15;
            return v[(lane / 16 * 16 ^ (other ? 16 : 0)) + at];
          };
          break;
        }
        case 12: {
          const Place mask = of(u64s);
          call = "count_below(" + mask.text + ", " + value + ")";
          s.arguments = {read(mask)};  // each lane counts in its own
          break;
        }
        default: {
          const unsigned flip = draw(32);
          call = "other_lane(" + value + ", LANE ^ " + std::to_string(flip) + "u)";
          s.lanes = [=](const std::vector<U64>& v, unsigned lane) { return v[lane ^ flip]; };
        }
      }
    } else {
      struct Reduction {
        const char* name;
        std::function<U64(U64, U64)> f;
        U64 start;
      };
      const Reduction reductions[] = {{"Add", [](U64 a, U64 b) { return a + b; }, 0},
                                      {"Mul", [](U64 a, U64 b) { return a * b; }, 1},
                                      {"Min", [](U64 a, U64 b) { return std::min(a, b); }, 0xFFFFFFFF},
                                      {"Max", [](U64 a, U64 b) { return std::max(a, b); }, 0},
                                      {"And", [](U64 a, U64 b) { return a & b; }, 0xFFFFFFFF},
                                      {"Or", [](U64 a, U64 b) { return a | b; }, 0},
                                      {"Xor", [](U64 a, U64 b) { return a ^ b; }, 0}};
      const Reduction& r = reductions[draw(7)];
      const unsigned kind = draw(6);
      if (kind == 0) {
        masked = false;
        const unsigned flip = draw(32);
        call = "subgroupShuffleXor(" + value + ", " + std::to_string(flip) + "u)";
        s.lanes = [=](const std::vector<U64>& v, unsigned lane) { return v[lane ^ flip]; };
      } else if (kind == 1) {
        masked = false;
        const unsigned flip = draw(3) + 1;
        const char* const names[] = {"Horizontal", "Vertical", "Diagonal"};
        call = std::string("subgroupQuadSwap") + names[flip - 1] + "(" + value + ")";
        s.lanes = [=](const std::vector<U64>& v, unsigned lane) { return v[lane ^ flip]; };
      } else {
        const unsigned size = 1U << (draw(5) + 1);
        const bool inclusive = kind == 4, exclusive = kind == 5, clustered = kind == 3;
        call = std::string("subgroup") +
               (inclusive   ? "Inclusive"
                : exclusive ? "Exclusive"
                : clustered ? "Clustered"
                            : "") +
               r.name + "(" + value + (clustered ? ", " + std::to_string(size) + "u" : "") + ")";
        s.lanes = [=, f = r.f, start = r.start](const std::vector<U64>& v, unsigned lane) {
          U64 result = start;
          for (unsigned i = 0; i < v.size(); ++i) {
            if (!active(v[i])) continue;
            if ((inclusive && i > lane) || (exclusive && i >= lane) || (clustered && i / size != lane / size)) continue;
            result = f(result, v[i]) & 0xFFFFFFFF;
          }
          return result;
        };
      }
    }
  }
  s.text = s.to.text + " = " + call + ";";
  if (masked) {
    s.condition = condition(1);
    s.text = "if (" + s.condition->text + ") { " + s.text + " }";
  }
  into.push_back(std::move(s));
}

void Generator::statement(std::vector<Statement>& into, unsigned depth, unsigned weight, bool in_loop,
                          const Function* function) {
  weight_ = weight;
  cost_ += weight;
  const bool open = depth > 0 && cost_ < limit_;
  const unsigned kind = draw(100);
  if (open && kind < 16) {
    Statement s;
    s.kind = Statement::Kind::branch;
    s.condition = condition(1);
    statements(s.body, 1 + draw(3), depth - 1, weight, in_loop, function);
    if (chance(50)) statements(s.otherwise, 1 + draw(3), depth - 1, weight, in_loop, function);
    into.push_back(std::move(s));
  } else if (open && kind < 28 && weight * 8 < limit_) {
    Statement s;
    s.kind = Statement::Kind::loop;
    const unsigned rounds = 2 + draw(6);
    const E bound = chance(40) ? constant(Type::u32, draw(rounds))
                               : operation(Type::u32, "mod_u32", {as(Type::u32, 1), constant(Type::u32, rounds)},
                                           [](const U64* v) { return v[0] % v[1]; });
    s.value = bound;
    Variable counter = scalar(Type::u32, fresh("k"));
    const std::string limit = fresh("n"), k = counter.name;
    counter.writable = false;
    s.slot = counter.base;
    visible_.push_back(counter);
    statements(s.body, 1 + draw(3), depth - 1, weight * (rounds / 2 + 1), true, function);
    visible_.pop_back();
    weight_ = weight;
    const unsigned form = draw(3);
    if (form == 0) {
      s.text = "{ u32 " + limit + " = " + bound->text + "; for (u32 " + k + " = 0u; " + k + " < " + limit + "; ++" + k +
               ") {";
      s.after = "} }";
    } else if (form == 1) {
      s.text = "{ u32 " + limit + " = " + bound->text + "; u32 " + k + " = ~0u; while (++" + k + " < " + limit + ") {";
      s.after = "} }";
    } else {
      s.text = "{ u32 " + limit + " = " + bound->text + "; u32 " + k + " = ~0u; do { ++" + k + ";";
      s.after = "} while (" + k + " + 1u < " + limit + "); }";
      s.first_round_always = true;
    }
    into.push_back(std::move(s));
  } else if (open && kind < 36) {
    Statement s;
    s.kind = Statement::Kind::choose;
    const unsigned cases = 2 + draw(4);
    s.value = operation(Type::u32, "mod_u32", {as(Type::u32, 1), constant(Type::u32, cases + 1)},
                        [](const U64* v) { return v[0] % v[1]; });
    for (unsigned i = 0; i < cases; ++i) {
      s.labels.emplace_back(i == cases - 1 ? ~U64{0} : i, s.body.size());
      statements(s.body, 1 + draw(2), depth - 1, weight, false, function);
      if (i == cases - 1 || chance(70)) s.body.emplace_back().kind = Statement::Kind::leave_loop;
    }
    into.push_back(std::move(s));
  } else if (in_loop && kind < 44) {
    Statement s;
    s.kind = Statement::Kind::branch;
    s.condition = condition(1);
    s.body.emplace_back().kind = chance(50) ? Statement::Kind::leave_loop : Statement::Kind::next_round;
    into.push_back(std::move(s));
  } else if (function != nullptr && depth < 2 && kind < 50) {
    Statement s, finish;
    s.kind = Statement::Kind::branch;
    s.condition = condition(1);
    finish.kind = Statement::Kind::finish;
    finish.value = as(function->type, 1);
    finish.text = "return " + finish.value->text + ";";
    s.body.push_back(std::move(finish));
    into.push_back(std::move(s));
  } else if (function == nullptr && kind < 62) {
    if (chance(50)) {
      vector_statement(into);
    } else {
      atomic_statement(into);
    }
  } else if (kind < 68 && calls_allowed_ && !functions.empty() && functions.back()->by_reference &&
             functions.back()->cost * weight + cost_ < limit_) {
    const Function& callee = *functions.back();
    std::vector<const Variable*> fitting;
    for (const Variable& v : visible_) {
      if (v.writable && v.space == Space::own && v.count == 1 && v.fields.size() == 1 && v.fields[0].count == 1 &&
          v.fields[0].type == callee.parameters[0].first) {
        fitting.push_back(&v);
      }
    }
    if (fitting.empty()) return;
    const Variable& changed = *fitting[draw(static_cast<unsigned>(fitting.size()))];
    std::vector<const Variable*> receivers;
    for (const Variable& v : visible_) {
      if (v.writable && v.space == Space::own && v.count == 1 && v.fields.size() == 1 && v.fields[0].count == 1 &&
          v.fields[0].type == callee.type && v.name != changed.name) {
        receivers.push_back(&v);
      }
    }
    if (receivers.empty()) return;
    Statement s;
    s.kind = Statement::Kind::call;
    s.function = &callee;
    s.old = whole(changed);
    s.to = whole(*receivers[draw(static_cast<unsigned>(receivers.size()))]);
    calls_allowed_ = false;  // an argument must not depend on what the call changes
    s.text = s.to.text + " = " + callee.name + "(" + (cl() ? "&" : "") + changed.name;
    for (std::size_t i = 1; i < callee.parameters.size(); ++i) {
      s.arguments.push_back(as(callee.parameters[i].first, 1));
      s.text += ", " + s.arguments.back()->text;
    }
    calls_allowed_ = true;
    s.text += ");";
    cost_ += callee.cost * weight;
    into.push_back(std::move(s));
  } else {
    std::vector<const Variable*> writable;
    for (const Variable& v : visible_) {
      if (v.writable) writable.push_back(&v);
    }
    const Variable& to = *writable[draw(static_cast<unsigned>(writable.size()))];
    const Place place = place_of(to, Type::invalid);
    into.push_back(assign(place, as(place.type, 1 + draw(3))));
  }
}

void Generator::statements(std::vector<Statement>& into, unsigned count, unsigned depth, unsigned weight, bool in_loop,
                           const Function* function) {
  for (unsigned i = 0; i < count; ++i) statement(into, depth, weight, in_loop, function);
}

// The declaration, and statements that give each part its first value.
void Generator::declare(const Variable& variable, const std::string& type_text, std::vector<Statement>& into,
                        std::string& declarations) {
  declarations += "  " + type_text + " " + variable.name +
                  (variable.count > 1 ? "[" + std::to_string(variable.count) + "]" : "") + ";\n";
  each_part(variable, [&](const std::string& name, unsigned slot, Type type) {
    Place place;
    place.space = variable.space;
    place.type = type;
    place.base = slot;
    place.text = name;
    into.push_back(assign(place, leaf(type)));
  });
}

void Generator::add_results(const Variable& variable) {
  each_part(variable, [&](const std::string& name, unsigned slot, Type type) {
    results.push_back({name, slot, false});
    if (bits_of(type) == 64) results.push_back({name, slot, true});
  });
}

void Generator::make_function() {
  auto made = std::make_unique<Function>();
  Function& f = *made;
  f.name = fresh("f");
  f.type = any_type();
  f.by_reference = chance(40);
  const std::vector<Variable> outer = std::exchange(visible_, {});
  const std::vector<Vector> vectors = std::exchange(vectors_, {});
  std::string head = f.name + "(", declarations;
  const unsigned count = 1 + draw(3);
  const bool generic = chance(50);
  for (unsigned i = 0; i < count; ++i) {
    const Type type = any_type();
    Variable p = scalar(type, fresh("p"));
    f.parameters.emplace_back(type, p.base);
    head += i == 0 ? "" : ", ";
    if (i == 0 && f.by_reference) {
      head += cl() ? std::string(generic ? "" : "__private ") + name_of(type) + "* " + p.name
                   : "inout " + name_of(type) + " " + p.name;
      if (cl()) p.name = "(*" + p.name + ")";
    } else {
      head += name_of(type) + " " + p.name;
    }
    visible_.push_back(p);
  }
  cost_ = 0;
  limit_ = 40;
  for (unsigned i = 0; i < 2; ++i) {
    Variable local = scalar(any_type(), fresh("x"));
    declare(local, name_of(local.fields[0].type), f.body, declarations);
    visible_.push_back(local);
  }
  if (chance(40)) {
    Variable array;
    array.name = fresh("a");
    array.base = own_slots;
    array.count = 2 + draw(6);
    own_slots += array.count;
    array.fields = {{"", any_type(), 0, 1}};
    declare(array, name_of(array.fields[0].type), f.body, declarations);
    visible_.push_back(array);
  }
  statements(f.body, 2 + draw(4), 2, 1, false, &f);
  Statement finish;
  finish.kind = Statement::Kind::finish;
  finish.value = as(f.type, 2);
  finish.text = "return " + finish.value->text + ";";
  f.body.push_back(std::move(finish));
  f.cost = cost_ + 1;
  visible_ = outer;
  vectors_ = vectors;
  const char* const forms[] = {"static ", "static __attribute__((noinline)) ",
                               "static __attribute__((always_inline)) "};
  text_of_functions_ +=
      (cl() ? forms[draw(3)] : "") + name_of(f.type) + " " + head + ") {\n" + declarations + printed(f.body, 1) + "}\n";
  functions.push_back(std::move(made));
}

std::string Generator::printed(const std::vector<Statement>& list, unsigned indent) const {
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

void Generator::make_main() {
  std::string declarations;
  weight_ = 1;
  cost_ = 0;
  limit_ = 600;
  visible_.clear();
  std::vector<Statement> first;
  // Declared as text: what they are, the interpreter knows.
  Variable local = scalar(Type::u32, "local_id"), id = scalar(Type::u32, "id"), group = scalar(Type::u32, "group_id");
  for (Variable* v : {&local, &id, &group}) v->writable = false;
  local_slot = local.base;
  std::vector<Variable> ids = {local, id, group};
  Variable given;
  given.name = "given";
  given.space = Space::given;
  given.count = RandomProgram::given_words;
  given.fields = {{"", Type::u32, 0, 1}};
  given.writable = false;
  visible_ = ids;
  visible_.push_back(given);
  Variable constants = given;
  constants.name = "table";
  constants.space = Space::table;
  constants.count = 4 + draw(20);
  for (unsigned i = 0; i < constants.count; ++i) table.push_back(static_cast<std::uint32_t>(random_()));
  text_of_table_ = cl() ? "static __constant u32 table[" + std::to_string(constants.count) + "] = {"
                        : "const u32 table[" + std::to_string(constants.count) + "] = u32[](";
  for (unsigned i = 0; i < constants.count; ++i)
    text_of_table_ += (i == 0 ? "" : ", ") + std::to_string(table[i]) + "u";
  text_of_table_ += cl() ? "};\n" : ");\n";
  visible_.push_back(constants);

  // Four words first, whose types are known; then more of any type.
  const Type known[] = {Type::u32, Type::u32, Type::u64, Type::i32};
  std::vector<Variable> variables;
  const unsigned count = 6 + draw(8);
  for (unsigned i = 0; i < count; ++i) {
    const Variable v = scalar(i < 4 ? known[i] : any_type(), fresh("x"));
    declare(v, name_of(v.fields[0].type), first, declarations);
    variables.push_back(v);
    outputs.push_back(v);
  }
  std::vector<Variable> more;
  for (unsigned i = 0; i < 1 + draw(2); ++i) {
    Variable array;
    array.name = fresh("a");
    array.base = own_slots;
    array.count = 2 + draw(11);
    own_slots += array.count;
    array.fields = {{"", any_type(), 0, 1}};
    declare(array, name_of(array.fields[0].type), first, declarations);
    more.push_back(array);
  }
  if (chance(60)) {
    Variable structs;
    structs.name = fresh("s");
    structs.base = own_slots;
    structs.count = 2 + draw(3);
    const std::string type = fresh("S");
    text_of_types_ += "struct " + type + " {";
    for (unsigned i = 0; i < 2 + draw(3); ++i) {
      const Type member = any_type();
      const unsigned size = chance(30) ? 2 + draw(4) : 1;
      const std::string name = std::string("m") + std::to_string(i);
      text_of_types_ += " " + name_of(member) + " " + name + (size > 1 ? "[" + std::to_string(size) + "]" : "") + ";";
      structs.fields.push_back({"." + name + (size > 1 ? "[#]" : ""), member, structs.stride - 1, size});
      structs.stride += size;
    }
    --structs.stride;
    text_of_types_ += " };\n";
    own_slots += structs.count * structs.stride;
    declare(structs, "STRUCT " + type, first, declarations);
    more.push_back(structs);
  }
  for (unsigned i = 0; i < 2 + draw(3); ++i) {
    const std::vector<Type> lanes = language_ == Language::opengl
                                        ? std::vector<Type>{Type::u32, Type::i32}
                                        : std::vector<Type>{Type::u32, Type::u32, Type::u16, Type::i16, Type::u8};
    Vector vector{fresh("v"), Type::u32, own_slots, chance(50) ? 2U : 4U};
    vector.type = lanes[draw(static_cast<unsigned>(lanes.size()))];
    if (cl() && is_signed(vector.type)) vector.type = unsigned_of(vector.type);  // sums of signed vectors may not wrap
    own_slots += vector.size;
    Variable v;
    v.name = vector.name;
    v.base = vector.base;
    for (unsigned lane = 0; lane < vector.size; ++lane) {
      v.fields.push_back({std::string(".") + "xyzw"[lane], vector.type, lane, 1});
    }
    v.fields.push_back({"[#]", vector.type, 0, vector.size});
    declare(v, name_of(vector.type) + "x" + std::to_string(vector.size), first, declarations);
    more.push_back(v);
    vectors_.push_back(vector);
  }
  visible_.insert(visible_.begin(), variables.begin(), variables.end());
  visible_.insert(visible_.end(), more.begin(), more.end());
  for (const Variable& v : variables) add_results(v);
  for (const Variable& v : more) add_results(v);
  word_slots = first_result + static_cast<unsigned>(results.size());
  if (chance(70)) {
    Variable words;  // of the thread, in memory
    words.name = "words";
    words.space = Space::words;
    words.fields = {{"", Type::u32, 0, 1}};
    words.count = first_result;
    words.a_thread = word_slots;
    visible_.push_back(words);
  }
  const unsigned shared_arrays = draw(3);
  for (unsigned i = 0; i < shared_arrays; ++i) {
    Variable shared;
    shared.name = fresh("shared");
    shared.space = Space::shared;
    shared.base = shared_slots;
    shared.a_thread = shared.count = 1 + draw(4);
    const Type type = cl() && chance(50) ? any_type() : Type::u32;
    shared.fields = {{"", type, 0, 1}};
    shared_slots += shared.count * threads;
    shared_.push_back(shared);
    text_of_shared_ += std::string(cl() ? "  __local " : "shared ") + name_of(type) + " " + shared.name + "[" +
                       std::to_string(shared.count * threads) + "];\n";
    for (unsigned k = 0; k < shared.count; ++k) {
      Place place;
      place.space = Space::shared;
      place.type = type;
      place.base = shared.base;
      place.a_thread = shared.a_thread;
      place.indices = {{constant(Type::u32, k), shared.count, 1}};
      place.text = shared.name + "[local_id * " + std::to_string(shared.a_thread) + "u + " + std::to_string(k) + "u]";
      first.push_back(assign(place, leaf(type)));
    }
  }
  shared_use_.assign(shared_.size(), SharedUse::none);
  shared_atomic_.assign(shared_.size(), "");
  main = std::move(first);

  const auto phase = [&](std::vector<Statement>& into, unsigned weight) {
    const std::vector<Variable> before = visible_;
    for (std::size_t i = 0; i < shared_.size(); ++i) {
      const char* const names[] = {"add", "min", "max", "and", "or", "xor"};
      const bool counted = shared_[i].fields[0].type == Type::u32;
      shared_use_[i] = static_cast<SharedUse>(2 + draw(counted ? 3 : 2));
      shared_atomic_[i] = names[draw(6)];
      Variable use = shared_[i];
      if (shared_use_[i] == SharedUse::own) visible_.push_back(use);
      if (shared_use_[i] == SharedUse::all) {
        use.count *= threads;
        use.a_thread = 0;
        use.writable = false;
        visible_.push_back(use);
      }
    }
    if (!shared_.empty()) into.emplace_back().kind = Statement::Kind::barrier;
    statements(into, 3 + draw(6), 3, weight, false, nullptr);
    shared_use_.assign(shared_.size(), SharedUse::none);
    if (!shared_.empty()) into.emplace_back().kind = Statement::Kind::barrier;
    visible_ = before;
    if (language_ != Language::opengl && chance(50)) lanes_statement(into);
  };
  const unsigned phases = 1 + draw(3);
  for (unsigned i = 0; i < phases; ++i) {
    limit_ = cost_ + 600;
    if (chance(30)) {
      Statement loop;  // every thread the same number of times
      loop.kind = Statement::Kind::loop;
      const unsigned rounds = 2 + draw(2);
      loop.value = constant(Type::u32, rounds);
      const Variable counter = scalar(Type::u32, fresh("k"));
      loop.slot = counter.base;
      loop.text = "for (u32 " + counter.name + " = 0u; " + counter.name + " < " + std::to_string(rounds) + "u; ++" +
                  counter.name + ") {";
      loop.after = "}";
      phase(loop.body, rounds);
      main.push_back(std::move(loop));
    } else {
      phase(main, 1);
    }
  }
  std::string last;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::string value = results[i].high ? "shr_u64(to_u64(" + results[i].name + "), 32u)" : results[i].name;
    last += "  words[id * " + std::to_string(word_slots) + "u + " + std::to_string(first_result + i) + "u] = to_u32(" +
            value + ");\n";
  }

  const std::string start =
      std::string("  u32 local_id = LOCAL_ID;\n  u32 group_id = GROUP_ID;\n  u32 id = group_id * ") +
      std::to_string(threads) + "u + local_id;\n";
  const std::string body = start + declarations + printed(main, 1) + last + "}\n";
  const std::string helpers = prelude(language_) + text_of_table_ + text_of_types_;
  if (cl()) {
    text = helpers + text_of_functions_ + "__kernel __attribute__((reqd_work_group_size(" + std::to_string(threads) +
           ", 1, 1))) void program(__global const u32* restrict given, __global u32* restrict words, __global u32* "
           "sums, " +
           "__global u64* wide) {\n" + text_of_shared_ + body;
  } else {
    text = helpers + text_of_shared_ + text_of_functions_ + "void main() {\n" + body;
  }
}

void Generator::generate() {
  const unsigned sizes[] = {64, 64, 64, 128, 128, 96, 33};
  threads = sizes[draw(7)];
  groups = 1 + draw(2);
  // Functions are made first; a leaf needs something to read, which their parameters are.
  for (unsigned i = 0; i < draw(4); ++i) make_function();
  make_main();
}

class Interpreter {
 public:
  Interpreter(const Generator& program, const std::vector<std::uint32_t>& given, unsigned lanes)
      : program_(program), given_(given), lanes_(lanes) {
    results.words.assign(std::size_t{program.threads} * program.groups * program.word_slots, 0);
    results.sums.assign(RandomProgram::sum_words, 0);
    results.wide.assign(RandomProgram::wide_sums, 0);
  }

  void run() {
    for (group_ = 0; group_ < program_.groups; ++group_) {
      shared_.assign(program_.shared_slots, 0);
      slots_.assign(program_.threads, std::vector<U64>(program_.own_slots));
      for (thread_ = 0; thread_ < program_.threads; ++thread_) {
        own()[program_.local_slot] = thread_;
        own()[program_.local_slot + 1] = id();
        own()[program_.local_slot + 2] = group_;
      }
      run_group(program_.main);
      for (thread_ = 0; thread_ < program_.threads; ++thread_) put_results();
    }
  }

  RandomProgram::Results results;

 private:
  enum class Flow : std::uint8_t { invalid = 0, on, leave, next, finish };

  unsigned id() const { return group_ * program_.threads + thread_; }
  std::vector<U64>& own() { return slots_[thread_]; }

  void put_results() {
    std::uint32_t* words = results.words.data() + std::size_t{id()} * program_.word_slots;
    for (std::size_t i = 0; i < program_.results.size(); ++i) {
      const U64 value = own()[program_.results[i].slot];
      words[first_result + i] = static_cast<std::uint32_t>(program_.results[i].high ? value >> 32U : value);
    }
  }

  // Threads run one after the other, except at what they do together.
  void run_group(const std::vector<Statement>& list) {
    for (const Statement& s : list) {
      if (s.kind == Statement::Kind::barrier) continue;
      if (s.kind == Statement::Kind::lanes) {
        run_lanes(s);
      } else if (s.kind == Statement::Kind::loop && has_meeting(s.body)) {
        const U64 rounds = s.value->value;
        for (U64 k = 0; k < rounds; ++k) {
          for (thread_ = 0; thread_ < program_.threads; ++thread_) own()[s.slot] = k;
          run_group(s.body);
        }
      } else {
        for (thread_ = 0; thread_ < program_.threads; ++thread_) static_cast<void>(step(s));
      }
    }
  }

  static bool has_meeting(const std::vector<Statement>& list) {
    return std::any_of(list.begin(), list.end(), [](const Statement& s) {
      return s.kind == Statement::Kind::barrier || s.kind == Statement::Kind::lanes;
    });
  }

  void run_lanes(const Statement& s) {
    constexpr U64 off = U64{1} << 63U;  // above every value of 32 bits
    for (unsigned first = 0; first < program_.threads; first += lanes_) {
      const unsigned count = std::min(lanes_, program_.threads - first);
      std::vector<U64> values(lanes_, off);
      for (unsigned lane = 0; lane < count; ++lane) {
        thread_ = first + lane;
        if (!s.condition || value(*s.condition) != 0) values[lane] = value(*s.value);
      }
      std::vector<U64> done(lanes_, off);
      for (unsigned lane = 0; lane < count; ++lane) {
        thread_ = first + lane;
        if (values[lane] == off) continue;
        if (s.lanes) {
          done[lane] = s.lanes(values, lane);
        } else {
          const U64 below = value(*s.arguments[0]) & ((U64{1} << lane) - 1);
          done[lane] = values[lane] + static_cast<U64>(std::popcount(below));
        }
      }
      for (unsigned lane = 0; lane < count; ++lane) {
        thread_ = first + lane;
        if (values[lane] == off || (s.old.space != Space::invalid && done[lane] == ~U64{0})) continue;
        at(s.to) = wrapped(s.to.type, done[lane]);
      }
    }
  }

  std::size_t slot_of(const Place& place) {
    std::size_t slot = place.base;
    for (const Index& index : place.indices) slot += value(*index.at) % index.count * index.stride;
    if (place.a_thread != 0) slot += std::size_t{place.space == Space::words ? id() : thread_} * place.a_thread;
    return slot;
  }
  U64& at(const Place& place) {
    const std::size_t slot = slot_of(place);
    return place.space == Space::own ? own()[slot] : shared_[slot];
  }
  U64 load(const Place& place) {
    const std::size_t slot = slot_of(place);
    switch (place.space) {
      case Space::given:
        return given_[slot];
      case Space::table:
        return program_.table[slot];
      case Space::words:
        return results.words[slot];
      case Space::shared:
        return shared_[slot];
      default:
        return own()[slot];
    }
  }
  void store(const Place& place, U64 value) {
    if (place.space == Space::words) {
      results.words[slot_of(place)] = static_cast<std::uint32_t>(value);
    } else {
      at(place) = value;
    }
  }

  U64 value(const Expression& e) {
    switch (e.kind) {
      case Expression::Kind::constant:
        return e.value;
      case Expression::Kind::read:
        return load(e.place);
      case Expression::Kind::operation: {
        U64 values[4];
        for (std::size_t i = 0; i < e.operands.size(); ++i) values[i] = value(*e.operands[i]);
        return e.compute(values);
      }
      default: {
        std::vector<U64> values;
        for (const E& each : e.operands) values.push_back(value(*each));
        return call(*e.function, values);
      }
    }
  }

  U64 call(const Function& function, const std::vector<U64>& arguments) {
    for (std::size_t i = 0; i < arguments.size(); ++i) own()[function.parameters[i].second] = arguments[i];
    run(function.body);
    return result_;
  }

  Flow run(const std::vector<Statement>& list, std::size_t from = 0) {
    for (std::size_t i = from; i < list.size(); ++i) {
      const Flow flow = step(list[i]);
      if (flow != Flow::on) return flow;
    }
    return Flow::on;
  }

  Flow step(const Statement& s) {
    switch (s.kind) {
      case Statement::Kind::assign: {
        const U64 result = value(*s.value);
        store(s.to, result);
        return Flow::on;
      }
      case Statement::Kind::update: {
        const U64 operand = value(*s.value);
        const std::size_t slot = slot_of(s.to);
        if (s.to.space == Space::invalid) {
          if (s.to.type == Type::u64) {
            results.wide[slot] = s.combine(results.wide[slot], operand);
          } else {
            results.sums[slot] = static_cast<std::uint32_t>(s.combine(results.sums[slot], operand));
          }
          return Flow::on;
        }
        const U64 before = shared_[slot];
        shared_[slot] = s.combine(before, operand);
        if (s.old.space != Space::invalid) store(s.old, before);
        return Flow::on;
      }
      case Statement::Kind::branch:
        return run(value(*s.condition) != 0 ? s.body : s.otherwise);
      case Statement::Kind::loop: {
        const U64 rounds = value(*s.value);
        for (U64 k = 0; k < rounds || (k == 0 && s.first_round_always); ++k) {
          own()[s.slot] = k;
          const Flow flow = run(s.body);
          if (flow == Flow::leave) break;
          if (flow == Flow::finish) return flow;
        }
        return Flow::on;
      }
      case Statement::Kind::choose: {
        const U64 label = value(*s.value);
        std::size_t from = s.labels.back().second;  // the default
        for (const auto& [each, place] : s.labels) {
          if (each == label) from = place;
        }
        const Flow flow = run(s.body, from);
        return flow == Flow::leave ? Flow::on : flow;
      }
      case Statement::Kind::leave_loop:
        return Flow::leave;
      case Statement::Kind::next_round:
        return Flow::next;
      case Statement::Kind::finish:
        result_ = value(*s.value);
        return Flow::finish;
      case Statement::Kind::call: {
        std::vector<U64> values = {load(s.old)};
        for (const E& each : s.arguments) values.push_back(value(*each));
        const U64 result = call(*s.function, values);
        store(s.old, own()[s.function->parameters[0].second]);
        store(s.to, result);
        return Flow::on;
      }
      case Statement::Kind::vector: {
        std::array<U64, 4> lanes{};
        for (unsigned i = 0; i < s.slot; ++i) {
          lanes[i] = s.arguments.empty() ? s.combine(own()[s.left[i]], own()[s.right[i]]) : value(*s.arguments[i]);
        }
        for (unsigned i = 0; i < s.slot; ++i) own()[s.to.base + i] = lanes[i];
        return Flow::on;
      }
      default:
        return Flow::on;
    }
  }

  const Generator& program_;
  const std::vector<std::uint32_t>& given_;
  const unsigned lanes_;
  unsigned group_ = 0, thread_ = 0;
  std::vector<std::vector<U64>> slots_;
  std::vector<U64> shared_;
  U64 result_ = 0;
};

}  // namespace

struct RandomProgram::Parts {
  Parts(Language language, U64 number) : seed(number), generator(language, number) { generator.generate(); }
  U64 seed;
  Generator generator;
  std::string text;
};

std::vector<std::uint64_t> RandomProgram::chosen_seeds(std::uint64_t count) {
  std::uint64_t first = 1;
  if (const char* chosen = std::getenv("KILN_TEST_PROGRAMS")) {
    char* end = nullptr;
    first = std::strtoull(chosen, &end, 10);
    const bool both = *end == ':' && end[1] != '\0';
    if (both) count = std::strtoull(end + 1, &end, 10);
    if (!both || *end != '\0') {
      throw std::invalid_argument(std::string("KILN_TEST_PROGRAMS: expected FIRST:COUNT, found ") + chosen);
    }
  }
  std::vector<std::uint64_t> seeds(count);
  std::iota(seeds.begin(), seeds.end(), first);
  return seeds;
}

RandomProgram::RandomProgram(Language language, std::uint64_t seed) : parts_(std::make_unique<Parts>(language, seed)) {
  const Generator& g = parts_->generator;
  std::string& text = parts_->text;
  if (language == Language::opencl) {
    text = g.text;
    return;
  }
  text = "@shader " + name() + "\n";
  if (language == Language::vulkan) {
    text += "@needs vulkan int64 int16 int8 atomic_int64\n";
    for (const char* each : {"GL_EXT_shader_explicit_arithmetic_types", "GL_EXT_shader_atomic_int64"}) {
      text += std::string("@extension ") + each + "\n";
    }
    for (const char* each : {"basic", "ballot", "shuffle", "arithmetic", "clustered", "quad"}) {
      text += std::string("@extension GL_KHR_shader_subgroup_") + each + "\n";
    }
  } else {
    text += "@needs int64\n";
  }
  text += "@local " + std::to_string(g.threads) + "\n@groups " + std::to_string(g.groups) + "\n@in uint given " +
          std::to_string(given_words) + (seed % 2 == 0 ? " any\n" : " edges\n");
  text += "@out uint words " + std::to_string(std::size_t{g.threads} * g.groups * g.word_slots) + " exact\n";
  text += "@out uint sums " + std::to_string(sum_words) + " exact\n";
  if (language == Language::vulkan) text += "@out uint64_t wide " + std::to_string(wide_sums) + " exact\n";
  text += g.text;
}

RandomProgram::~RandomProgram() = default;

std::string RandomProgram::name() const { return "random_" + std::to_string(parts_->seed); }
const std::string& RandomProgram::text() const { return parts_->text; }
unsigned RandomProgram::threads_per_group() const { return parts_->generator.threads; }
unsigned RandomProgram::groups() const { return parts_->generator.groups; }
unsigned RandomProgram::words_per_thread() const { return parts_->generator.word_slots; }

std::string RandomProgram::word_name(std::size_t at) const {
  const unsigned count = words_per_thread(), word = static_cast<unsigned>(at % count);
  const std::string thread = "thread " + std::to_string(at / count) + ", ";
  if (word < first_result) return thread + "words[" + std::to_string(word) + "]";
  const Generator::Result& result = parts_->generator.results[word - first_result];
  return thread + (result.high ? "high word of " : "") + result.name;
}

RandomProgram::Results RandomProgram::expected(const std::vector<std::uint32_t>& given, unsigned lanes) const {
  Interpreter interpreter(parts_->generator, given, lanes);
  interpreter.run();
  return std::move(interpreter.results);
}

}  // namespace kiln::simulator::test

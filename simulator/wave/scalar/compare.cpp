// Scalar comparisons: SOPC, and those of SOPK with an immediate.
#include <iterator>

#include "simulator/wave/scalar/lists.hpp"
#include "simulator/wave/scalar/operation.hpp"

namespace kiln::simulator::scalar_unit {
namespace {

using Int = std::int32_t;

template <class T>
struct First;
template <class C, class A>
struct First<bool (C::*)(A, A) const> {
  using type = A;
};
template <auto Body>
Next compare_immediate(Wave& wave, const Op& op) {
  using T = typename First<decltype(&decltype(Body)::operator())>::type;
  wave.scc = Body(read<T>(wave, op, 0), static_cast<T>(op.offset));
  return Next::go;
}
template <auto Body>
constexpr Semantics with_immediate(const char* name) {
  return {name, &compare_immediate<Body>, takes::nothing, 0};
}

constexpr Semantics entries[] = {
    scalar<[](Int a, Int b) { return (a == b); }>("s_cmp_eq_i32"),
    scalar<[](Int a, Int b) { return (a != b); }>("s_cmp_lg_i32"),
    scalar<[](Int a, Int b) { return (a > b); }>("s_cmp_gt_i32"),
    scalar<[](Int a, Int b) { return (a >= b); }>("s_cmp_ge_i32"),
    scalar<[](Int a, Int b) { return (a < b); }>("s_cmp_lt_i32"),
    scalar<[](Int a, Int b) { return (a <= b); }>("s_cmp_le_i32"),
    scalar<[](Word a, Word b) { return (a == b); }>("s_cmp_eq_u32"),
    scalar<[](Word a, Word b) { return (a != b); }>("s_cmp_lg_u32"),
    scalar<[](Word a, Word b) { return (a > b); }>("s_cmp_gt_u32"),
    scalar<[](Word a, Word b) { return (a >= b); }>("s_cmp_ge_u32"),
    scalar<[](Word a, Word b) { return (a < b); }>("s_cmp_lt_u32"),
    scalar<[](Word a, Word b) { return (a <= b); }>("s_cmp_le_u32"),
    scalar<[](Wide a, Wide b) { return a == b; }>("s_cmp_eq_u64"),
    scalar<[](Wide a, Wide b) { return a != b; }>("s_cmp_lg_u64"),
    scalar<[](Word a, Word b) { return ((a >> (b & 31U) & 1U) == 0); }>("s_bitcmp0_b32"),
    scalar<[](Wide a, Word b) { return ((a >> (b & 63U) & 1U) == 0); }>("s_bitcmp0_b64"),
    scalar<[](Word a, Word b) { return ((a >> (b & 31U) & 1U) != 0); }>("s_bitcmp1_b32"),
    scalar<[](Wide a, Word b) { return ((a >> (b & 63U) & 1U) != 0); }>("s_bitcmp1_b64"),
    with_immediate<[](Int a, Int b) { return (a == b); }>("s_cmpk_eq_i32"),
    with_immediate<[](Int a, Int b) { return (a != b); }>("s_cmpk_lg_i32"),
    with_immediate<[](Int a, Int b) { return (a > b); }>("s_cmpk_gt_i32"),
    with_immediate<[](Int a, Int b) { return (a >= b); }>("s_cmpk_ge_i32"),
    with_immediate<[](Int a, Int b) { return (a < b); }>("s_cmpk_lt_i32"),
    with_immediate<[](Int a, Int b) { return (a <= b); }>("s_cmpk_le_i32"),
    with_immediate<[](Word a, Word b) { return (a == b); }>("s_cmpk_eq_u32"),
    with_immediate<[](Word a, Word b) { return (a != b); }>("s_cmpk_lg_u32"),
    with_immediate<[](Word a, Word b) { return (a > b); }>("s_cmpk_gt_u32"),
    with_immediate<[](Word a, Word b) { return (a >= b); }>("s_cmpk_ge_u32"),
    with_immediate<[](Word a, Word b) { return (a < b); }>("s_cmpk_lt_u32"),
    with_immediate<[](Word a, Word b) { return (a <= b); }>("s_cmpk_le_u32"),
};

}  // namespace

SemanticsList compare() noexcept { return {entries, std::size(entries)}; }

}  // namespace kiln::simulator::scalar_unit

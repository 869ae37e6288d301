// Planted hazards: generated programs with a missing wait, a missing barrier, a race, a stale cache or the wrong wave
// size. Each must end with a fault at the planted place, and its mended twin must run.
#include <catch2/catch.hpp>
#include <string>

#include "simulator/wave/check/races.hpp"
#include "tests/simulator/compute/planted.hpp"
#include "tests/simulator/wave/image_bench.hpp"

namespace kiln::simulator::test {

using namespace planted;

namespace {

// With data in v8 and what follows, as far as the operation has any.
Words local(const std::string& name, unsigned address) {
  const bool loads = name.find("load") != std::string::npos, pair = name.find("2addr") != std::string::npos;
  const unsigned dst = loads || name.find("rtn") != std::string::npos ? 16 : 0;
  return encode::ds(name.c_str(), dst, address, loads ? 0 : 8, !loads && pair ? 8 : 0, pair ? 0x100 : 0);
}

// A hazard that shows at the first word of `after`, or at either side of a race.
enum class Shows : std::uint8_t { invalid = 0, after, somewhere };

// `before`, then what is missing, then `after`.
void check(const std::string& what, const Words& before, const Words& missing, const Words& after, const char* reason,
           Shows shows = Shows::after, Shape shape = {}) {
  INFO(what);
  Planted program;
  const std::optional<Fault> fault = program.run(join({before, after}), shape);
  REQUIRE(fault);
  INFO(describe(*fault));
  CHECK(fault->kind == FaultKind::hazard);
  CHECK_THAT(fault->reason, Catch::Contains(reason));
  CHECK(fault->dword);
  if (shows == Shows::after) {
    CHECK(fault->address == program.at(before.size()));
    CHECK(fault->dword == after.front());
  }
  const std::optional<Fault> none = program.run(join({before, missing, after}), shape);
  if (none) FAIL_CHECK("with what was missing: " << describe(*none));
}

struct Load {
  std::string name;
  Words words;
  Words wait;
  unsigned registers;
  bool scalar = false;
};

std::vector<Load> loads() {
  std::vector<Load> list;
  const Words vm = {wait(0, all)}, lgkm = {wait(all, 0)};
  const std::pair<const char*, unsigned> widths[] = {
      {"load_b32", 1},     {"load_b64", 2},       {"load_b96", 3},       {"load_b128", 4},      {"load_u8", 1},
      {"load_i8", 1},      {"load_u16", 1},       {"load_i16", 1},       {"load_d16_u8", 1},    {"load_d16_i8", 1},
      {"load_d16_b16", 1}, {"load_d16_hi_u8", 1}, {"load_d16_hi_i8", 1}, {"load_d16_hi_b16", 1}};
  for (const auto& [name, registers] : widths) {
    list.push_back({"global", global(("global_" + std::string(name)).c_str(), 16, 2, 0), vm, registers});
    list.push_back({"flat", encode::flat(0, ("flat_" + std::string(name)).c_str(), 16, 4, 0), {wait(0, 0)}, registers});
    list.push_back({"buffer", encode::mubuf(("buffer_" + std::string(name)).c_str(), 16, 2, 4, 128, 0, false, true), vm,
                    registers});
    list.back().name += std::string("_") + name;
  }
  const std::pair<const char*, unsigned> local[] = {
      {"ds_load_b32", 1},       {"ds_load_b64", 2},       {"ds_load_b96", 3},     {"ds_load_b128", 4},
      {"ds_load_u8", 1},        {"ds_load_i8", 1},        {"ds_load_u16", 1},     {"ds_load_i16", 1},
      {"ds_load_2addr_b32", 2}, {"ds_load_2addr_b64", 4}, {"ds_load_u16_d16", 1}, {"ds_load_u16_d16_hi", 1}};
  for (const auto& [name, registers] : local) list.push_back({name, encode::ds(name, 16, 2, 0), lgkm, registers});
  for (const char* name : {"ds_add_rtn_u32", "ds_max_rtn_u32", "ds_or_rtn_b32", "ds_storexchg_rtn_b32",
                           "ds_bpermute_b32", "ds_permute_b32"}) {
    list.push_back({name, encode::ds(name, 16, 2, 8), lgkm, 1});
  }
  list.push_back({"ds_swizzle_b32", encode::ds("ds_swizzle_b32", 16, 2, 0, 0, 0x401F), lgkm, 1});
  for (const char* name : {"global_atomic_add_u32", "global_atomic_swap_b32", "global_atomic_or_b32",
                           "global_atomic_max_u32", "global_atomic_inc_u32"}) {
    list.push_back({name, global(name, 16, 2, 8, 0, true), vm, 1});
  }
  const std::pair<const char*, unsigned> scalar[] = {
      {"s_load_b32", 1}, {"s_load_b64", 2}, {"s_load_b128", 4}, {"s_load_b256", 8}, {"s_load_b512", 16}};
  for (const auto& [name, registers] : scalar) {
    list.push_back({name, encode::smem(name, 16, 0, 0), lgkm, registers, true});
    list.push_back(
        {name, encode::smem(("s_buffer" + std::string(name).substr(1)).c_str(), 16, 4, 0), lgkm, registers, true});
  }
  return list;
}

}  // namespace

TEST_CASE("simulator hazards: a register is used before its load was waited for", "[simulator][hazards]") {
  for (const Load& load : loads()) {
    const unsigned last = 16 + load.registers - 1;
    if (load.scalar) {
      check(load.name + ", read", load.words, load.wait, {sop1("s_mov_b32", 40, last)}, "is read before");
      check(load.name + ", overwritten", load.words, load.wait, {sop1("s_mov_b32", 16, 128)}, "is overwritten before");
      check(load.name + ", read by a vector instruction", load.words, load.wait, {vop1("v_mov_b32", 30, last)},
            "lgkmcnt(0)");
      continue;
    }
    check(load.name + ", read", load.words, load.wait, {vop1("v_mov_b32", 30, v(last))}, "is read before");
    check(load.name + ", overwritten", load.words, load.wait, {vop1("v_mov_b32", 16, 128)}, "is overwritten before");
  }
}

TEST_CASE("simulator hazards: a wait for too few", "[simulator][hazards]") {
  const Words use = {vop1("v_mov_b32", 30, v(17))}, flat_load = encode::flat(0, "flat_load_b32", 22, 4, 0);
  for (unsigned newer = 0; newer < 4; ++newer) {
    Words memory = global("global_load_b32", 16, 2, 0), local = encode::ds("ds_load_b32", 16, 2, 0);
    const auto append = [](Words& to, const Words& more) { to.insert(to.end(), more.begin(), more.end()); };
    append(memory, global("global_load_b32", 17, 2, 0));
    append(local, encode::ds("ds_load_b32", 17, 2, 0));
    for (unsigned i = 0; i < newer; ++i) {
      append(memory, global("global_load_b32", 18 + i, 2, 0));
      append(local, encode::ds("ds_load_b32", 18 + i, 2, 0));
    }
    const std::string count = "(" + std::to_string(newer) + ")";
    check("memory", join({memory, {wait(newer + 1, 0)}}), {wait(newer, all)}, use, ("vmcnt" + count).c_str());
    check("LDS", join({local, {wait(0, newer + 1)}}), {wait(all, newer)}, use, ("lgkmcnt" + count).c_str());
    // A flat load is counted with both, and takes its turn among the others.
    check("memory, flat newer", join({memory, flat_load, {wait(newer + 2, 0)}}), {wait(newer + 1, all)}, use, "vmcnt");
    check("LDS, flat newer", join({local, flat_load, {wait(0, newer + 2)}}), {wait(all, newer + 1)}, use, "lgkmcnt");
    Words flat = flat_load;
    for (unsigned i = 0; i < newer; ++i) append(flat, encode::flat(0, "flat_load_b32", 18 + i, 4, 0));
    check("flat", join({flat, {wait(newer + 1, newer + 1)}}), {wait(newer, newer)}, {vop1("v_mov_b32", 30, v(22))},
          ("vmcnt" + count).c_str());
    check("the other counter", join({memory, {wait(all, 0)}}), {wait(newer, all)}, use, "vmcnt");
    check("the other counter, LDS", join({local, {wait(0, all)}}), {wait(all, newer)}, use, "lgkmcnt");
  }
  // Scalar loads arrive in any order.
  const Words scalars = join({encode::smem("s_load_b32", 16, 0, 0), encode::smem("s_load_b32", 17, 0, 4)});
  check("scalar", join({scalars, {wait(all, 1)}}), {wait(all, 0)}, {sop1("s_mov_b32", 40, 16)}, "lgkmcnt(0)");
}

TEST_CASE("simulator hazards: a register that M0 leads to is used before its load was waited for",
          "[simulator][hazards]") {
  const Words load = join({{sop1("s_mov_b32", operand::m0, 129)}, global("global_load_b32", 16, 2, 0)});
  const Words vm = {wait(0, all)};
  check("source", load, vm, {vop1("v_movrels_b32", 24, v(15))}, "v16 is read before");
  check("destination", load, vm, {vop1("v_movreld_b32", 15, 128)}, "v16 is overwritten before");
  // The register that the instruction names is not the one that it uses.
  CHECK_FALSE(Planted().run(join({load, {vop1("v_movrels_b32", 24, v(16)), vop1("v_movreld_b32", 16, 128)}})));
}

TEST_CASE("simulator hazards: lanes that the load does not write need no wait", "[simulator][hazards]") {
  Planted program;
  const U low = sopk("s_movk_i32", exec_lo, 0xF), high = sopk("s_movk_i32", exec_lo, 0xF0);
  const Words load = global("global_load_b32", 16, 2, 0), use = {vop1("v_mov_b32", 30, v(16))};
  CHECK_FALSE(program.run(join({{vop1("v_mov_b32", 16, 128), low}, load, {high}, use})));
  CHECK(program.run(join({{vop1("v_mov_b32", 16, 128), low}, load, use})));
}

TEST_CASE("simulator hazards: a load overwrites what a load of another kind will write", "[simulator][hazards]") {
  // An image and a sampler of zeros, which answer zero.
  Words clear;
  for (unsigned s = 16; s < 28; ++s) clear.push_back(sop1("s_mov_b32", s, 128));
  Fields fields;
  fields.data = 16;
  fields.address = 2;
  fields.resource = 16;
  fields.sampler = 24;
  fields.mask = 1;
  Fields unsampled = fields;
  unsampled.sampler = 0;
  const Words vm = {wait(0, all)}, plain = global("global_load_b32", 16, 2, 0);
  const Words sampled = mimg("image_sample", fields), image = mimg("image_load", unsampled);
  check("sampled over plain", join({clear, plain}), vm, sampled, "v16 is overwritten before");
  check("sampled over image", join({clear, image}), vm, sampled, "v16 is overwritten before");
  check("plain over sampled", join({clear, sampled}), vm, plain, "v16 is overwritten before");
  CHECK_FALSE(Planted().run(join({clear, sampled, sampled})));
  CHECK_FALSE(Planted().run(join({clear, plain, image, plain})));
}

TEST_CASE("simulator hazards: lanes outside EXEC are used before their load was waited for", "[simulator][hazards]") {
  const Words vm = {wait(0, all)}, load = global("global_load_b32", 16, 2, 0);
  // Lanes 4 to 7 are loaded; then lanes 0 to 3 are on.
  const Words others = join({{sopk("s_movk_i32", exec_lo, 0xF0)}, load, {sopk("s_movk_i32", exec_lo, 0xF)}});
  const unsigned lane_5 = 133, lane_9 = 137;
  check("v_readlane", others, vm, encode::vop3("v_readlane_b32", 40, v(16), lane_5), "v16 is read before");
  check("v_writelane", others, vm, encode::vop3("v_writelane_b32", 16, 8, lane_5), "v16 is");
  CHECK_FALSE(Planted().run(join({others, encode::vop3("v_readlane_b32", 40, v(16), lane_9)})));
  check("v_readfirstlane", join({{sopk("s_movk_i32", exec_lo, 1)}, load, {sopk("s_movk_i32", exec_lo, 0)}}), vm,
        {vop1("v_readfirstlane_b32", 40, v(16))}, "v16 is read before");
  check("v_permlane16", others, vm, encode::vop3("v_permlane16_b32", 24, v(16), 8, 8, {.op_sel = 1}),
        "v16 is read before");
  CHECK_FALSE(Planted().run(join({others, encode::vop3("v_permlane16_b32", 24, v(16), 8, 8)})));
  // v_mov_b32_dpp v24, v16 quad_perm:[0,1,2,3] fi:1, and without fi
  check("DPP", others, vm, {vop1("v_mov_b32", 24, 250), 0xFF04E410}, "v16 is read before");
  CHECK_FALSE(Planted().run(join({others, {vop1("v_mov_b32", 24, 250), 0xFF00E410}})));
  // The low half is loaded; the high one then reads it.
  const Words halves = join({{sop1("s_mov_b32", exec_hi, 128)},
                             load,
                             {sop1("s_mov_b32", exec_lo, 128), sop1("s_mov_b32", exec_hi, minus_one)}});
  check("v_permlane64", halves, vm, {vop1("v_permlane64_b32", 24, v(16))}, "v16 is read before", Shows::after,
        {1, true});
}

TEST_CASE("simulator hazards: waves share LDS and memory without a barrier", "[simulator][hazards]") {
  struct Access {
    const char* store;
    const char* load;
  };
  const U barrier = sopp("s_barrier");
  const Words waits = {wait(0, 0), wait_for_stores()};
  const Access in_lds[] = {{"ds_store_b8", "ds_load_u8"},
                           {"ds_store_b16", "ds_load_u16"},
                           {"ds_store_b32", "ds_load_b32"},
                           {"ds_store_b64", "ds_load_b64"},
                           {"ds_store_b96", "ds_load_b96"},
                           {"ds_store_b128", "ds_load_b128"},
                           {"ds_store_b128", "ds_load_u8"},
                           {"ds_store_b32", "ds_add_u32"},
                           {"ds_add_u32", "ds_load_b32"},
                           {"ds_store_b32", "ds_add_rtn_u32"},
                           {"ds_store_2addr_b32", "ds_load_2addr_b32"},
                           {"ds_store_2addr_b64", "ds_load_b128"}};
  for (const Access& each : in_lds) {
    const Words first = local(each.store, 2), second = local(each.load, 3);
    const std::string name = std::string(each.store) + ", " + each.load;
    check(name + ", no barrier", join({first, waits}), {barrier}, second, "race", Shows::somewhere);
    check(name + ", no wait", first, waits, join({{barrier}, second}), "race", Shows::somewhere);
  }
  const Access memory[] = {{"global_store_b8", "global_load_u8"},        {"global_store_b16", "global_load_u16"},
                           {"global_store_b32", "global_load_b32"},      {"global_store_b64", "global_load_b64"},
                           {"global_store_b96", "global_load_b96"},      {"global_store_b128", "global_load_b128"},
                           {"global_store_d16_hi_b8", "global_load_i8"}, {"global_atomic_add_u32", "global_load_b32"}};
  for (const Access& each : memory) {
    const Words first = global(each.store, 0, 2, 8), second = global(each.load, 16, 3, 0);
    const std::string name = std::string(each.store) + ", " + each.load;
    check(name + ", no barrier", join({first, waits}), {barrier}, second, "race", Shows::somewhere);
    check(name + ", no wait", first, waits, join({{barrier}, second}), "race", Shows::somewhere);
  }
  // What was read is overwritten too early: the second barrier of a loop.
  for (const auto& [load, store] : {std::pair("ds_load_b32", "ds_store_b32"), std::pair("ds_load_b128", "ds_store_b64"),
                                    std::pair("ds_load_u16", "ds_store_b16"), std::pair("ds_load_b64", "ds_add_u32")}) {
    const Words first = local(load, 3), second = local(store, 2);
    check(std::string(load) + ", " + store, join({first, waits}), {barrier}, second, "race", Shows::somewhere);
  }
}

TEST_CASE("simulator hazards: LDS races through flat addresses without a barrier", "[simulator][hazards]") {
  const U barrier = sopp("s_barrier");
  const Words waits = {wait(0, 0), wait_for_stores()};
  // v[12:13] and v[14:15]: where v2 and v3 lie in LDS.
  constexpr auto aperture = static_cast<U>(shared_aperture >> 32U);
  const Words places = {vop1("v_mov_b32", 12, v(2)), vop1("v_mov_b32", 13, encode::literal), aperture,
                        vop1("v_mov_b32", 14, v(3)), vop1("v_mov_b32", 15, encode::literal), aperture};
  for (const char* store : {"flat_store_b8", "flat_store_b32", "flat_store_b128", "flat_atomic_add_u32"}) {
    const Words first = join({places, encode::flat(0, store, 0, 12, 8)}), second = local("ds_load_b32", 3);
    check(std::string(store) + ", no barrier", join({first, waits}), {barrier}, second, "LDS 0x", Shows::somewhere);
    check(std::string(store) + ", no wait", first, waits, join({{barrier}, second}), "LDS 0x", Shows::somewhere);
  }
  for (const char* load : {"flat_load_u8", "flat_load_b32", "flat_load_b128"}) {
    const Words first = join({places, local("ds_store_b128", 2)}), second = encode::flat(0, load, 16, 14, 0);
    check(std::string(load) + ", no barrier", join({first, waits}), {barrier}, second, "LDS 0x", Shows::somewhere);
  }
}

TEST_CASE("simulator hazards: groups share memory without an atomic", "[simulator][hazards]") {
  // Every group writes its number to the same words: another value each time.
  const Words number = {vop1("v_mov_b32", 12, 8), vop1("v_mov_b32", 13, 8), vop1("v_mov_b32", 14, 8),
                        vop1("v_mov_b32", 15, 8)};
  const Shape two_groups{2, false};
  for (const char* store : {"global_store_b8", "global_store_b16", "global_store_b32", "global_store_b64",
                            "global_store_b96", "global_store_b128"}) {
    INFO(store);
    Planted program;
    const Words racing = join({number, global(store, 0, 2, 12)});
    const std::optional<Fault> fault = program.run(racing, two_groups);
    REQUIRE(fault);
    CHECK(fault->kind == FaultKind::hazard);
    CHECK(fault->address == program.at(number.size()));
    CHECK_THAT(fault->reason, Catch::Contains("wave 0 of group 0"));
    CHECK_FALSE(program.run(racing));  // one group alone
    // The same value from all: v_mov_b32 v12, 0
    CHECK_FALSE(program.run(join({{vop1("v_mov_b32", 12, 128), vop1("v_mov_b32", 13, 128), vop1("v_mov_b32", 14, 128),
                                   vop1("v_mov_b32", 15, 128)},
                                  global(store, 0, 2, 12)}),
                            two_groups));
  }
  for (const char* atomic : {"global_atomic_add_u32", "global_atomic_or_b32", "global_atomic_swap_b32"}) {
    INFO(atomic);
    Planted program;
    CHECK_FALSE(program.run(global(atomic, 0, 2, 8), two_groups));
    CHECK_FALSE(program.run(global(atomic, 16, 2, 8, 0, true), two_groups));
    // A plain load beside the atomics of others.
    const std::optional<Fault> fault =
        program.run(join({global(atomic, 0, 2, 8), global("global_load_b32", 16, 2, 0)}), two_groups);
    REQUIRE(fault);
    CHECK_THAT(fault->reason, Catch::Contains("race"));
  }
}

TEST_CASE("simulator hazards: atomics that change nothing beside plain loads", "[simulator][hazards]") {
  struct Case {
    const char* name;
    unsigned value;
    bool changes;
  };
  const unsigned zero = 128;
  // Memory holds zeros.
  const Case cases[] = {{"min_u32", minus_one, false}, {"max_u32", zero, false},     {"min_i32", zero, false},
                        {"max_i32", minus_one, false}, {"and_b32", zero, false},     {"or_b32", zero, false},
                        {"xor_b32", zero, false},      {"add_u32", zero, false},     {"sub_u32", zero, false},
                        {"max_u32", minus_one, true},  {"min_i32", minus_one, true}, {"or_b32", minus_one, true},
                        {"xor_b32", minus_one, true},  {"add_u32", minus_one, true}, {"inc_u32", minus_one, true}};
  const Words done = {wait(0, 0), wait_for_stores()};
  for (const Case& each : cases) {
    INFO(each.name << " of " << each.value);
    const Words value = {vop1("v_mov_b32", 12, each.value), vop1("v_mov_b32", 13, each.value)};
    const std::string name = each.name;
    const auto run = [&](const char* what, const Words& clear, const Words& change, const Words& load, Shape shape) {
      INFO(what);
      for (const bool first : {false, true}) {  // which of the two comes first
        Planted program;
        const Words body = first ? join({change, load}) : join({load, change});
        const std::optional<Fault> fault = program.run(join({value, clear, body}), shape);
        if (fault) UNSCOPED_INFO(describe(*fault));
        CHECK(fault.has_value() == each.changes);
        if (fault) CHECK_THAT(fault->reason, Catch::Contains("race"));
      }
    };
    const Shape two_groups{2, false};
    run("memory", {}, global(("global_atomic_" + name).c_str(), 0, 2, 12),
        join({global("global_load_b32", 16, 2, 0), done}), two_groups);
    const std::string wide = name.substr(0, name.size() - 2) + "64";
    run("memory, 64 bits", {}, global(("global_atomic_" + wide).c_str(), 0, 2, 12),
        join({global("global_load_b64", 16, 2, 0), done}), two_groups);
    // Both waves of a group at the same words.
    const Words same = {vop1("v_mov_b32", 14, zero), vop1("v_mov_b32", 15, zero)};
    const Words clear = join({same, encode::ds("ds_store_b64", 0, 14, 14), {wait(0, 0), sopp("s_barrier")}});
    const auto local = [&](const std::string& what, unsigned dst) {
      const std::size_t type = what.find('_');
      const std::string rtn = dst != 0 ? "_rtn" : "";
      return encode::ds(("ds_" + what.substr(0, type) + rtn + what.substr(type)).c_str(), dst, 14, 12);
    };
    for (const unsigned dst : {0, 18}) {  // 18: it gives the old value, which orders the two atomics
      if (dst != 0 && each.changes) continue;
      run("LDS", clear, local(name, dst), join({encode::ds("ds_load_b32", 16, 14, 0), done}), {});
      run("LDS, 64 bits", clear, local(wide, dst), join({encode::ds("ds_load_b64", 16, 14, 0), done}), {});
    }
  }
}

TEST_CASE("simulator hazards: a stale cache", "[simulator][hazards]") {
  const Words waits = {wait(0, 0), wait_for_stores(), sopp("s_barrier")};
  for (const char* load : {"s_load_b32", "s_load_b64", "s_load_b128", "s_load_b256", "s_load_b512"}) {
    const Words store = join({{vop1("v_mov_b32", 12, 130)}, global("global_store_b32", 0, 2, 12), waits});
    // s_dcache_inv has no operands: its words are those of a load without any.
    const Words invalidate = {0xF4000000U | encode::number("s_dcache_inv") << 18U, 0xF8000000U};
    const Words scalar = encode::smem(load, 16, 0, 0);
    check(load, store, invalidate, scalar, "scalar cache", Shows::after);
  }
}

TEST_CASE("simulator hazards: code for another wave size", "[simulator][hazards]") {
  const Shape wave64{1, true};
  for (const char* base :
       {"s_and_saveexec", "s_or_saveexec", "s_xor_saveexec", "s_nand_saveexec", "s_nor_saveexec", "s_xnor_saveexec",
        "s_and_not0_saveexec", "s_and_not1_saveexec", "s_or_not0_saveexec", "s_or_not1_saveexec"}) {
    INFO(base);
    const Words low = {sop1((std::string(base) + "_b32").c_str(), 40, minus_one)};
    const Words whole = {sop1((std::string(base) + "_b64").c_str(), 40, minus_one)};
    Planted program;
    std::optional<Fault> fault = program.run(low, wave64);
    REQUIRE(fault);
    CHECK_THAT(fault->reason, Catch::Contains("waves of 32 lanes runs in a wave of 64"));
    CHECK(fault->address == program.at(0));
    CHECK_FALSE(program.run(whole, wave64));
    fault = program.run(whole);
    REQUIRE(fault);
    CHECK_THAT(fault->reason, Catch::Contains("waves of 64 lanes runs in a wave of 32"));
    CHECK_FALSE(program.run(low));
  }
  const Words vector = {vop1("v_mov_b32", 12, 128)};
  for (const U low : {sop1("s_mov_b32", exec_lo, minus_one), sop2("s_and_b32", exec_lo, exec_lo, minus_one),
                      sop2("s_or_b32", exec_lo, exec_lo, minus_one), sop2("s_xor_b32", exec_lo, exec_lo, 128),
                      sop2("s_and_not1_b32", exec_lo, exec_lo, 128), sopk("s_movk_i32", exec_lo, -1)}) {
    check("exec_lo", {low}, {sop1("s_mov_b32", exec_hi, minus_one)}, vector, "EXEC_LO was written without EXEC_HI",
          Shows::after, wave64);
    CHECK_FALSE(Planted().run(join({{low}, vector})));
  }
  for (const char* branch : {"s_cbranch_vccz", "s_cbranch_vccnz"}) {
    for (const U low : {sop1("s_mov_b32", vcc_lo, minus_one), sop2("s_and_b32", vcc_lo, vcc_lo, exec_lo)}) {
      check(branch, {low}, {sop1("s_mov_b32", 107, minus_one)}, {sopp(branch)}, "VCC_LO was written without VCC_HI",
            Shows::after, wave64);
    }
  }
}

TEST_CASE("simulator hazards: limits of comparing overlapping dispatches", "[simulator][hazards]") {
  constexpr std::uint32_t most_waves = 0xFFFF'FFFF, most_time = most_waves / 2;
  constexpr std::uint64_t most_pages = 2048;
  GroupOrder group;
  // Whether the dispatch's first wave may write a word at `address`.
  const auto writes = [&group](Races& races, std::uint64_t address) {
    WaveOrder wave;
    wave.wave = races.first_wave();
    wave.group = &group;
    AccessOf access;
    access.kind = AccessKind::write;
    access.address = address;
    access.bytes = 4;
    access.time = ++races.now;
    return races.access(wave, access, [] { return false; });
  };
  {
    Races races;  // by the number of waves
    races.start(0, 1, 1, false);
    CHECK(races.first_wave() == 1);
    CHECK(writes(races, 0));
    races.start(0, 1, most_waves - 2, true);
    CHECK(races.first_wave() == 2);
    CHECK_FALSE(writes(races, 0));
    CHECK_THAT(races.take_reason(), Catch::Contains("wave 0 of group 0 at 0x0 in an earlier dispatch wrote"));
    races.start(0, 1, 1, true);
    CHECK(races.first_wave() == 1);
    CHECK(writes(races, 0));
  }
  {
    Races races;  // by the number of operations
    races.start(0, 1, 1, false);
    races.now = most_time - 1;
    CHECK(writes(races, 0));
    races.start(0, 1, 1, true);
    CHECK(races.now == most_time);
    CHECK(races.first_wave() == 2);
    CHECK_FALSE(writes(races, 0));
    races.start(0, 1, 1, true);
    CHECK(races.now == 0U);
    CHECK(races.first_wave() == 1);
    CHECK(writes(races, 0));
  }
  {
    Races races;  // by the number of pages
    races.start(0, 1, 1, false);
    std::uint64_t written = 0;
    for (std::uint64_t page = 0; page < most_pages; ++page) written += writes(races, page * Page::bytes) ? 1 : 0;
    CHECK(written == most_pages);
    races.start(0, 1, 1, true);
    CHECK(races.first_wave() == 2);
    CHECK_FALSE(writes(races, 0));
    CHECK(writes(races, most_pages * Page::bytes));
    races.start(0, 1, 1, true);
    CHECK(races.first_wave() == 1);
    CHECK(writes(races, 0));
  }
}

TEST_CASE("simulator hazards: dispatches that nothing separates race as waves do") {
  const Words done = {wait(0, 0), wait_for_stores()};
  const Words increment = join({global("global_load_b32", 16, 2, 0),
                                done,
                                {vop2("v_add_nc_u32", 16, 129, 16)},
                                global("global_store_b32", 0, 2, 16),
                                done});
  const Words store = join({global("global_store_b32", 0, 2, 8), done}),
              load = join({global("global_load_b32", 16, 2, 0), done});
  const Words add = join({global("global_atomic_add_u32", 0, 2, 8), done});
  struct Case {
    const char* name;
    Words words;
    bool race;
    unsigned dispatches = 2;
  };
  const Case cases[] = {{"reads what the other wrote", increment, true},
                        {"the third reads what the first wrote", increment, true, 3},
                        {"both write the same", store, false},
                        {"both read", load, false},
                        {"both add by atomics", add, false}};
  for (const Case& each : cases) {
    INFO(each.name);
    Planted program;
    const auto apart = program.run(each.words, {.dispatches = each.dispatches});
    if (apart) FAIL_CHECK("apart: " << describe(*apart));
    const auto together = program.run(each.words, {.dispatches = each.dispatches, .overlap = true});
    if (together) UNSCOPED_INFO(describe(*together));
    CHECK(together.has_value() == each.race);
    if (!together) continue;
    CHECK(together->kind == FaultKind::hazard);
    CHECK_THAT(together->reason, Catch::Contains("in an earlier dispatch") && Catch::Contains("CS_PARTIAL_FLUSH"));
    CHECK(together->address == program.at(0));
  }
}

}  // namespace kiln::simulator::test

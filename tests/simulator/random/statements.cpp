// Draws statements: of vectors, atomics, operations on lanes, and control flow.
#include <algorithm>

#include "tests/simulator/random/generator.hpp"

namespace kiln::simulator::test::drawn {

Statement Generator::assign(const Place& to, E value) {
  Statement s;
  s.kind = Statement::Kind::assign;
  s.value = cast(to.type, std::move(value));
  s.text = to.text + " = " + s.value->text + ";";
  s.to = to;
  return s;
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
  for (const Variable& v : outputs_) {
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

}  // namespace kiln::simulator::test::drawn

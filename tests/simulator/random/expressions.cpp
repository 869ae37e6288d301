// Draws expressions, each with its text and with what it computes.
#include <algorithm>
#include <bit>
#include <cmath>

#include "tests/simulator/random/generator.hpp"

namespace kiln::simulator::test::drawn {

namespace {

__extension__ using Wide = __int128;
__extension__ using UnsignedWide = unsigned __int128;

float float_of(U64 bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits)); }
U64 canonical(float value) { return value != value ? 0x7FC00000U : std::bit_cast<std::uint32_t>(value); }
double double_of(U64 bits) { return std::bit_cast<double>(bits); }
U64 canonical(double value) { return value != value ? 0x7FF8000000000000U : std::bit_cast<U64>(value); }

}  // namespace

E Generator::constant(Type type, U64 value) {
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

E Generator::operation(Type type, const std::string& name, std::vector<E> operands,
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

E Generator::typed(Type type, const std::string& name, std::vector<E> operands,
                   std::function<U64(const U64*)> compute) {
  return operation(type, name + "_" + name_of(type), std::move(operands), std::move(compute));
}

E Generator::read(const Place& place) {
  auto e = std::make_shared<Expression>();
  e->kind = Expression::Kind::read;
  e->type = place.type;
  e->place = place;
  e->text = place.text;
  return e;
}

E Generator::cast(Type type, const E& value) {
  if (value->type == type) return value;
  // A negative number is extended by its sign first: languages differ in how far a conversion to unsigned does so.
  if (is_signed(value->type) && !is_signed(type) && bits_of(type) > bits_of(value->type)) {
    return cast(type, cast(signed_of(type), value));
  }
  return operation(type, "to_" + name_of(type), {value}, [](const U64* v) { return v[0]; });
}

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

}  // namespace kiln::simulator::test::drawn

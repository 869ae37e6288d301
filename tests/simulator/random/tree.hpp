// The tree of a random program: what generator.cpp draws, interpreter.cpp runs and text.cpp prints.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/simulator/random/random_program.hpp"

namespace kiln::simulator::test::drawn {

using U64 = std::uint64_t;
using Language = RandomProgram::Language;

enum class Type : std::uint8_t { invalid = 0, truth, u8, i8, u16, i16, u32, i32, u64, i64 };

inline unsigned bits_of(Type type) {
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
inline bool is_signed(Type type) {
  return type == Type::i8 || type == Type::i16 || type == Type::i32 || type == Type::i64;
}
inline Type unsigned_of(Type type) { return is_signed(type) ? static_cast<Type>(static_cast<int>(type) - 1) : type; }
inline Type signed_of(Type type) { return is_signed(type) ? type : static_cast<Type>(static_cast<int>(type) + 1); }
inline std::string name_of(Type type) { return (is_signed(type) ? "i" : "u") + std::to_string(bits_of(type)); }
// A value of the type, extended to 64 bits by its sign, or by zeros.
inline U64 wrapped(Type type, U64 value) {
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

struct Result {
  std::string name;
  unsigned slot;
  bool high;  // the upper word of 64 bits
};

constexpr unsigned first_result = 4;  // of a thread's words; those before it are the program's to use

struct Program {
  std::string text;
  std::vector<Statement> main;
  std::vector<std::unique_ptr<Function>> functions;
  std::vector<U64> table;
  std::vector<Result> results;  // the words of a thread, from `first_result` on
  unsigned own_slots = 0, shared_slots = 0, word_slots = 0;
  unsigned threads = 64, groups = 2, local_slot = 0;
};

// generator.cpp
Program program_of(Language language, U64 seed);

// interpreter.cpp
RandomProgram::Results interpreted(const Program& program, const std::vector<std::uint32_t>& given, unsigned lanes);

// text.cpp: the definitions at a program's head, and its statements.
std::string prelude(Language language);
std::string printed(const std::vector<Statement>& list, unsigned indent);

}  // namespace kiln::simulator::test::drawn

// Draws a random program: expressions.cpp, statements.cpp, and the whole in generator.cpp.
#pragma once

#include <random>

#include "tests/simulator/random/tree.hpp"

namespace kiln::simulator::test::drawn {

class Generator : public Program {
 public:
  Generator(Language language, U64 seed) : language_(language), random_(seed * 4 + static_cast<U64>(language)) {
    types_ = {Type::u32, Type::i32, Type::u32, Type::i32, Type::u64, Type::i64};
    if (language != Language::opengl) types_.insert(types_.end(), {Type::u8, Type::i8, Type::u16, Type::i16});
  }

  void generate();

 private:
  bool cl() const { return language_ == Language::opencl; }
  unsigned draw(unsigned count) { return static_cast<unsigned>(random_() % count); }
  bool chance(unsigned percent) { return draw(100) < percent; }
  Type any_type() { return types_[draw(static_cast<unsigned>(types_.size()))]; }
  std::string fresh(const char* prefix) { return prefix + std::to_string(names_++); }

  static E constant(Type type, U64 value);
  static E operation(Type type, const std::string& name, std::vector<E> operands,
                     std::function<U64(const U64*)> compute);
  // Named by the type too: add_u32.
  static E typed(Type type, const std::string& name, std::vector<E> operands, std::function<U64(const U64*)> compute);
  static E read(const Place& place);
  E cast(Type type, const E& value);

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
  Statement assign(const Place& to, E value);
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
  std::vector<Variable> outputs_;
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

}  // namespace kiln::simulator::test::drawn

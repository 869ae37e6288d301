// Draws functions, the variables of a program and its main function.
#include "tests/simulator/random/generator.hpp"

namespace kiln::simulator::test::drawn {

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
    outputs_.push_back(v);
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

Program program_of(Language language, U64 seed) {
  Generator generator(language, seed);
  generator.generate();
  return generator;
}

}  // namespace kiln::simulator::test::drawn

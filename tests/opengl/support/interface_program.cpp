#include "opengl/support/interface_program.hpp"

#include <utility>

namespace kiln::support {
namespace {

using Block = InterfaceBlock;
using Uniform = InterfaceUniform;
using Term = InterfaceTerm;

class ProgramMaker {
 public:
  explicit ProgramMaker(Random random) : random_(random) {}

  InterfaceProgram make() {
    numbers_ = {0, 1, 2, 3, 4, 5, 6, 7};
    if (random_.chance(60)) random_.shuffle(numbers_);
    const std::uint32_t inputs = random_.below(4);
    for (std::uint32_t i = 0; i < inputs; ++i) add_input();
    add_output();
    const std::uint32_t uniforms = random_.below(5);
    for (std::uint32_t i = 0; i < uniforms; ++i) add_uniform();
    if (random_.chance(8)) add_opaque(true);
    if (random_.chance(8)) add_opaque(false);
    if (random_.chance(20)) add_choice();
    write_text();
    return std::move(program_);
  }

 private:
  std::string fresh(const char* prefix) {
    static const std::vector<std::string> tails = {"", "_a", "Data", "0x", "_", "Buffer", "readonly_", "uniform1"};
    std::string name = prefix + std::to_string(names_++) + random_.one_of(tails);
    return name.ends_with('_') && random_.chance(50) ? name + "z" : name;
  }

  GlslType any_type(bool boolean, bool structs) {
    if (structs && random_.chance(15)) return new_struct();
    for (;;) {
      // Scalars and float vectors are what kernels have most.
      const GlslType type =
          random_.chance(40) ? numeric_types()[random_.below(4) * 4] : random_.one_of(numeric_types());
      if (boolean || type.base != 'b') return type;
    }
  }

  static bool is_mixed(const GlslType& type) {
    const auto is_long = [](const GlslMember& member) { return member.type.base == 'd'; };
    return std::ranges::any_of(type.members, is_long) && !std::ranges::all_of(type.members, is_long);
  }

  GlslType new_struct() {
    GlslType type;
    type.name = fresh("S");
    type.base = 's';
    const std::uint32_t count = 1 + random_.below(3);
    for (std::uint32_t i = 0; i < count; ++i) {
      GlslMember member{"m" + std::to_string(i), any_type(false, false), {}};
      if (random_.chance(20)) member.lengths = {1 + random_.below(3)};
      type.members.push_back(std::move(member));
    }
    std::string text = "struct " + type.name + " {";
    for (const GlslMember& member : type.members) text += " " + declaration(member) + ";";
    structs_ += text + " };\n";
    return type;
  }

  // header members and one array, or only some of them
  std::vector<GlslMember> new_members(bool output) {
    std::vector<GlslMember> members;
    if (random_.chance(30)) members.push_back({fresh("h"), any_type(!output, !output), {}});
    if (random_.chance(15)) members.push_back({fresh("h"), any_type(!output, false), {1 + random_.below(3)}});
    if (output || members.empty() || random_.chance(80)) {
      const std::uint32_t length = random_.chance(60) ? 0 : lanes + random_.below(5);
      members.push_back({fresh("d"), any_type(!output, true), {length}});
    }
    return members;
  }

  std::optional<std::uint32_t> new_number() {
    if (random_.chance(8)) return std::nullopt;
    const std::uint32_t number = numbers_.empty() ? 9 : numbers_.front();
    if (!numbers_.empty()) numbers_.erase(numbers_.begin());
    return number;
  }

  // Adds the block, or the elements of an array of blocks, and its declaration. `qualifier`: of all members.
  std::size_t add_block(Block block, const std::string& qualifier, std::uint32_t length) {
    const bool instance = length != 0 || random_.chance(40);
    const std::string name = block.name;
    const std::string instance_name = instance ? fresh("i") : "";
    const bool at_members = !qualifier.empty() && random_.chance(30);
    std::string text = "layout(";
    text += block.packing == Packing::std140 ? "std140" : "std430";
    if (block.number) text += ", binding = " + number_text(*block.number);
    text += ") ";
    if (!at_members && !qualifier.empty() && random_.chance(50)) text += qualifier + " ";
    const bool behind = !at_members && !qualifier.empty() && text.find(qualifier) == std::string::npos;
    if (random_.chance(20)) text += random_.one_of(std::vector<std::string>{"restrict ", "coherent ", "volatile "});
    if (behind) text += qualifier + " ";
    if (random_.chance(10)) {
      defines_ += "#define QUALIFY_" + name + " " + text + "\n";
      text = "QUALIFY_" + name + " ";
    }
    text += "buffer " + name + " {";
    for (const GlslMember& member : block.members) {
      text += "\n  " + std::string(at_members ? qualifier + " " : "") + declaration(member) + ";";
    }
    text += "\n}" + (instance ? " " + instance_name : "") + (length != 0 ? "[" + std::to_string(length) + "]" : "");
    text += ";\n";
    declarations_.push_back(std::move(text));
    const std::size_t first = program_.blocks.size();
    for (std::uint32_t i = 0; i < std::max(length, 1u); ++i) {
      Block element = block;
      const std::string index = length == 0 ? "" : "[" + std::to_string(i) + "]";
      element.name += index;
      element.access = instance ? instance_name + index + "." : "";
      if (element.number) *element.number += i;
      program_.blocks.push_back(std::move(element));
    }
    return first;
  }

  std::string number_text(std::uint32_t number) {
    if (!random_.chance(15)) return std::to_string(number);
    const std::string name = "AT_" + std::to_string(names_++);
    if (random_.chance(50)) {
      program_.constants.push_back({name, std::to_string(number)});
    } else {
      defines_ += "#define " + name + " " + std::to_string(number) + "\n";
    }
    return name;
  }

  void add_input() {
    Block block;
    block.name = fresh("In");
    block.packing = random_.chance(25) ? Packing::std140 : Packing::std430;
    block.members = new_members(false);
    block.readonly = random_.chance(60);
    // The numbers of an array of blocks follow each other: they begin where no other block is.
    const std::uint32_t length = random_.chance(12) ? 1 + random_.below(3) : 0;
    block.number = length != 0 ? std::optional<std::uint32_t>(next_range_) : new_number();
    if (length != 0) next_range_ += length;
    const Block copy = block;
    const std::size_t first = add_block(std::move(block), copy.readonly ? "readonly" : "", length);
    if (random_.chance(12)) return;  // declared, not used
    // Mesa counts all elements of an array as active where one is.
    for (std::size_t i = first; i < program_.blocks.size(); ++i) program_.blocks[i].active = true;
    const std::uint32_t of = length == 0 ? 0 : random_.below(length);
    read(first + of);
    if (length == 0 && copy.number && random_.chance(12)) {  // a second block on the same binding
      Block twin = copy;
      twin.name = fresh("Twin");
      for (GlslMember& member : twin.members) member.name = fresh("t");
      read(add_block(std::move(twin), copy.readonly ? "readonly" : "", 0));
    }
  }

  void read(std::size_t index) {
    Block& block = program_.blocks[index];
    block.read = block.active = true;
    for (std::size_t m = 0; m < block.members.size(); ++m) {
      const GlslMember& member = block.members[m];
      Term term = new_term(index);
      term.member = m;
      term.component = random_.one_of(components(member.type, block.packing));
      if (!member.lengths.empty()) {
        const std::uint32_t length = member.lengths[0] == 0 ? lanes : member.lengths[0];
        if (random_.chance(70)) {
          term.count = 1 + random_.below(length);
        } else {
          term.element = random_.below(length);
        }
      }
      program_.terms.push_back(std::move(term));
    }
    if (block.open() && random_.chance(40)) {
      Term term = new_term(index);
      term.length = true;
      program_.terms.push_back(std::move(term));
    }
  }

  Term new_term(std::size_t index) {
    Term term;
    term.index = index;
    term.factor = random_.small(1, 3) * (random_.chance(50) ? 1 : -1);
    return term;
  }

  void add_output() {
    Block block;
    block.name = fresh("Out");
    block.packing = random_.chance(25) ? Packing::std140 : Packing::std430;
    block.members = new_members(true);
    block.writeonly = random_.chance(30);
    block.number = new_number();
    const bool in_place = !block.writeonly && random_.chance(30);
    const bool alias = block.number && random_.chance(10);
    const Block copy = block;
    const std::size_t index = add_block(std::move(block), copy.writeonly ? "writeonly" : "", 0);
    program_.blocks[index].written = program_.blocks[index].active = true;
    if (in_place) read_own(index);
    if (!alias) return;
    Block twin = copy;
    twin.name = fresh("Seen");
    twin.writeonly = false;
    twin.readonly = random_.chance(60);
    for (GlslMember& member : twin.members) member.name = fresh("t");
    const bool readonly = twin.readonly;
    read_own(add_block(std::move(twin), readonly ? "readonly" : "", 0));
  }

  // Each lane reads of the array only what it alone writes.
  void read_own(std::size_t index) {
    Block& block = program_.blocks[index];
    block.read = block.active = true;
    Term term = new_term(index);
    term.member = block.members.size() - 1;
    term.count = lanes;
    term.component = random_.one_of(components(block.members.back().type, block.packing));
    program_.terms.push_back(std::move(term));
  }

  void add_uniform() {
    GlslMember member{fresh("u"), any_type(true, true), {}};
    while (is_mixed(member.type)) member.type = any_type(true, true);  // Mesa: uniform_test.cpp
    if (random_.chance(35)) member.lengths.push_back(1 + random_.below(5));
    if (!member.lengths.empty() && random_.chance(25)) member.lengths.push_back(1 + random_.below(3));
    const bool has_default = random_.chance(35);
    std::vector<Uniform> leaves;
    if (member.type.base == 's') {
      if (member.lengths.size() == 2) member.lengths.pop_back();
      for (std::uint32_t i = 0; i < (member.lengths.empty() ? 1 : member.lengths[0]); ++i) {
        const std::string index = member.lengths.empty() ? "" : "[" + std::to_string(i) + "]";
        for (const GlslMember& part : member.type.members) {
          leaves.push_back({member.name + index + "." + part.name, part.type, part.lengths, {}, false, false, 0});
        }
      }
    } else {
      leaves.push_back({member.name, member.type, member.lengths, {}, false, false, 0});
    }
    if (has_default) {
      for (Uniform& leaf : leaves) {
        for (std::uint32_t i = 0; i < leaf.values(); ++i) leaf.defaults.push_back(any_value(leaf.type.base));
      }
    }
    declare_uniform(member, leaves, has_default);
    const bool unused = random_.chance(15);
    for (Uniform& leaf : leaves) {
      leaf.asked = !unused;
      program_.uniforms.push_back(leaf);
      if (!unused && random_.chance(70)) use(program_.uniforms.size() - 1);
    }
  }

  int any_value(char base) {
    return base == 'b' ? random_.small(0, 1) : base == 'u' ? random_.small(0, 9) : random_.small(-9, 9);
  }

  static std::string value_text(const GlslType& type, const int*& next) {
    std::string text = type.name + "(";
    for (std::uint32_t i = 0; i < type.rows * type.columns; ++i) {
      text += (i == 0 ? "" : ", ") + std::to_string(*next++);
    }
    return text + ")";
  }

  std::string array_text(const GlslType& type, const std::vector<std::uint32_t>& lengths, std::size_t from,
                         const int*& next, bool list) {
    if (from == lengths.size()) return value_text(type, next);
    std::string name = type.name;
    for (std::size_t i = from; i < lengths.size(); ++i) name += "[" + std::to_string(lengths[i]) + "]";
    std::string text = list ? "{ " : name + "(";
    for (std::uint32_t i = 0; i < lengths[from]; ++i) {
      text += (i == 0 ? "" : ", ") + array_text(type, lengths, from + 1, next, list);
    }
    return text + (list ? " }" : ")");
  }

  void declare_uniform(const GlslMember& member, const std::vector<Uniform>& leaves, bool has_default) {
    std::string text;
    if (random_.chance(20)) {
      text = "layout(location = " + std::to_string(location_) + ") ";
      location_ += 64;
    }
    const bool macro = member.type.base != 's' && random_.chance(15);
    if (macro) {
      GlslMember rest = member;
      rest.type.name.clear();
      std::string declared = declaration(rest).substr(1);
      const std::size_t joint = declared.find('_');  // two parts of the name, which ## joins
      const bool joined = joint != std::string::npos;
      if (joined) declared.insert(joint, ", ");
      defines_ += "#define DECLARE_" + member.name + (joined ? "(T, A, B) uniform T A##B\n" : "(T, A) uniform T A\n");
      text += "DECLARE_" + member.name + "(" + member.type.name + ", " + declared + ")";
    } else {
      text += "uniform " + declaration(member);
    }
    if (has_default) text += " = " + initialiser(member, leaves, random_.chance(30));
    declarations_.push_back(text + ";\n");
  }

  std::string initialiser(const GlslMember& member, const std::vector<Uniform>& leaves, bool list) {
    if (member.type.base != 's') {
      const int* next = leaves[0].defaults.data();
      return array_text(member.type, member.lengths, 0, next, list);
    }
    const std::size_t parts = member.type.members.size();
    std::string text;
    for (std::size_t first = 0; first < leaves.size(); first += parts) {
      text += (first == 0 ? "" : ", ") + member.type.name + "(";
      for (std::size_t i = 0; i < parts; ++i) {
        const Uniform& leaf = leaves[first + i];
        const int* next = leaf.defaults.data();
        text += (i == 0 ? "" : ", ") + array_text(leaf.type, leaf.lengths, 0, next, false);
      }
      text += ")";
    }
    if (member.lengths.empty()) return text;
    return member.type.name + "[" + std::to_string(member.lengths[0]) + "](" + text + ")";
  }

  void use(std::size_t index) {
    Uniform& uniform = program_.uniforms[index];
    uniform.used = true;
    const std::vector<Component> all = components(uniform.type, Packing::std430);
    Term term = new_term(index);
    term.uniform = true;
    term.value = random_.below(all.size());
    term.component = all[term.value];
    if (!uniform.lengths.empty()) {
      // The first dimension by the lane or by a constant; the second, if there is one, by a constant.
      if (random_.chance(40)) {
        term.count = uniform.lengths[0];
        uniform.least = uniform.lengths[0];
      } else {
        term.element = random_.below(uniform.lengths[0]);
        uniform.least = term.element + 1;
      }
      if (uniform.lengths.size() == 2) term.member = random_.below(uniform.lengths[1]);
    }
    program_.terms.push_back(std::move(term));
  }

  void add_opaque(bool used) {
    const std::string name = fresh("q");
    std::string kind, use;
    switch (random_.below(4)) {
      case 0:
        kind = "image";
        declarations_.push_back("layout(rgba8, binding = 0) readonly uniform image2D " + name + ";\n");
        use = "int(imageLoad(" + name + ", ivec2(0)).x)";
        break;
      case 1:
        kind = "sampler";
        declarations_.push_back("layout(binding = 1) uniform sampler2D " + name + ";\n");
        use = "int(texelFetch(" + name + ", ivec2(0), 0).x)";
        break;
      case 2: {
        kind = "uniform block";
        const std::string member = fresh("v");
        // A block in std140 is active, used or not; this one's layout is the driver's own.
        declarations_.push_back("layout(packed) uniform " + name + " { float " + member + "; };\n");
        use = "int(" + member + ")";
        break;
      }
      default:
        kind = "atomic counter";
        declarations_.push_back("layout(binding = 0, offset = 0) uniform atomic_uint " + name + ";\n");
        use = "int(atomicCounter(" + name + "))";
    }
    if (!used) return;
    extra_ += "  acc += " + use + ";\n";
    // A block's values could be given: the message names the block and the key.
    program_.refused = {name, kind == "uniform block" ? "blocks = {" : kind};
  }

  // A declaration that the preprocessor chooses; the other branch has the same name and another type.
  void add_choice() {
    const std::string name = fresh("u");
    const bool first = random_.chance(50);
    program_.constants.push_back({"CHOICE", first ? "1" : "0"});
    declarations_.push_back("#if CHOICE\nuniform int " + name + ";\n#else\nuniform vec2 " + name + ";\n#endif\n");
    const auto& types = numeric_types();
    const GlslType type = *std::ranges::find(types, first ? "int" : "vec2", &GlslType::name);
    program_.uniforms.push_back({name, type, {}, {}, false, false, 0});
    use(program_.uniforms.size() - 1);
  }

  std::string expression(const Term& term) const {
    const std::string index =
        term.count == 0 ? "[" + std::to_string(term.element) + "]" : "[i % " + std::to_string(term.count) + "u]";
    if (term.uniform) {
      const Uniform& uniform = program_.uniforms[term.index];
      std::string text = uniform.name;
      if (!uniform.lengths.empty()) text += index;
      if (uniform.lengths.size() == 2) text += "[" + std::to_string(term.member) + "]";
      return text + term.component.suffix;
    }
    const Block& block = program_.blocks[term.index];
    if (term.length) return block.access + block.members.back().name + ".length()";
    const GlslMember& member = block.members[term.member];
    return block.access + member.name + (member.lengths.empty() ? "" : index) + term.component.suffix;
  }

  void write_text() {
    program_.bias = random_.small(-5, 5);
    random_.shuffle(program_.terms);
    random_.shuffle(declarations_);
    std::string text =
        "#version 450\n" + defines_ + "layout(local_size_x = " + std::to_string(lanes) + ") in;\n" + structs_;
    for (const std::string& declared : declarations_) text += declared;
    text += "void main() {\n  uint i = gl_LocalInvocationIndex;\n  int acc = " + std::to_string(program_.bias) + ";\n";
    for (const Term& term : program_.terms) {
      text += "  acc += " + std::to_string(term.factor) + " * int(" + expression(term) + ");\n";
    }
    text += extra_;
    for (const Block& block : program_.blocks) {
      if (!block.written) continue;
      int shift = 0;
      for (const Component& component : components(block.members.back().type, block.packing)) {
        const char base = component.base;
        const std::string to = base == 'f' ? "float" : base == 'd' ? "double" : base == 'i' ? "int" : "uint";
        text += "  " + block.access + block.members.back().name + "[i]" + component.suffix + " = " + to + "(acc + " +
                std::to_string(shift++) + ");\n";
      }
    }
    program_.text = text + "}\n";
  }

  Random random_;
  InterfaceProgram program_;
  std::vector<std::uint32_t> numbers_;
  std::uint32_t next_range_ = 10;
  unsigned names_ = 0;
  unsigned location_ = 0;
  std::string structs_, defines_, extra_;
  std::vector<std::string> declarations_;
};

}  // namespace

InterfaceProgram random_program(std::mt19937_64& engine) { return ProgramMaker(Random(engine)).make(); }

}  // namespace kiln::support

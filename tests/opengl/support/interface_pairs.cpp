#include "opengl/support/interface_pairs.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

namespace kiln::support {
namespace {

using Block = InterfaceBlock;
using Uniform = InterfaceUniform;
using Term = InterfaceTerm;
using Type = UserKernelSpec::Uniform::Type;

struct Provision {  // an element of `bindings`
  std::vector<std::size_t> blocks;
  UserKernelSpec::Binding binding;
  std::vector<std::byte> bytes;
};

struct Given {  // a member of `uniforms`
  std::size_t uniform = 0;
  UserKernelSpec::Uniform spec;
  std::vector<std::int64_t> values;  // row by row
};

// 'f', 'd', 'i' (also u and b), or 'm': several.
char class_of(const GlslType& type) {
  if (type.base != 's') return type.base == 'u' || type.base == 'b' ? 'i' : type.base;
  char common = 0;
  for (const GlslMember& member : type.members) {
    const char one = class_of(member.type);
    common = common == 0 || common == one ? one : 'm';
  }
  return common;
}

char class_of(const Block& block) {
  char common = 0;
  for (const GlslMember& member : block.members) {
    const char one = class_of(member.type);
    common = common == 0 || common == one ? one : 'm';
  }
  return common;
}

// Of a block that is one array with padding between its elements, the bytes from one to the next; 0: it is none.
std::uint64_t padded_row(const Block& block) {
  if (block.members.size() != 1) return 0;
  const GlslMember* member = &block.members.front();
  while (member->type.base == 's' && member->lengths.empty() && member->type.members.size() == 1) {
    member = &member->type.members.front();
  }
  const GlslType& type = member->type;
  if (type.base == 's' || member->lengths.empty()) return 0;
  const std::uint64_t row = stride(type, block.packing);
  return row == std::uint64_t{type.rows} * type.columns * scalar_bytes(type.base) ? 0 : row;
}

// Of `length` elements of the last array, the end of the last component.
std::uint64_t end_of(const Block& block, std::uint64_t length) {
  const GlslMember& last = block.members.back();
  std::uint64_t end = 0;
  for (const Component& each : components(last.type, block.packing)) {
    end = std::max(end, each.offset + scalar_bytes(each.base));
  }
  const std::uint64_t count = last.lengths.empty() ? 1 : last.lengths[0] == 0 ? length : last.lengths[0];
  return offsets(block.members, block.packing)[block.members.size() - 1] +
         (count - 1) * stride(last.type, block.packing) + end;
}

void set_bytes(Provision& provision, std::uint64_t bytes, DType dtype, std::uint64_t row) {
  provision.bytes.resize(bytes, std::byte{0x5a});
  provision.binding.dtype = dtype;
  provision.binding.bytes = bytes;
  const std::uint64_t elements = bytes / size_of(dtype);
  provision.binding.shape = {static_cast<std::int64_t>(elements)};
  if (row == 0) return;
  const std::uint64_t in_row = row / size_of(dtype);
  provision.binding.shape = {static_cast<std::int64_t>(elements / in_row), static_cast<std::int64_t>(in_row)};
}

// Of a program with an array of structs of known length Mesa lists wrong members: only types and sizes are compared.
bool has_array_of_structs(const InterfaceProgram& program) {
  return std::ranges::any_of(program.blocks, [](const Block& block) {
    return std::ranges::any_of(
        block.members, [](const GlslMember& member) { return member.type.base == 's' && !member.lengths.empty(); });
  });
}

std::string described(const Block& block) { return "storage block " + block.name; }

class JobMaker {
 public:
  JobMaker(const InterfaceProgram& program, Random random) : program_(program), random_(random) {}

  InterfacePair make() {
    provide_blocks();
    provide_uniforms();
    pair_.what = "right";
    evaluate();
    if (!program_.refused.empty()) {
      pair_.what = "uses what no job can provide";
      pair_.words = program_.refused;
    } else if (random_.chance(55)) {
      for (int tries = 0; tries < 20 && pair_.words.empty(); ++tries) break_job();
    }
    write_request();
    return std::move(pair_);
  }

 private:
  void provide_blocks() {
    std::vector<bool> done(program_.blocks.size());
    for (std::size_t i = 0; i < program_.blocks.size(); ++i) {
      const Block& block = program_.blocks[i];
      if (done[i]) continue;
      Provision provision{{i}, {}, {}};
      done[i] = true;
      if (!block.active && !random_.chance(40)) continue;
      if (!block.number || random_.chance(40)) {
        provision.binding.name = block.name;
        if (block.number && random_.chance(10)) provision.binding.number = block.number;
      } else {
        provision.binding.number = block.number;
        for (std::size_t other = i + 1; other < program_.blocks.size(); ++other) {
          if (program_.blocks[other].number != block.number) continue;
          provision.blocks.push_back(other);
          done[other] = true;
        }
      }
      fill(provision);
      provisions_.push_back(std::move(provision));
    }
    random_.shuffle(provisions_);
  }

  void fill(Provision& provision) {
    const Block& block = program_.blocks[provision.blocks.front()];
    bool read = false, written = false, readonly = true, writeonly = false;
    for (const std::size_t each : provision.blocks) {
      const Block& one = program_.blocks[each];
      read = read || one.read;
      written = written || one.written;
      readonly = readonly && one.readonly;
      writeonly = writeonly || one.writeonly;
    }
    UserKernelSpec::Binding& binding = provision.binding;
    binding.access = Access::read;
    if (written) binding.access = read || random_.chance(60) ? Access::read_write : Access::write;
    if (!written && !readonly && block.used() && random_.chance(20)) binding.access = Access::read_write;
    if (!written && writeonly) binding.access = Access::read_write;
    const std::uint64_t length = lanes + random_.below(4);
    std::uint64_t bytes = offsets(block.members, block.packing, length).back();
    const char held = class_of(block);
    DType dtype = held == 'f'   ? DType::f32
                  : held == 'd' ? DType::f64
                  : held == 'i' ? (random_.chance(50) ? DType::i32 : DType::u32)
                                : random_.one_of(std::vector<DType>{DType::u8, DType::f32, DType::i32});
    if (random_.chance(15)) dtype = DType::u8;
    const std::uint64_t row = padded_row(block);
    if (!block.open() && row == 0 && random_.chance(20)) bytes += std::uint64_t{size_of(dtype)} * random_.below(5);
    set_bytes(provision, bytes, dtype, row);
    const std::vector<std::uint64_t> begins = offsets(block.members, block.packing, length);
    for (std::size_t m = 0; m < block.members.size(); ++m) {
      const GlslMember& member = block.members[m];
      const std::uint64_t count = member.lengths.empty() ? 1 : member.lengths[0] == 0 ? length : member.lengths[0];
      for (std::uint64_t element = 0; element < count; ++element) {
        for (const Component& each : components(member.type, block.packing)) {
          const std::uint64_t at = begins[m] + element * stride(member.type, block.packing) + each.offset;
          write_scalar(provision.bytes.data() + at, each.base, any_value(each.base));
        }
      }
    }
  }

  int any_value(char base) {
    return base == 'b' ? random_.small(0, 1) : base == 'u' ? random_.small(0, 9) : random_.small(-9, 9);
  }

  void provide_uniforms() {
    values_.resize(program_.uniforms.size());
    for (std::size_t i = 0; i < program_.uniforms.size(); ++i) {
      const Uniform& uniform = program_.uniforms[i];
      values_[i] = uniform.defaults;
      const bool needed = (uniform.used || uniform.asked) && uniform.defaults.empty();
      if (!needed && random_.chance(50)) continue;
      values_[i].clear();
      for (std::uint32_t v = 0; v < uniform.values(); ++v) values_[i].push_back(any_value(uniform.type.base));
      const std::vector<std::uint32_t>& lengths = uniform.lengths;
      const bool many = lengths.size() + (uniform.type.rows > 1 ? 1 : 0) + (uniform.type.columns > 1 ? 1 : 0) > 3;
      if (lengths.size() == 2 && (many || random_.chance(30))) {
        for (std::uint32_t k = 0; k < lengths[0]; ++k) {
          give(i, uniform.name + "[" + std::to_string(k) + "]", {lengths[1]}, k * lengths[1], lengths[1]);
        }
      } else {
        give(i, uniform.name, lengths, 0, uniform.elements());
      }
    }
    random_.shuffle(given_);
  }

  void give(std::size_t index, std::string name, std::vector<std::uint32_t> shape, std::uint32_t first,
            std::uint32_t count) {
    const GlslType& type = program_.uniforms[index].type;
    const bool real = type.base == 'f' || type.base == 'd';
    Given given{index, {std::move(name), Type::integer, std::move(shape)}, {}};
    given.spec.type = type.base == 'b' ? Type::boolean : real && random_.chance(60) ? Type::number : Type::integer;
    if (type.rows > 1) given.spec.shape.push_back(type.rows);
    if (type.columns > 1) given.spec.shape.push_back(type.columns);
    for (std::uint32_t element = first; element < first + count; ++element) {
      for (std::uint32_t row = 0; row < type.rows; ++row) {
        for (std::uint32_t column = 0; column < type.columns; ++column) {
          given.values.push_back(values_[index][(element * type.columns + column) * type.rows + row]);
        }
      }
    }
    given_.push_back(std::move(given));
  }

  const Provision& provision_of(std::size_t block) const {
    return *std::ranges::find_if(provisions_, [block](const Provision& provision) {
      return std::ranges::find(provision.blocks, block) != provision.blocks.end();
    });
  }

  int value_of(const Term& term, std::uint32_t lane) const {
    if (term.uniform) {
      const Uniform& uniform = program_.uniforms[term.index];
      std::size_t element = uniform.lengths.empty() ? 0 : term.at(lane);
      if (uniform.lengths.size() == 2) element = element * uniform.lengths[1] + term.member;
      return values_[term.index][element * uniform.type.rows * uniform.type.columns + term.value];
    }
    const Block& block = program_.blocks[term.index];
    const std::vector<std::byte>& bytes = provision_of(term.index).bytes;
    const std::vector<std::uint64_t> begins = offsets(block.members, block.packing);
    const GlslMember& member = block.members[term.length ? block.members.size() - 1 : term.member];
    const std::uint64_t step = stride(member.type, block.packing);
    if (term.length) return static_cast<int>((bytes.size() - begins[block.members.size() - 1]) / step);
    const std::uint64_t element = member.lengths.empty() ? 0 : term.at(lane);
    const std::uint64_t at = begins[term.member] + element * step + term.component.offset;
    return static_cast<int>(read_scalar(bytes.data() + at, term.component.base));
  }

  void evaluate() {
    for (Provision& provision : provisions_) {
      const bool whole = provision.binding.access != Access::write;
      pair_.expected.push_back({provision.bytes, std::vector<bool>(provision.bytes.size(), whole)});
    }
    for (std::uint32_t lane = 0; lane < lanes; ++lane) {
      int sum = program_.bias;
      for (const Term& term : program_.terms) sum += term.factor * value_of(term, lane);
      for (std::size_t i = 0; i < program_.blocks.size(); ++i) {
        const Block& block = program_.blocks[i];
        if (!block.written) continue;
        InterfacePair::Expected& expected =
            pair_.expected[static_cast<std::size_t>(&provision_of(i) - provisions_.data())];
        const GlslMember& member = block.members.back();
        const std::uint64_t begin =
            offsets(block.members, block.packing)[block.members.size() - 1] + lane * stride(member.type, block.packing);
        int shift = 0;
        for (const Component& each : components(member.type, block.packing)) {
          const std::uint64_t at = begin + each.offset;
          write_scalar(expected.bytes.data() + at, each.base, sum + shift++);
          for (std::uint64_t b = 0; b < scalar_bytes(each.base); ++b) expected.compared[at + b] = true;
        }
      }
    }
  }

  // One thing wrong, where the job has what it can be wrong with.
  void break_job() {
    if (random_.chance(50)) {
      const std::size_t at = random_.below(provisions_.size());
      const auto used = std::ranges::find_if(provisions_[at].blocks,
                                             [this](std::size_t block) { return program_.blocks[block].used(); });
      if (used != provisions_[at].blocks.end()) break_binding(at, program_.blocks[*used]);
    } else if (!given_.empty()) {
      const std::size_t at = random_.below(given_.size());
      if (program_.uniforms[given_[at].uniform].used) break_uniform(at);
    }
  }

  void wrong(std::string what, std::vector<std::string> words) {
    pair_.what = std::move(what);
    pair_.words = std::move(words);
  }

  void break_binding(std::size_t at, const Block& block) {
    Provision& provision = provisions_[at];
    UserKernelSpec::Binding& binding = provision.binding;
    const bool has_other = std::ranges::any_of(provisions_, [&](const Provision& other) {
      return &other != &provision && other.binding.name.empty() && other.binding.number == block.number.value_or(0);
    });
    const bool layout_known = !has_array_of_structs(program_);
    switch (random_.below(10)) {
      case 0:
        if (has_other) return;
        provisions_.erase(provisions_.begin() + static_cast<std::ptrdiff_t>(at));
        return wrong("a binding is missing", {described(block)});
      case 1:
        if (binding.name.empty() || has_other) return;
        binding.name += "x";
        binding.number.reset();
        return wrong("a block's name is mistyped", {described(block), "\"" + binding.name + "\""});
      case 2:
        if (!binding.name.empty()) return;
        binding.number = 60;
        return wrong("a block's number is wrong", {described(block), "binding = 60"});
      case 3: {
        const char held = class_of(block);
        if (held == 'm') return;
        const std::uint64_t row = padded_row(block);
        set_bytes(provision, provision.bytes.size() / 4 * 4, held == 'f' ? DType::i32 : DType::f32, row);
        return wrong("elements of another type", {described(block)});
      }
      case 4: {
        const bool readonly =
            std::ranges::all_of(provision.blocks, [this](std::size_t b) { return program_.blocks[b].readonly; });
        if (!readonly && !block.writeonly) return;
        binding.access = !readonly ? Access::read : random_.chance(50) ? Access::write : Access::read_write;
        return wrong("another access", {described(block)});
      }
      case 5:
        if (!layout_known && end_of(block, 1) <= 16) return;
        set_bytes(provision, end_of(block, 1) - (layout_known ? 1 : 16), DType::u8, 0);
        return wrong("too small", {described(block)});
      case 6:
        if (!block.open() || !layout_known) return;
        set_bytes(provision, provision.bytes.size() + 1, DType::u8, 0);
        return wrong("a part of an element", {described(block)});
      case 7:
        if (padded_row(block) == 0 || !layout_known || provision.binding.shape[0] == 1) return;
        // In one dimension; as uint8 that would be the block's bytes as they are.
        set_bytes(provision, provision.bytes.size(),
                  class_of(block) == 'd'   ? DType::f64
                  : class_of(block) == 'f' ? DType::f32
                                           : DType::i32,
                  0);
        return wrong("rows without padding", {described(block)});
      case 8: {
        if (binding.name.empty() || !block.number) return;
        binding.number = *block.number + 1;
        return wrong("a name and the number of another binding", {described(block)});
      }
      default: {
        Provision extra{{}, {}, {}};
        extra.binding.access = Access::read;
        const bool name = random_.chance(50);
        if (name) extra.binding.name = "Ghost";
        if (!name) extra.binding.number = 70;
        set_bytes(extra, 64, DType::f32, 0);
        provisions_.push_back(std::move(extra));
        return wrong("a binding too many", {name ? "\"Ghost\"" : "binding = 70"});
      }
    }
  }

  void break_uniform(std::size_t at) {
    Given& given = given_[at];
    const Uniform& uniform = program_.uniforms[given.uniform];
    const char base = uniform.type.base;
    const bool whole = given.spec.name == uniform.name;  // not one row of an array of arrays, which may be unused
    switch (random_.below(7)) {
      case 0:
        if (!uniform.defaults.empty() || !whole) return;
        given_.erase(given_.begin() + static_cast<std::ptrdiff_t>(at));
        return wrong("a uniform is missing", {uniform.name});
      case 1:
        given.spec.name += "x";
        // With a dot it may also be meant for a member of a block.
        return wrong("a uniform's name is mistyped",
                     {(given.spec.name.find('.') == std::string::npos ? "uniforms." : "uniforms or blocks: ") +
                      given.spec.name});
      case 2:
        if (!whole || given.spec.shape.size() == 3) return;
        given.spec.shape.push_back(2);
        given.values.resize(given.values.size() * 2, 1);
        return wrong("a dimension too many", {uniform.name});
      case 3:
        if (!whole || given.spec.shape.empty()) return;
        return break_length(given, uniform);
      case 4:
        if (!whole) return;
        given.spec.type = base == 'b'                  ? random_.chance(50) ? Type::integer : Type::number
                          : base == 'f' || base == 'd' ? Type::boolean
                          : random_.chance(50)         ? Type::number
                                                       : Type::boolean;
        return wrong("values of another type", {uniform.name});
      case 5:
        if (!whole || base == 'b' || base == 'd' || given.spec.type == Type::number) return;
        for (std::int64_t& value : given.values) {
          value = base == 'f' ? 16777217 : base == 'i' ? std::int64_t{1} << 31 : random_.chance(50) ? -1 : 1ll << 32;
        }
        return wrong("a value that the type cannot hold", {uniform.name});
      default:
        given_.push_back({0, {"ghost", Type::number, {}}, {1}});
        return wrong("a uniform too many", {"uniforms.ghost"});
    }
  }

  void break_length(Given& given, const Uniform& uniform) {
    std::vector<std::uint32_t>& shape = given.spec.shape;
    const std::uint32_t first = shape[0];
    if (uniform.lengths.empty()) {
      if (shape.size() == 2 && shape[0] != shape[1] && random_.chance(50)) {
        std::swap(shape[0], shape[1]);
        return wrong("a matrix column by column", {uniform.name});
      }
      shape[0] += random_.chance(50) && first > 1 ? -1u : 1u;
    } else if (uniform.least > 1 && random_.chance(50)) {
      shape[0] = uniform.least - 1;
    } else {
      shape[0] = uniform.lengths[0] + 2;
    }
    given.values.resize(given.values.size() / first * shape[0], 1);
    wrong("a dimension of another length", {uniform.name});
  }

  void write_request() {
    UserKernelSpec spec;
    spec.path = "pair.comp";
    spec.dialect = Dialect::glsl;
    spec.text = program_.text;
    spec.constants = program_.constants;
    const bool positions = pair_.words.empty() && random_.chance(50);
    const bool refused = !pair_.words.empty();
    if (refused) pair_.expected.clear();
    for (std::size_t i = 0; i < provisions_.size(); ++i) {
      Provision& provision = provisions_[i];
      if (positions && provision.binding.name.empty() && provision.binding.number == i) {
        provision.binding.number.reset();
      }
      spec.bindings.push_back(provision.binding);
      add_tensor(provision.bytes, provision.binding.dtype, provision.binding.shape);
      if (refused) pair_.expected.push_back({provision.bytes, std::vector<bool>(provision.bytes.size(), true)});
    }
    std::vector<std::byte> values;
    for (const Given& given : given_) {
      spec.uniforms.push_back(given.spec);
      for (const std::int64_t value : given.values) {
        const double number = static_cast<double>(value);
        std::byte bytes[sizeof value];
        if (given.spec.type == Type::number) {
          std::memcpy(bytes, &number, sizeof number);
        } else {
          std::memcpy(bytes, &value, sizeof value);
        }
        values.insert(values.end(), std::begin(bytes), std::end(bytes));
      }
    }
    if (!given_.empty()) add_tensor(values, DType::u8, {static_cast<std::int64_t>(values.size())});
    pair_.request.name = "pair";
    pair_.request.device = "opengl:0";
    pair_.request.spec = std::move(spec);
  }

  void add_tensor(std::span<const std::byte> bytes, DType dtype, const Shape& shape) {
    auto tensor = HostTensor::create(dtype, shape).value();
    std::ranges::copy(bytes, tensor->bytes().begin());
    pair_.request.tensors.push_back({std::move(tensor), nullptr});
  }

  const InterfaceProgram& program_;
  Random random_;
  InterfacePair pair_;
  std::vector<Provision> provisions_;
  std::vector<Given> given_;
  std::vector<std::vector<int>> values_;  // of each uniform, as InterfaceUniform::defaults has them
};

}  // namespace

std::string InterfacePair::fault(const Status& status) const {
  if (words.empty() && !status.ok()) return "refused: " + status.text();
  if (!words.empty() && status.ok()) return "not refused";
  for (const std::string& word : words) {
    if (status.text().find(word) == std::string::npos) return "'" + word + "' is missing in: " + status.text();
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::span<const std::byte> found = std::as_const(*request.tensors[i].host).bytes();
    for (std::size_t at = 0; at < found.size(); ++at) {
      if (!expected[i].compared[at] || found[at] == expected[i].bytes[at]) continue;
      return "bindings[" + std::to_string(i) + "]: byte " + std::to_string(at) + " is " +
             std::to_string(std::to_integer<int>(found[at])) + ", expected " +
             std::to_string(std::to_integer<int>(expected[i].bytes[at]));
    }
  }
  return "";
}

std::string InterfacePair::text() const {
  const auto& spec = std::get<UserKernelSpec>(request.spec);
  std::string all = "job: " + what + "\n";
  for (const Define& constant : spec.constants) all += "constant " + constant.name + " = " + constant.text + "\n";
  for (const UserKernelSpec::Binding& binding : spec.bindings) {
    all += std::string("binding name '") + binding.name + "' number " +
           (binding.number ? std::to_string(*binding.number) : "-") + " access " +
           std::to_string(static_cast<int>(binding.access)) + " " + std::string(to_string(binding.dtype)) + " " +
           to_string(binding.shape) + "\n";
  }
  for (const UserKernelSpec::Uniform& uniform : spec.uniforms) {
    all += "uniform " + uniform.name + " type " + std::to_string(static_cast<int>(uniform.type)) + " shape";
    for (const std::uint32_t extent : uniform.shape) all += " " + std::to_string(extent);
    all += "\n";
  }
  return all + spec.text;
}

InterfacePair InterfacePairs::next() {
  if (left_ == 0) {
    program_ = random_program(random_);
    left_ = 5;
  }
  --left_;
  return JobMaker(program_, Random(random_)).make();
}

}  // namespace kiln::support

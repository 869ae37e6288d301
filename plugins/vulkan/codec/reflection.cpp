#include "codec/reflection.hpp"

#include "codec/glslang_module.hpp"
#include "codec/sampled_pairs.hpp"
#include "codec/spirv_types.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace kiln::vulkan {
namespace {

using Instruction = SpirvModule::Instruction;

constexpr std::uint32_t most_elements = 4096;  // resources of one array of structs, blocks or images
constexpr std::size_t most_uniforms = 65536;

std::string indexed(std::string name, std::uint32_t i) { return std::move(name) + "[" + std::to_string(i) + "]"; }

class Reflector {
 public:
  explicit Reflector(const SpirvModule& module) : module_(module), types_(module) {}

  Result<Reflection> reflect() {
    choose_names();
    for (const SpirvVariable& variable : module_.variables()) {
      if (Status status = add(variable); !status.ok()) return status;
    }
    separate_numbers();
    join_samplers();
    return std::move(out_);
  }

 private:
  Instruction definition(std::uint32_t id) const { return module_.definition(id); }
  static std::uint32_t operand(Instruction instruction, std::size_t i) { return SpirvModule::operand(instruction, i); }
  static spv::Op op(Instruction instruction) { return SpirvModule::op(instruction); }

  // A block has the name of its type, as in GLSL. Compilers of other languages give one type to several variables, and
  // a module may have no names: what a name stands for must be one resource.
  void choose_names() {
    std::map<std::uint32_t, int> users;  // variables of a type
    for (const SpirvVariable& variable : module_.variables()) users[variable.type] += variable.used ? 1 : 0;
    std::set<std::pair<bool, std::string>> taken;
    for (const bool used : {true, false}) {
      for (const SpirvVariable& variable : module_.variables()) {
        if (variable.used != used) continue;
        const bool block = is_struct(variable.type);
        const std::string number = "binding" + std::to_string(variable.binding);
        const std::string names[] = {block && users[variable.type] <= 1 ? module_.name(variable.type) : "",
                                     module_.name(variable.id), number,
                                     "set" + std::to_string(variable.set) + "." + number};
        std::string& chosen = names_[variable.id];
        for (const std::string& name : names) {
          chosen = name;
          if (!name.empty() && taken.emplace(block, name).second) break;
        }
      }
    }
  }
  const std::string& name_of(const SpirvVariable& variable) const { return names_.at(variable.id); }
  bool is_struct(std::uint32_t type) const { return op(definition(type)) == spv::OpTypeStruct; }

  Status add(const SpirvVariable& variable) {
    out_.bindings.emplace_back();
    if (variable.storage == spv::StorageClassWorkgroup) return {};
    if (const std::string member = types_.overlapping(variable.type); !member.empty()) {
      return invalid_argument(name_of(variable) + ": " + member +
                              " overlaps the next bytes of the block. Give the array a length that is a number, not "
                              "an expression of specialization constants");
    }
    if (variable.storage == spv::StorageClassPushConstant) return add_push_constants(variable);
    if (variable.used && variable.count == 0) {
      return unsupported(name_of(variable) + ": an array of resources without a length, expected a fixed length");
    }
    if (variable.count > most_elements) {
      return unsupported(name_of(variable) + ": an array of " + std::to_string(variable.count) +
                         " resources, expected at most " + std::to_string(most_elements));
    }
    const bool blocks = is_struct(variable.type);
    const bool buffer_block = module_.decoration(variable.type, spv::DecorationBufferBlock).has_value();
    if (variable.storage == spv::StorageClassStorageBuffer || buffer_block) return add_storage(variable);
    if (blocks) return add_uniforms(variable);
    return add_texture(variable);
  }

  // The descriptor slot of a used variable.
  std::uint32_t slot(const SpirvVariable& variable, VkDescriptorType type) {
    const auto number = static_cast<std::uint32_t>(out_.slots.size());
    out_.slots.push_back({type, variable.count, variable.binding});
    sets_.push_back(variable.set);
    out_.bindings.back() = number;
    return number;
  }

  // A number stands for one resource: where sets repeat it, only that of the lowest set is found by it. An array of
  // blocks takes one binding: where the next is declared, it is no number of the array's second element.
  void separate_numbers() {
    for (ProgramResource& resource : out_.resources) {
      if (resource.kind != ResourceKind::storage_block) continue;
      const auto slot = static_cast<std::size_t>(resource.handle >> 32);
      const bool is_first = static_cast<std::uint32_t>(resource.handle) == 0;
      for (const ProgramResource& other : out_.resources) {
        if (other.kind != ResourceKind::storage_block || other.number != resource.number) continue;
        const auto other_slot = static_cast<std::size_t>(other.handle >> 32);
        const bool other_is_first = static_cast<std::uint32_t>(other.handle) == 0;
        if (sets_[other_slot] < sets_[slot] ||
            (sets_[other_slot] == sets_[slot] && other_slot != slot && other_is_first && !is_first)) {
          resource.number.reset();
          break;
        }
      }
    }
  }

  Access access_of(const SpirvVariable& variable) const {
    bool written = !module_.decoration(variable.id, spv::DecorationNonWritable);
    bool read = !module_.decoration(variable.id, spv::DecorationNonReadable);
    const Instruction declared = definition(variable.type);
    if (op(declared) == spv::OpTypeStruct && declared.size() > 2) {
      bool all_read_only = true, all_write_only = true;
      for (std::uint32_t i = 0; i + 2 < declared.size(); ++i) {
        all_read_only = all_read_only && module_.decoration(variable.type, i, spv::DecorationNonWritable);
        all_write_only = all_write_only && module_.decoration(variable.type, i, spv::DecorationNonReadable);
      }
      written = written && !all_read_only;
      read = read && !all_write_only;
    }
    if (!written) return Access::read;
    return read ? Access::read_write : Access::write;
  }

  Status add_storage(const SpirvVariable& variable) {
    const std::string name = name_of(variable);
    if (name.starts_with(std::string(counter_block_name) + "_")) return add_counters(variable, name);
    ProgramResource resource;
    resource.kind = ResourceKind::storage_block;
    resource.access = access_of(variable);
    describe_storage(variable.type, resource);
    const std::uint32_t at = variable.used ? slot(variable, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER) : 0;
    for (std::uint32_t i = 0; i < variable.count; ++i) {
      ProgramResource& one = (variable.used ? out_.resources : out_.unused).emplace_back(resource);
      one.name = variable.is_array ? indexed(name, i) : name;
      one.number = variable.binding + i;
      one.handle = static_cast<std::int64_t>(std::uint64_t{at} << 32 | i);
    }
    return {};
  }

  void describe_storage(std::uint32_t type, ProgramResource& resource) const {
    const Instruction block = definition(type);
    const BlockFacts facts = types_.facts_of(type);
    resource.bytes = facts.end;
    resource.element = facts.element;
    const std::size_t members = block.size() < 2 ? 0 : block.size() - 2;
    for (std::uint32_t i = 0; i < members; ++i) {
      const std::uint32_t member = block[i + 2];
      const bool open = op(definition(member)) == spv::OpTypeRuntimeArray;
      const bool whole = members == 1 && op(definition(member)) == spv::OpTypeArray;
      if (!open && !whole) continue;
      resource.open_ended = open;
      resource.array_offset = types_.place_of(type, i).offset;
      resource.array_stride = module_.decoration(member, spv::DecorationArrayStride).value_or(0);
      if (members != 1) continue;
      const std::uint32_t element = operand(definition(member), 2);
      resource.element_bytes = types_.bytes_without_padding(element);
      resource.struct_elements = op(definition(element)) == spv::OpTypeStruct;
    }
  }

  Status add_counters(const SpirvVariable& variable, const std::string& name) {
    std::uint32_t number = 0;
    const std::size_t digits = name.rfind('_') + 1;
    std::from_chars(name.data() + digits, name.data() + name.size(), number);
    const std::uint32_t at = variable.used ? slot(variable, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER) : 0;
    const Instruction block = definition(variable.type);
    for (std::uint32_t i = 0; i + 2 < block.size(); ++i) {
      ProgramResource counter;
      const bool used = variable.used && (variable.whole || variable.members.contains(i));
      counter.kind = used ? ResourceKind::atomic_counter : ResourceKind::uniform;
      counter.name = module_.member_name(variable.type, i);
      counter.element = ElementType::u32;
      counter.bytes = types_.place_of(variable.type, i).offset;
      counter.number = number;
      counter.handle = static_cast<std::int64_t>(std::uint64_t{at} << 32);
      if (Status status = add_counter(block[i + 2], counter, used); !status.ok()) return status;
    }
    return {};
  }

  // One resource for each innermost array, as OpenGL has: "a[0]" and "a[1]" of atomic_uint a[2][3].
  // counter.bytes: what lies before it; afterwards where it ends.
  Status add_counter(std::uint32_t id, ProgramResource& counter, bool used) {
    const Instruction type = definition(id);
    const bool array = op(type) == spv::OpTypeArray;
    const std::uint32_t count = array ? module_.constant(operand(type, 3)).value_or(1) : 1;
    const std::string name = counter.name;
    if (count > most_elements) {
      return unsupported("atomic counter " + name + ": array length " + std::to_string(count) + ", expected at most " +
                         std::to_string(most_elements));
    }
    if (array && op(definition(operand(type, 2))) == spv::OpTypeArray) {
      for (std::uint32_t i = 0; i < count; ++i) {
        counter.name = indexed(name, i);
        if (Status status = add_counter(operand(type, 2), counter, used); !status.ok()) return status;
      }
      return {};
    }
    counter.type = array ? indexed("atomic_uint", count) : "atomic_uint";
    counter.bytes += std::uint64_t{count} * sizeof(std::uint32_t);
    (used ? out_.resources : out_.unused).push_back(counter);
    return {};
  }

  // Its members have places of 32 bits.
  Result<std::uint32_t> bytes_of_block(const SpirvVariable& variable, const std::string& what,
                                       std::uint64_t alignment) const {
    constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max() - 15;
    const std::uint64_t end = types_.facts_of(variable.type).end;
    if (end <= most) return static_cast<std::uint32_t>((end + alignment - 1) / alignment * alignment);
    return unsupported(what + ": " + std::to_string(end) + " bytes, expected at most " + std::to_string(most));
  }

  Status add_push_constants(const SpirvVariable& variable) {
    const auto bytes = bytes_of_block(variable, "push constants", 4);
    if (!bytes) return bytes.error();
    if (!variable.used) return add_members(variable, {}, 0);
    out_.push_constant_bytes = *bytes;
    out_.blocks.push_back({out_.push_constant_bytes, std::nullopt, 0});
    return add_members(variable, {}, static_cast<std::uint32_t>(out_.blocks.size() - 1));
  }

  Status add_uniforms(const SpirvVariable& variable) {
    const std::string name = name_of(variable);
    const bool plain = name == uniform_block_name;
    // A driver may read the padding behind the last member.
    const auto bytes = bytes_of_block(variable, plain ? "uniforms" : "uniform block " + name, 16);
    if (!bytes) return bytes.error();
    if (!variable.used) {
      if (plain) return add_members(variable, {}, 0);
      for (std::uint32_t i = 0; i < variable.count; ++i) {
        ProgramResource& unused = out_.unused.emplace_back();
        unused.kind = ResourceKind::uniform_block;
        unused.name = variable.is_array ? indexed(name, i) : name;
        if (Status status = add_members(variable, unused.name, 0); !status.ok()) return status;
      }
      return {};
    }
    const std::uint32_t at = slot(variable, VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER);
    for (std::uint32_t i = 0; i < variable.count; ++i) {
      const auto block = static_cast<std::uint32_t>(out_.blocks.size());
      out_.blocks.push_back({*bytes, at, i});
      std::string block_name;
      if (!plain) {
        block_name = variable.is_array ? indexed(name, i) : name;
        ProgramResource& resource = out_.resources.emplace_back();
        resource.kind = ResourceKind::uniform_block;
        resource.name = block_name;
        resource.number = variable.binding + i;
        resource.access = Access::read;
        resource.bytes = *bytes;
        resource.handle = block;
      }
      if (Status status = add_members(variable, block_name, block); !status.ok()) return status;
    }
    return {};
  }

  // block_name: empty for plain uniforms and push constants.
  Status add_members(const SpirvVariable& variable, const std::string& block_name, std::uint32_t block) {
    const Instruction type = definition(variable.type);
    for (std::uint32_t i = 0; i + 2 < type.size(); ++i) {
      Member member;
      member.block = block;
      member.block_name = block_name;
      member.used = variable.used && (variable.whole || variable.members.contains(i));
      member.place = types_.place_of(variable.type, i);
      const std::string name = (block_name.empty() ? "" : block_name + ".") + module_.member_name(variable.type, i);
      if (Status status = add_member(type[i + 2], name, member, 0); !status.ok()) return status;
    }
    return {};
  }

  struct Member {
    std::uint32_t block = 0;
    std::string block_name;
    bool used = false;
    UniformPlace place;
    std::vector<std::uint32_t> lengths;
  };

  Status add_member(std::uint32_t type, const std::string& name, const Member& member, int depth) {
    if (depth > SpirvTypes::deepest) return unsupported("uniform " + name + ": the type is nested too deeply");
    const Instruction declared = definition(type);
    if (const auto leaf = types_.numeric(type)) return add_leaf(*leaf, 0, name, member);
    if (op(declared) == spv::OpTypeArray) {
      const std::uint32_t count = module_.constant(operand(declared, 3)).value_or(0);
      const std::uint32_t stride = module_.decoration(type, spv::DecorationArrayStride).value_or(0);
      Member element = member;
      element.lengths.push_back(count);
      if (const auto leaf = types_.numeric(operand(declared, 2))) {
        element.place.count = count;
        element.place.array_stride = stride;
        return add_leaf(*leaf, count, name, element);
      }
      if (count > most_elements) {
        return unsupported("uniform " + name + ": an array of " + std::to_string(count) +
                           " structs, expected at most " + std::to_string(most_elements));
      }
      for (std::uint32_t i = 0; i < count; ++i) {
        element.place.offset = member.place.offset + i * stride;
        Status status = add_member(operand(declared, 2), indexed(name, i), element, depth + 1);
        if (!status.ok()) return status;
      }
      return {};
    }
    if (op(declared) == spv::OpTypeSampledImage || op(declared) == spv::OpTypeImage ||
        op(declared) == spv::OpTypeSampler) {
      return unsupported("uniform " + name +
                         ": an image or a sampler in a struct, which Vulkan does not support. Declare it outside "
                         "the struct, or use an opengl device");
    }
    if (op(declared) != spv::OpTypeStruct) {
      return unsupported("uniform " + name + ": expected a number, vector, matrix, array or struct");
    }
    for (std::uint32_t i = 0; i + 2 < declared.size(); ++i) {
      Member inner = member;
      inner.lengths.clear();
      inner.place = types_.place_of(type, i);
      inner.place.offset += member.place.offset;
      Status status = add_member(declared[i + 2], name + "." + module_.member_name(type, i), inner, depth + 1);
      if (!status.ok()) return status;
    }
    return {};
  }

  Status add_leaf(const Numeric& leaf, std::uint32_t length, const std::string& name, const Member& member) {
    if (out_.members.size() + out_.unused.size() >= most_uniforms) {
      return unsupported("uniform " + name + ": too many uniforms, expected at most " + std::to_string(most_uniforms));
    }
    ProgramResource resource;
    resource.kind = ResourceKind::uniform;
    resource.name = name;
    resource.type = type_name(leaf, length);
    resource.element = leaf.element;
    resource.access = Access::read;
    resource.matrix = leaf.columns > 1;
    if (length != 0) resource.shape.push_back(length);
    if (leaf.rows > 1) resource.shape.push_back(leaf.rows);
    if (leaf.columns > 1) resource.shape.push_back(leaf.columns);
    resource.lengths = member.lengths;
    resource.block = member.block_name;
    resource.mentioned = member.used;
    resource.bytes = leaf.components() * leaf.bytes * std::max(length, 1U);
    if (!member.used && member.block_name.empty()) {
      out_.unused.push_back(std::move(resource));
      return {};
    }
    resource.handle = static_cast<std::int64_t>(out_.members.size());
    out_.members.push_back({member.block, member.place});
    out_.resources.push_back(std::move(resource));
    return {};
  }

  void add_sampler(const SpirvVariable& variable) {
    const std::uint32_t at = slot(variable, VK_DESCRIPTOR_TYPE_SAMPLER);
    for (std::uint32_t i = 0; i < variable.count; ++i) {
      placed_[variable.id].push_back(out_.resources.size());
      ProgramResource& one = out_.resources.emplace_back();
      one.kind = ResourceKind::sampler_state;
      one.access = Access::read;
      one.element = ElementType::f32;
      one.name = variable.is_array ? indexed(name_of(variable), i) : name_of(variable);
      one.number = variable.binding + i;
      one.handle = static_cast<std::int64_t>(std::uint64_t{at} << 32 | i);
    }
  }

  // The textures or separate samplers of a variable; 0: of all.
  std::vector<std::size_t> places_of(std::uint32_t variable, ResourceKind kind, bool alone) const {
    std::vector<std::size_t> found;
    for (const auto& [id, places] : placed_) {
      for (const std::size_t i : places) {
        const ProgramResource& resource = out_.resources[i];
        const bool fits = resource.kind == kind && resource.texture.alone == alone;
        if (fits && (id == variable || variable == 0)) found.push_back(i);
      }
    }
    return found;
  }

  // A separate sampler gets the element type of the textures that it reads, and they get its index.
  void join_samplers() {
    std::set<std::size_t> joined;
    for (const SampledPair& pair : sampled_pairs(module_)) {
      const std::vector<std::size_t> textures = places_of(pair.texture, ResourceKind::sampler, pair.apart);
      const auto samplers =
          pair.apart ? places_of(pair.sampler, ResourceKind::sampler_state, false) : std::vector<std::size_t>();
      if (pair.compares) {
        for (const std::size_t i : pair.apart ? samplers : textures) {
          out_.resources[i].unusable = "the program compares depths with it, which a job cannot provide";
        }
      }
      for (const std::size_t sampler : samplers) {
        for (const std::size_t texture : textures) {
          const ElementType element = out_.resources[texture].element;
          ElementType& known = out_.resources[sampler].element;
          const bool both_integer = element != ElementType::f32 && known != ElementType::f32;
          if (joined.insert(sampler).second) {
            known = element;
          } else if (element != known && !both_integer) {
            known = ElementType::unknown;
          }
          std::vector<std::size_t>& readers =
              out_.textures[static_cast<std::size_t>(out_.resources[texture].handle)].samplers;
          if (std::ranges::find(readers, sampler) == readers.end()) readers.push_back(sampler);
        }
      }
    }
  }

  Status add_texture(const SpirvVariable& variable) {
    const Instruction outer = definition(variable.type);
    const bool combined = op(outer) == spv::OpTypeSampledImage;
    const Instruction image = combined ? definition(operand(outer, 2)) : outer;
    ProgramResource resource;
    const std::string name = name_of(variable);
    if (!variable.used) {
      resource.kind = ResourceKind::uniform;
      resource.name = name;
      out_.unused.push_back(std::move(resource));
      return {};
    }
    if (op(outer) == spv::OpTypeSampler) {
      add_sampler(variable);
      return {};
    }
    const bool storage = operand(image, 7) == 2;
    const std::uint32_t dim = operand(image, 3);
    const bool arrayed = operand(image, 5) != 0, multisampled = operand(image, 6) != 0;
    const bool depth = combined && operand(image, 4) == 1;
    resource.kind = storage ? ResourceKind::image : ResourceKind::sampler;
    resource.access = storage ? access_of(variable) : Access::read;
    resource.texture.alone = !combined && !storage;
    const auto element = types_.numeric(operand(image, 2));
    resource.element = element ? element->element : ElementType::unknown;
    const std::string prefix = resource.element == ElementType::i32   ? "i"
                               : resource.element == ElementType::u32 ? "u"
                                                                      : "";
    constexpr std::string_view dims[] = {"1D", "2D", "3D", "Cube", "2DRect", "Buffer", "SubpassData"};
    resource.type = prefix +
                    (storage    ? "image"
                     : combined ? "sampler"
                                : "texture") +
                    std::string(dims[std::min<std::uint32_t>(dim, 6)]) + (multisampled ? "MS" : "") +
                    (arrayed ? "Array" : "") + (depth ? "Shadow" : "");
    if (op(image) != spv::OpTypeImage || multisampled || depth || dim == spv::DimRect || dim > spv::DimBuffer) {
      resource.unusable = "a job cannot provide this type";
    }
    TextureShape& shape = resource.texture;
    shape.dimensions = dim == spv::Dim3D ? 3 : dim == spv::Dim1D || dim == spv::DimBuffer ? 1 : 2;
    shape.layered = arrayed;
    shape.cube = dim == spv::DimCube;
    shape.buffer = dim == spv::DimBuffer;
    shape.format = image_format_of(operand(image, 8));

    const bool texels = dim == spv::DimBuffer;
    const std::uint32_t at =
        slot(variable, storage  ? (texels ? VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER : VK_DESCRIPTOR_TYPE_STORAGE_IMAGE)
                       : texels ? VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER
                       : combined ? VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER
                                  : VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE);
    const VkImageViewType view = dim == spv::Dim1D   ? (arrayed ? VK_IMAGE_VIEW_TYPE_1D_ARRAY : VK_IMAGE_VIEW_TYPE_1D)
                                 : dim == spv::Dim3D ? VK_IMAGE_VIEW_TYPE_3D
                                 : dim == spv::DimCube
                                     ? (arrayed ? VK_IMAGE_VIEW_TYPE_CUBE_ARRAY : VK_IMAGE_VIEW_TYPE_CUBE)
                                     : (arrayed ? VK_IMAGE_VIEW_TYPE_2D_ARRAY : VK_IMAGE_VIEW_TYPE_2D);
    for (std::uint32_t i = 0; i < variable.count; ++i) {
      placed_[variable.id].push_back(out_.resources.size());
      ProgramResource& one = out_.resources.emplace_back(resource);
      one.name = variable.is_array ? indexed(name, i) : name;
      one.number = variable.binding + i;
      one.handle = static_cast<std::int64_t>(out_.textures.size());
      out_.textures.push_back({at, i, view, {}});
    }
    return {};
  }

  const SpirvModule& module_;
  const SpirvTypes types_;
  Reflection out_;
  std::map<std::uint32_t, std::string> names_;                // by variable
  std::vector<std::uint32_t> sets_;                           // by slot
  std::map<std::uint32_t, std::vector<std::size_t>> placed_;  // textures and samplers: resources by variable
};

}  // namespace

Result<Reflection> reflect(const SpirvModule& module) { return Reflector(module).reflect(); }

}  // namespace kiln::vulkan

#include "codec/reflection.hpp"

#include <kiln/program_record.hpp>

#include <algorithm>

namespace kiln::vulkan {

template <class Archive>
void fields(Archive& archive, Archived<DescriptorSlot> auto& slot) {
  auto& [type, count, declared] = slot;
  archive(type, count, declared);
}

template <class Archive>
void fields(Archive& archive, Archived<ValueBlock> auto& block) {
  auto& [bytes, slot, element] = block;
  archive(bytes, slot, element);
}

template <class Archive>
void fields(Archive& archive, Archived<UniformMember> auto& member) {
  auto& [block, place] = member;
  archive(block, place);
}

template <class Archive>
void fields(Archive& archive, Archived<TextureSlot> auto& texture) {
  auto& [slot, element, view, samplers] = texture;
  archive(slot, element, view, samplers);
}

template <class Archive>
void fields(Archive& archive, Archived<Reflection> auto& reflection) {
  auto& [resources, unused, slots, blocks, members, textures, push_constant_bytes, bindings] = reflection;
  archive(resources, unused, slots, blocks, members, textures, push_constant_bytes, bindings);
}

template <class Archive>
void fields(Archive& archive, Archived<ModuleNeeds> auto& needs) {
  auto& [version, workgroup, shared_bytes, uses, capabilities] = needs;
  archive(version, workgroup, shared_bytes, uses, capabilities);
}

template <class Archive>
void fields(Archive& archive, Archived<ModuleRecord> auto& module) {
  auto& [words, entry, needs, reflection] = module;
  archive(words, entry, needs, reflection);
}

namespace {

// Whether each number that a queue looks up by is one of what it counts.
bool is_whole(const Reflection& reflection) {
  const auto has_slot = [&](std::uint64_t slot, std::uint32_t element) {
    return slot < reflection.slots.size() && element < reflection.slots[slot].count;
  };
  const auto has_place = [&](const ProgramResource& resource) {
    const auto at = static_cast<std::uint64_t>(resource.handle);
    switch (resource.kind) {
      case ResourceKind::storage_block:
      case ResourceKind::atomic_counter:
      case ResourceKind::sampler_state:
        return has_slot(at >> 32, static_cast<std::uint32_t>(at));
      case ResourceKind::uniform:
        return at < reflection.members.size();
      case ResourceKind::uniform_block:
        return at < reflection.blocks.size();
      case ResourceKind::image:
      case ResourceKind::sampler:
        return at < reflection.textures.size();
      default:
        return false;
    }
  };
  return std::ranges::all_of(reflection.resources, has_place) &&
         std::ranges::all_of(
             reflection.blocks,
             [&](const ValueBlock& block) { return !block.slot || has_slot(*block.slot, block.element); }) &&
         std::ranges::all_of(reflection.members,
                             [&](const UniformMember& member) { return member.block < reflection.blocks.size(); }) &&
         std::ranges::all_of(reflection.textures, [&](const TextureSlot& texture) {
           return has_slot(texture.slot, texture.element) &&
                  std::ranges::all_of(texture.samplers,
                                      [&](std::size_t sampler) { return sampler < reflection.resources.size(); });
         });
}

}  // namespace

void append(const ModuleRecord& module, std::vector<std::byte>& bytes) { RecordWriter{bytes}(module); }

std::optional<ModuleRecord> read_module(std::span<const std::byte> bytes) {
  ModuleRecord module;
  RecordReader read(bytes);
  read(module);
  if (!read.read_all() || !is_whole(module.reflection)) return std::nullopt;
  return module;
}

}  // namespace kiln::vulkan

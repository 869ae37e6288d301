#include "codec/reflection.hpp"

#include <kiln/program_record.hpp>

#include <limits>

namespace kiln::opengl {

template <class Archive>
void fields(Archive& archive, Archived<PlainUniform> auto& uniform) {
  auto& [location, type, count, initial, block, place] = uniform;
  archive(location, type, count, initial, block, place);
}

template <class Archive>
void fields(Archive& archive, Archived<TextureUniform> auto& uniform) {
  auto& [location, target, unit] = uniform;
  archive(location, target, unit);
}

template <class Archive>
void fields(Archive& archive, Archived<Reflection> auto& reflection) {
  auto& [interface, uniforms, textures] = reflection;
  archive(interface, uniforms, textures);
}

namespace {

// Whether each uniform, image and sampler is one of those that a queue looks up by its handle.
bool is_whole(const Reflection& reflection) {
  for (const ProgramResource& resource : reflection.interface.resources) {
    const bool texture = resource.kind == ResourceKind::image || resource.kind == ResourceKind::sampler;
    const bool uniform = resource.kind == ResourceKind::uniform && resource.type != "subroutine";
    const std::size_t most = texture   ? reflection.textures.size()
                             : uniform ? reflection.uniforms.size()
                                       : static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max());
    if (resource.handle < 0 || static_cast<std::size_t>(resource.handle) >= most) return false;
  }
  return true;
}

}  // namespace

void append(const Reflection& reflection, std::vector<std::byte>& bytes) { RecordWriter{bytes}(reflection); }

std::optional<Reflection> read_reflection(std::span<const std::byte> bytes) {
  Reflection reflection;
  RecordReader reader(bytes);
  reader(reflection);
  if (!reader.read_all() || !is_whole(reflection)) return std::nullopt;
  return reflection;
}

}  // namespace kiln::opengl

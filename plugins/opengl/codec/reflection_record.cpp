// A Reflection as bytes: the fields one behind the other, integers in the host's order, lists behind their lengths.
#include "codec/reflection.hpp"

#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

namespace kiln::opengl {
namespace {

// Writer and Reader have the same function, so that each list of fields below stands once.
class Writer {
 public:
  explicit Writer(std::vector<std::byte>& bytes) : bytes_(bytes) {}

  template <class... Values>
  void operator()(const Values&... values) {
    (put(values), ...);
  }

 private:
  template <class Value>
  requires std::is_arithmetic_v<Value> || std::is_enum_v<Value>
  void put(const Value& value) {
    const auto* begin = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), begin, begin + sizeof value);
  }
  template <class List>
  requires requires(const List& list) { list.size(); }
  void put(const List& list) {
    put(static_cast<std::uint32_t>(list.size()));
    for (const auto& each : list) put(each);
  }
  template <class Value>
  void put(const std::optional<Value>& value) {
    put(value.has_value());
    if (value) put(*value);
  }
  template <class Struct>
  void put(const Struct& value) {
    fields(*this, value);
  }

  std::vector<std::byte>& bytes_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : left_(bytes) {}

  template <class... Values>
  void operator()(Values&... values) {
    (take(values), ...);
  }
  bool read_all() const noexcept { return good_ && left_.empty(); }

 private:
  template <class Value>
  requires std::is_arithmetic_v<Value> || std::is_enum_v<Value>
  void take(Value& value) {
    good_ = good_ && left_.size() >= sizeof value;
    if (!good_) return;
    if constexpr (std::is_same_v<Value, bool>) {
      good_ = left_[0] <= std::byte{1};  // a bool has no other values
      value = left_[0] == std::byte{1};
    } else {
      std::memcpy(&value, left_.data(), sizeof value);
    }
    left_ = left_.subspan(sizeof value);
  }
  template <class List>
  requires requires(List& list) { list.size(); }
  void take(List& list) {
    std::uint32_t size = 0;
    take(size);
    good_ = good_ && size <= left_.size();  // an element has a byte or more
    if (!good_) return;
    list.resize(size);
    for (auto& each : list) take(each);
  }
  template <class Value>
  void take(std::optional<Value>& value) {
    bool has = false;
    take(has);
    if (has) take(value.emplace());
  }
  template <class Struct>
  void take(Struct& value) {
    fields(*this, value);
  }

  std::span<const std::byte> left_;
  bool good_ = true;
};

// The bindings name every member: a new one does not compile here.
template <class Archive, class Struct>
void fields(Archive& archive, Struct& value) {
  using Plain = std::remove_const_t<Struct>;
  if constexpr (std::is_same_v<Plain, TextureShape>) {
    auto& [dimensions, layered, cube, buffer, alone, format] = value;
    archive(dimensions, layered, cube, buffer, alone, format);
  } else if constexpr (std::is_same_v<Plain, ProgramResource>) {
    auto& [kind, name, type, number, access, element, shape, matrix, lengths, has_default, mentioned, bytes,
           array_offset, array_stride, element_bytes, struct_elements, open_ended, block, texture, unusable, handle] =
        value;
    archive(kind, name, type, number, access, element, shape, matrix, lengths, has_default, mentioned, bytes,
            array_offset, array_stride, element_bytes, struct_elements, open_ended, block, texture, unusable, handle);
  } else if constexpr (std::is_same_v<Plain, ProgramInterface>) {
    auto& [resources, unused] = value;
    archive(resources, unused);
  } else if constexpr (std::is_same_v<Plain, UniformPlace>) {
    auto& [count, offset, array_stride, matrix_stride, row_major] = value;
    archive(count, offset, array_stride, matrix_stride, row_major);
  } else if constexpr (std::is_same_v<Plain, PlainUniform>) {
    auto& [location, type, count, initial, block, place] = value;
    archive(location, type, count, initial, block, place);
  } else if constexpr (std::is_same_v<Plain, TextureUniform>) {
    auto& [location, target, unit] = value;
    archive(location, target, unit);
  } else {
    static_assert(std::is_same_v<Plain, Reflection>);
    auto& [interface, uniforms, textures] = value;
    archive(interface, uniforms, textures);
  }
}

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

void append(const Reflection& reflection, std::vector<std::byte>& bytes) { Writer{bytes}(reflection); }

std::optional<Reflection> read_reflection(std::span<const std::byte> bytes) {
  Reflection reflection;
  Reader reader(bytes);
  reader(reflection);
  if (!reader.read_all() || !is_whole(reflection)) return std::nullopt;
  return reflection;
}

}  // namespace kiln::opengl
